use std::fmt;
use std::path::{Path, PathBuf};

use super::private_files;

/// Separates this use of the secret from any other.
const CONTEXT: &str = "deloop audit log 2026-11: authentication of records";
/// A shorter secret could be guessed.
const SHORTEST: usize = 32;
/// A longer file isn't a key.
const LONGEST: u64 = 4 << 10;

/// The secret with which a server authenticates its records, so that nobody who can only write to the log's folder can
/// add, change or explain away a record. Keep it outside of the state folder.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditKey {
    key: blake3::Hash,
}

impl AuditKey {
    /// Makes a key of a secret. White space around it doesn't count.
    ///
    /// # Errors
    /// When the secret has fewer than 32 bytes.
    pub fn of_secret(secret: &[u8]) -> Result<Self, String> {
        let secret = secret.trim_ascii();
        if secret.len() < SHORTEST {
            return Err(format!("the key has {} bytes; at least {SHORTEST} are needed", secret.len()));
        }
        Ok(Self { key: blake3::derive_key(CONTEXT, secret).into() })
    }

    /// Reads a key from a file. A link is followed.
    ///
    /// # Errors
    /// When the file can't be read, isn't a key, or lies in `state`, where whoever can write the log would find it.
    pub fn read(file: &Path, state: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let file = file.canonicalize().map_err(failed)?;
        let state: PathBuf = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        if file.starts_with(&state) {
            return Err(format!(
                "{}: the key lies in the state folder, where whoever can change the log can read it; \
                 move it to another folder",
                file.display()
            ));
        }
        let secret = private_files::read(&file, LONGEST).map_err(failed)?;
        Self::of_secret(&secret)
            .map_err(|why| format!("{}: {why}; `openssl rand -hex 32` prints a new one", file.display()))
    }

    /// Returns what authenticates these bytes, in hexadecimal.
    pub(super) fn authenticate(&self, bytes: &[u8]) -> String {
        blake3::keyed_hash(self.key.as_bytes(), bytes).to_hex().to_string()
    }

    /// Returns whether this code was made of these bytes with this key. Takes the same time for any code.
    pub(super) fn has_made(&self, code: &str, bytes: &[u8]) -> bool {
        let code = blake3::Hash::from_hex(code);
        code.is_ok_and(|code| code == blake3::keyed_hash(self.key.as_bytes(), bytes))
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_needs_32_bytes_outside_of_the_state_folder() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        std::fs::create_dir(&state).unwrap();
        let (good, short, inside) =
            (home.path().join("good"), home.path().join("short"), state.join("inside"));
        std::fs::write(&good, format!("{}\n", "k".repeat(32))).unwrap();
        std::fs::write(&short, "k".repeat(31)).unwrap();
        std::fs::write(&inside, "k".repeat(32)).unwrap();
        let key = AuditKey::read(&good, &state).unwrap();
        assert_eq!(key, AuditKey::of_secret(&[b'k'; 32]).unwrap());
        assert!(AuditKey::read(&short, &state).unwrap_err().contains("31 bytes"));
        assert!(AuditKey::read(&inside, &state).unwrap_err().contains("state folder"));
        assert!(AuditKey::read(&state.join("none"), &state).is_err());
        assert_eq!(format!("{key:?}"), "AuditKey");
    }

    #[test]
    fn a_code_fits_its_bytes_and_its_key() {
        let keys = [b'a', b'b'].map(|byte| AuditKey::of_secret(&[byte; 32]).unwrap());
        let code = keys[0].authenticate(b"x");
        assert!(keys[0].has_made(&code, b"x"));
        assert!(!keys[0].has_made(&code, b"y") && !keys[1].has_made(&code, b"x"));
        assert!(!keys[0].has_made("", b"x"));
    }
}
