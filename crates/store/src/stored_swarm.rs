use deloop_detect::Swarm;
use serde::Deserialize;

use crate::StoreError;

/// The version that every stored text begins with. Texts of the first version have none.
#[derive(Deserialize)]
struct SwarmVersion {
    #[serde(default = "first")]
    version: u32,
}

fn first() -> u32 {
    Swarm::VERSION
}

/// Reads the stored text of a swarm.
///
/// # Errors
/// When the text isn't a swarm, or a later release wrote it.
pub fn read_swarm(text: &str) -> Result<Swarm, StoreError> {
    match serde_json::from_str::<SwarmVersion>(text) {
        Ok(SwarmVersion { version }) => check_swarm_version(version)?,
        Err(error) => return Err(StoreError::decode(error)),
    }
    serde_json::from_str(text).map_err(StoreError::decode)
}

/// Checks that this release reads swarms of this version.
pub(crate) fn check_swarm_version(version: u32) -> Result<(), StoreError> {
    let known = Swarm::VERSION;
    if version > known { Err(StoreError::Later { found: version, known }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swarm_without_a_version_is_read_and_one_of_a_later_release_is_refused() {
        let written = serde_json::to_string(&Swarm::default()).unwrap();
        assert!(written.starts_with("{\"version\":1,"), "{written}");
        assert_eq!(read_swarm(&written).unwrap(), Swarm::default());
        assert_eq!(read_swarm(&written.replace("\"version\":1,", "")).unwrap(), Swarm::default());
        let later = read_swarm(&written.replace("\"version\":1,", "\"version\":2,")).unwrap_err();
        assert!(matches!(later, StoreError::Later { found: 2, known: 1 }), "{later}");
        assert!(matches!(read_swarm("nonsense").unwrap_err(), StoreError::Decode(_)));
    }
}
