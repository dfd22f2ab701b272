use std::fmt::Write;

/// Every key begins with this, so that scanners for leaked secrets can find one.
const PREFIX: &str = "dlp_";
/// Number of random bytes in the public part.
const ID: usize = 6;
/// Number of random bytes in the secret part.
const SECRET: usize = 32;
/// Length of a key in characters.
const LENGTH: usize = PREFIX.len() + 2 * ID + 1 + 2 * SECRET;
/// Keeps the hashes apart from those of any other use of BLAKE3.
const CONTEXT: &str = "deloop 2026-11-15 API key of a server";

/// A new key. Its text is shown once and never stored.
///
/// The secret part has 256 random bits, so nobody can guess it from its hash, and a slow hash would add nothing.
pub struct ApiKey {
    id: String,
    text: String,
}

impl ApiKey {
    /// Creates a key from the system's random numbers.
    ///
    /// # Errors
    /// When the system has none.
    pub fn generate() -> std::io::Result<Self> {
        let mut random = [0; ID + SECRET];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let (id, secret) = random.split_at(ID);
        let id = hex(id);
        let text = format!("{PREFIX}{id}_{}", hex(secret));
        Ok(Self { id, text })
    }

    /// Returns the public part, which finds the key in the file.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the whole key, for the person who created it.
    #[must_use]
    pub fn secret_text(&self) -> &str {
        &self.text
    }

    /// Returns what is stored.
    #[must_use]
    pub fn hash(&self) -> blake3::Hash {
        hash(&self.text)
    }
}

/// Returns the id and the hash of a text that has the form of a key.
pub(super) fn read_key(text: &str) -> Option<(&str, blake3::Hash)> {
    if text.len() != LENGTH {
        return None;
    }
    let (id, _) = text.strip_prefix(PREFIX)?.split_once('_')?;
    Some((id, hash(text)))
}

fn hash(text: &str) -> blake3::Hash {
    blake3::Hash::from_bytes(blake3::derive_key(CONTEXT, text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_are_read_back() {
        let (one, two) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        assert_ne!(one.secret_text(), two.secret_text());
        let (id, hash) = read_key(one.secret_text()).unwrap();
        assert_eq!((id, hash), (one.id(), one.hash()));
        let mut other = one.secret_text().to_owned();
        let last = if other.pop() == Some('0') { '1' } else { '0' };
        other.push(last);
        assert_ne!(read_key(&other).unwrap().1, one.hash());
        for text in ["", "dlp_", &one.secret_text()[1..], &format!("{}0", one.secret_text())] {
            assert!(read_key(text).is_none(), "{text}");
        }
    }
}
