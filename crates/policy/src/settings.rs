//! Applies settings to a profile, whether they come from a configuration file or from a program.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{AgentBlock, DocumentError, Profile, Registry, merge, profile_text};

/// Why a profile without detectors is an error.
pub(crate) const EMPTY_ORDER: &str = "`order` is empty, so nothing would be detected; remove the key, or list detectors (see `deloop explain`)";

/// Returns the document of a built-in profile.
///
/// # Errors
/// When there is no profile of this name. The message lists the known ones.
pub fn profile_document(name: &str) -> Result<Value, DocumentError> {
    toml::from_str(profile_text(name)?).map_err(|e| DocumentError(e.to_string()))
}

/// Merges settings over the document of a profile, and applies their `agent` block. Values of `environment` override
/// those of the block.
///
/// # Errors
/// When the `agent` block has a value of the wrong type.
pub fn merge_settings(
    document: &mut Value,
    over: Value,
    environment: AgentBlock,
) -> Result<(), DocumentError> {
    merge(document, over);
    let agent = document.get("agent").filter(|a| !a.is_null()).cloned();
    let block: AgentBlock = agent
        .map_or_else(|| Ok(AgentBlock::default()), serde_json::from_value)
        .map_err(|e| DocumentError(format!("the `agent` block: {e}")))?;
    environment.or(block).apply(document);
    Ok(())
}

/// Returns a setting of a document; `None` if it is absent or null.
///
/// # Errors
/// When its value has the wrong type.
pub fn setting<T: DeserializeOwned>(document: &Value, key: &str) -> Result<Option<T>, DocumentError> {
    match document.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value.clone())
            .map(Some)
            .map_err(|e| DocumentError(format!("`{key}`: {e}"))),
    }
}

impl Profile {
    /// Reads the profile of a document after [`merge_settings`]. With `checked`, unknown keys are an error; see
    /// [`Profile::from_document_unchecked`] for the difference.
    ///
    /// # Errors
    /// As [`Profile::from_document`], and when the profile has no detectors.
    pub fn configured(document: Value, checked: bool) -> Result<Self, DocumentError> {
        let registry = Registry::default();
        let profile = if checked {
            Self::from_document(document, &registry)?
        } else {
            Self::from_document_unchecked(document, &registry)?
        };
        if profile.watches.is_empty() {
            return Err(DocumentError(EMPTY_ORDER.to_owned()));
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_override_the_profile() {
        let mut document = profile_document("turn-hash").unwrap();
        let over = json!({"agent": {"turnHashWindow": 3}, "detectors": {"duplicate-turn": {"parts": 2}}});
        let environment = AgentBlock { turn_hash_window: Some(4), ..AgentBlock::default() };
        merge_settings(&mut document, over, environment).unwrap();
        let profile = Profile::configured(document.clone(), true).unwrap();
        let params = &profile.watches[0].params;
        assert_eq!((&params["window"], &params["parts"]), (&json!(4), &json!(2)));
        assert_eq!(setting::<bool>(&document, "attended").unwrap(), None);
        assert!(setting::<bool>(&json!({"attended": 3}), "attended").unwrap_err().0.contains("`attended`"));
        let empty = Profile::configured(json!({"order": []}), true).err().unwrap();
        assert!(empty.0.contains("`order` is empty"), "{empty}");
    }
}
