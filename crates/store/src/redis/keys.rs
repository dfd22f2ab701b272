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

    /// Returns the hash that holds a session.
    pub(super) fn session(&self, session: &str) -> String {
        format!("{{{}:s:{}}}", self.prefix, escaped(session, b"-._"))
    }

    /// Returns the key that remembers for a short time which state of a session was deleted.
    pub(super) fn deleted(&self, session: &str) -> String {
        self.session(session) + ":deleted"
    }

    /// Returns the keys that hold a swarm.
    pub(super) fn swarm(&self, swarm: &str) -> [String; 8] {
        let tag = format!("{{{}:w:{}}}", self.prefix, escaped(swarm, b"-._"));
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

    /// Returns the pattern that the first keys of all sessions (`s`) or swarms (`w`) match.
    pub(super) fn pattern(&self, kind: char) -> String {
        format!("{{{}:{kind}:*}}", self.prefix)
    }

    /// Returns the session or swarm that a key belongs to, if it is the first key of one.
    pub(super) fn name(&self, key: &str, kind: char) -> Option<String> {
        let tag = key.strip_prefix('{')?.strip_suffix('}')?;
        let name =
            tag.strip_prefix(&self.prefix)?.strip_prefix(':')?.strip_prefix(kind)?.strip_prefix(':')?;
        unescaped(name)
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

fn unescaped(text: &str) -> Option<String> {
    let mut name = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            // The key of a store whose prefix starts with this one's.
            b':' => return None,
            _ => byte,
        });
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_and_stays_in_its_tag() {
        let keys = RedisKeys::new("team:a{}*");
        for name in ["", "s1", "a:b", "}{x}", "100%", "*?[a]\\", "\0\n\u{1f600}", "%41"] {
            let key = keys.session(name);
            assert_eq!(keys.name(&key, 's').as_deref(), Some(name));
            assert_eq!(keys.name(&key, 'w'), None);
            assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1), "{key}");
            assert!(key.is_ascii() && !key.contains(['*', '?', '[', '\\', ' ']), "{key}");
            for part in &keys.swarm(name)[1..] {
                assert!(part.starts_with(&keys.swarm(name)[0]) && keys.name(part, 'w').is_none(), "{part}");
            }
        }
        assert_ne!(keys.session("A"), keys.session("%41"));
        assert_eq!(RedisKeys::new("team").name(&RedisKeys::new("team:s").session("x"), 's'), None);
    }
}
