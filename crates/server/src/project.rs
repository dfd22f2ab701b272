use std::sync::Arc;

/// Maximum length of a project's name.
const LONGEST: usize = 64;

/// The name of a project: sessions and swarms of different projects are kept apart, whatever their names.
///
/// 1 to 64 letters, digits, `.`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Project(Arc<str>);

impl Project {
    /// Reads a name.
    ///
    /// # Errors
    /// When it has other characters, none or too many.
    pub fn parse(name: &str) -> Result<Self, String> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(allowed) {
            return Err(format!("a project's name is 1 to {LONGEST} letters, digits, `.`, `_` and `-`"));
        }
        Ok(Self(Arc::from(name)))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Project {
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

impl std::fmt::Display for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
