use std::collections::HashSet;

use deloop_types::Millis;
use serde::{Deserialize, Serialize};

use super::api_key::ApiKey;
use super::scope::KeyScope;
use crate::project::Project;
use crate::requester::LOCAL_ACTOR;

/// The name of the key file in a server's state folder.
pub const KEY_FILE: &str = "keys.json";
/// The version of the file's form.
const VERSION: u32 = 1;
/// Stands for all projects. It isn't the name of one.
const ALL_PROJECTS: &str = "*";

/// The keys of a server. A server with this file answers only requests with one of them, also when none is left.
#[derive(Serialize, Deserialize)]
pub struct KeyFile {
    version: u32,
    keys: Vec<KeyRecord>,
}

/// What is stored of a key.
#[derive(Clone, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The public part of the key.
    pub id: String,
    /// Who uses it. Audit records have this name.
    pub name: String,
    /// The hash of the whole key, in hexadecimal digits.
    hash: String,
    /// What it allows.
    pub scopes: Vec<KeyScope>,
    /// Whose sessions and swarms it can use.
    pub project: KeyProject,
    /// The keys that share their sessions; its own name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// When it was created.
    pub created: Millis,
    /// From when on it is refused; null for never.
    pub expires: Option<Millis>,
}

/// Whose sessions and swarms a key can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KeyProject {
    /// Those of one project.
    One(Project),
    /// Those of every project.
    All,
}

impl TryFrom<String> for KeyProject {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name == ALL_PROJECTS { Ok(Self::All) } else { Project::parse(&name).map(Self::One) }
    }
}

impl From<KeyProject> for String {
    fn from(project: KeyProject) -> Self {
        match project {
            KeyProject::One(project) => project.as_str().to_owned(),
            KeyProject::All => ALL_PROJECTS.to_owned(),
        }
    }
}

impl KeyRecord {
    /// Creates the record of a new key.
    #[must_use]
    pub fn new(
        key: &ApiKey,
        name: String,
        scopes: Vec<KeyScope>,
        project: KeyProject,
        created: Millis,
        expires: Option<Millis>,
    ) -> Self {
        let hash = key.hash().to_hex().to_string();
        Self { id: key.id().to_owned(), name, hash, scopes, project, group: None, created, expires }
    }

    /// Lets it share its sessions with the keys of a group.
    #[must_use]
    pub fn in_group(mut self, group: Option<String>) -> Self {
        self.group = group;
        self
    }

    /// Returns the group that owns its sessions. A key without one is a group of its own, under its name.
    #[must_use]
    pub fn group(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.name)
    }

    pub(super) fn hash(&self) -> Option<blake3::Hash> {
        blake3::Hash::from_hex(&self.hash).ok()
    }
}

impl Default for KeyFile {
    fn default() -> Self {
        Self { version: VERSION, keys: Vec::new() }
    }
}

impl KeyFile {
    /// Reads a key file.
    ///
    /// # Errors
    /// When it isn't one, was written by a later release, or names a key twice.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("not a key file (line {}, column {})", error.line(), error.column()))?;
        if file.version != VERSION {
            return Err(format!("a key file of version {}; this release reads {VERSION}", file.version));
        }
        let (mut ids, mut names) = (HashSet::new(), HashSet::new());
        for key in &file.keys {
            if !ids.insert(&key.id) || !names.insert(&key.name) {
                return Err(format!(
                    "the key `{}` is in the file twice",
                    deloop_detect::clean(&key.name, 64)
                ));
            }
            if key.hash().is_none() {
                return Err(format!(
                    "the hash of the key `{}` is damaged",
                    deloop_detect::clean(&key.name, 64)
                ));
            }
        }
        Ok(file)
    }

    /// Returns the file's content.
    ///
    /// # Errors
    /// Never, unless memory runs out.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| error.to_string())?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Returns the keys in the order in which they were added.
    #[must_use]
    pub fn keys(&self) -> &[KeyRecord] {
        &self.keys
    }

    /// Adds a key.
    ///
    /// # Errors
    /// When its name is taken or has characters that a name can't have.
    pub fn add(&mut self, record: KeyRecord) -> Result<(), String> {
        let name = &record.name;
        // Names of keys and projects have the same form.
        Project::parse(name).map_err(|_| "a key's name is 1 to 64 letters, digits, `.`, `_` and `-`")?;
        if name == LOCAL_ACTOR {
            return Err(format!("`{name}` stands for programs that need no key; choose another name"));
        }
        if self.keys.iter().any(|key| key.name == *name) {
            return Err(format!(
                "there is a key named `{name}`; choose another name, or run `deloop keys revoke {name}` first"
            ));
        }
        if let Some(group) = &record.group {
            Project::parse(group)
                .map_err(|_| "a group's name is 1 to 64 letters, digits, `.`, `_` and `-`")?;
        } else if self.keys.iter().any(|key| key.group() == *name) {
            return Err(format!(
                "there is a group named `{name}`; add `--group {name}` to join it, or choose another name"
            ));
        }
        self.keys.push(record);
        Ok(())
    }

    /// Removes a key. Returns whether there was one of this name.
    pub fn revoke(&mut self, name: &str) -> bool {
        let before = self.keys.len();
        self.keys.retain(|key| key.name != name);
        self.keys.len() < before
    }

    pub(super) fn into_keys(self) -> Vec<KeyRecord> {
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_group_of_its_own_and_joins_another_only_if_told() {
        let mut file = KeyFile::default();
        let record = |name: &str, group: Option<&str>| {
            let key = ApiKey::generate().unwrap();
            let scopes = vec![KeyScope::Ingest];
            KeyRecord::new(&key, name.to_owned(), scopes, KeyProject::All, Millis(1), None)
                .in_group(group.map(str::to_owned))
        };
        file.add(record("ci-1", Some("ci"))).unwrap();
        let refused = file.add(record("ci", None)).unwrap_err();
        assert!(refused.contains("--group ci"), "{refused}");
        file.add(record("ci", Some("ci"))).unwrap();
        file.add(record("web", None)).unwrap();
        assert!(file.add(record("x", Some("a/b"))).is_err());
        let text = file.to_bytes().unwrap();
        let read = KeyFile::parse(&text).unwrap();
        assert_eq!(read.keys().iter().map(KeyRecord::group).collect::<Vec<_>>(), ["ci", "ci", "web"]);
    }

    #[test]
    fn the_file_holds_no_key_and_a_damaged_one_is_refused() {
        let key = ApiKey::generate().unwrap();
        let mut file = KeyFile::default();
        let record = |name: &str, project| {
            KeyRecord::new(&key, name.to_owned(), vec![KeyScope::Read], project, Millis(1), None)
        };
        file.add(record("ci", KeyProject::All)).unwrap();
        assert!(file.add(record("ci", KeyProject::All)).unwrap_err().contains("revoke ci"));
        assert!(file.add(record("a b", KeyProject::All)).is_err());
        assert!(file.add(record("local", KeyProject::All)).is_err());
        let text = String::from_utf8(file.to_bytes().unwrap()).unwrap();
        assert!(!text.contains(key.secret_text().rsplit('_').next().unwrap()), "{text}");
        assert!(KeyFile::parse(text.as_bytes()).unwrap().keys()[0].hash() == Some(key.hash()));
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"),
            ("\"*\"", "\"a/b\""),
            ("\"read\"", "\"root\""),
            ("      \"project\": \"*\",\n", ""),
            (&key.hash().to_hex()[..8], "nothex!!"),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(KeyFile::parse(text.replace(from, to).as_bytes()).is_err(), "{from} -> {to}");
        }
        assert!(file.revoke("ci") && !file.revoke("ci"));
    }
}
