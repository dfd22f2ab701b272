use std::fmt::Write;

use crate::RecordName;

/// Names the keys of one store.
///
/// Names of sessions and swarms are escaped, so that no name can leave its hash tag or reach another key. All keys of one
/// session or one swarm share a tag, and so a slot of a Redis Cluster.
#[derive(Debug, Clone)]
pub(super) struct RedisKeys {
    prefix: String,
}

/// The keys of a swarm, in the order in which `swarm.lua` takes them.
const OF_A_SWARM: [&str; 8] =
    ["", ":calls", ":calls:counts", ":in-vain", ":in-vain:counts", ":free", ":shown", ":seen"];

impl RedisKeys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: escaped(prefix, b"-._:") }
    }

    /// Returns the names of keys that a project has for itself.
    pub(super) fn scoped(&self, project: &str) -> Self {
        Self { prefix: format!("{}:p:{}", self.prefix, escaped(project, b"-._")) }
    }

    /// Returns the hash that holds a session.
    pub(super) fn session(&self, session: &str) -> String {
        self.first('s', session)
    }

    /// Returns the key that remembers for a short time which state of a session was deleted.
    pub(super) fn deleted(&self, session: &str) -> String {
        self.session(session) + ":deleted"
    }

    /// Returns the keys that hold a swarm.
    pub(super) fn swarm(&self, swarm: &str) -> [String; 8] {
        let tag = self.first('w', swarm);
        OF_A_SWARM.map(|key| format!("{tag}{key}"))
    }

    /// Returns the key of a shared record: a claim (`c`), a table of amounts (`a`) or a list (`l`).
    pub(super) fn record(&self, kind: char, name: RecordName<'_>) -> String {
        format!("{}:{kind}:{}", self.group(name.group), escaped(name.name, b"-._"))
    }

    /// Returns the keys that hold the texts of a group: by name, their names in order, their names by expiry.
    pub(super) fn texts(&self, group: &str) -> [String; 3] {
        ["texts", "names", "expiry"].map(|part| format!("{}:{part}", self.group(group)))
    }

    /// Returns the key of the log of events.
    pub(super) fn events(&self) -> String {
        format!("{{{}:events}}", self.prefix)
    }

    fn group(&self, group: &str) -> String {
        format!("{{{}:r:{}}}", self.prefix, escaped(group, b"-._"))
    }

    /// Returns the keys that list sessions (`s`) or swarms (`w`): their names in order, and by when they were listed.
    pub(super) fn listing(&self, kind: char) -> [String; 2] {
        ["names", "listed"].map(|part| format!("{{{}:i:{kind}}}:{part}", self.prefix))
    }

    /// Returns the key that a session (`s`) or swarm (`w`) has as long as it is stored.
    pub(super) fn first(&self, kind: char, name: &str) -> String {
        format!("{{{}:{kind}:{}}}", self.prefix, escaped(name, b"-._"))
    }
}

fn escaped(name: &str, plain: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_keys_of_its_own_and_stays_in_its_tag() {
        let keys = RedisKeys::new("team:a{}*");
        let names = ["", "s1", "a:b", "}{x}", "100%", "*?[a]\\", "\0\n\u{1f600}", "%41", "A"];
        let mut all = std::collections::BTreeSet::new();
        for name in names {
            let record = keys.record('l', RecordName::new(name, name));
            let group = keys.texts(name);
            for key in [keys.session(name), keys.deleted(name), record].into_iter().chain(group) {
                assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1), "{key}");
                assert!(key.is_ascii() && !key.contains(['*', '?', '[', '\\', ' ']), "{key}");
                assert!(all.insert(key));
            }
            for part in &keys.swarm(name)[1..] {
                assert!(part.starts_with(&keys.swarm(name)[0]), "{part}");
                assert!(all.insert(part.clone()));
            }
            assert!(all.insert(keys.scoped(name).session("x")));
        }
        assert_ne!(RedisKeys::new("team").session("s:x"), RedisKeys::new("team:s").session("x"));
        assert_ne!(
            keys.record('a', RecordName::new("a", "b:c")),
            keys.record('a', RecordName::new("a:b", "c"))
        );
    }
}
