use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use deloop_types::Millis;

use super::api_key::read_key;
use super::file_mark::{FileMark, Interval, read_file};
use super::key_file::{KeyFile, KeyProject, KeyRecord};
use super::rate_limit::Allowance;
use super::scope::KeyScope;
use super::settings::RateLimits;
use crate::clock::Clock;

/// How often the key file is looked at, so that a revoked key stops working without a restart.
const EVERY: Duration = Duration::from_millis(500);
/// A larger file isn't a key file.
const LARGEST: u64 = 16 << 20;

/// A key that the server knows.
pub(super) struct KnownKey {
    pub(super) name: Arc<str>,
    pub(super) project: KeyProject,
    pub(super) allowance: Arc<Allowance>,
    hash: blake3::Hash,
    /// The group that owns its sessions.
    pub(super) group: Arc<str>,
    pub(super) scopes: Arc<[KeyScope]>,
    expires: Option<Millis>,
}

impl KnownKey {
    pub(super) fn is_expired(&self, now: Millis) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }

    pub(super) fn allows(&self, scope: KeyScope) -> bool {
        scope.is_among(&self.scopes)
    }
}

type KnownKeys = HashMap<String, Arc<KnownKey>>;

/// Whether requests need a key, and which keys there are.
#[derive(Clone)]
pub(super) enum KeyState {
    /// There was never a key file: programs on this machine need none.
    Open,
    /// Requests need one of these.
    Closed(Arc<KnownKeys>),
    /// The file can't be read, so that nobody knows which keys are still valid.
    Broken,
}

/// The keys of a server, as its key file has them.
pub(super) struct KeyRing {
    file: PathBuf,
    limits: RateLimits,
    state: RwLock<KeyState>,
    /// Whether the state is [`KeyState::Open`], to look at without the lock.
    is_open: AtomicBool,
    seen: Mutex<Option<FileMark>>,
    interval: Interval,
    clock: Clock,
}

impl KeyRing {
    /// Reads the file, if it exists.
    ///
    /// # Errors
    /// When it exists and can't be read.
    pub(super) fn open(file: PathBuf, limits: RateLimits, clock: Clock) -> Result<Self, String> {
        let mark = FileMark::of(&file).map_err(|error| told(&file, &error))?;
        let state = match &mark {
            None => KeyState::Open,
            Some(_) => KeyState::Closed(Arc::new(read(&file, limits, &KnownKeys::new(), clock.moment())?)),
        };
        let is_open = AtomicBool::new(matches!(state, KeyState::Open));
        let (state, seen) = (RwLock::new(state), Mutex::new(mark));
        let interval = Interval::new(EVERY, clock.clone());
        Ok(Self { file, limits, state, is_open, seen, interval, clock })
    }

    pub(super) fn state(&self) -> KeyState {
        if self.is_open.load(Ordering::Acquire) {
            return KeyState::Open;
        }
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_due(&self) -> bool {
        self.interval.is_due()
    }

    /// Reads the file again if it changed. A server that had keys never does without them: if the file is gone, no key is
    /// valid.
    ///
    /// # Errors
    /// When the file can't be read. From then on, every request is refused.
    pub(super) fn refresh(&self) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.state();
        let mark = FileMark::of(&self.file).map_err(|error| told(&self.file, &error));
        let keys = match mark {
            Ok(mark) if mark == *seen && !matches!(before, KeyState::Broken) => return Ok(()),
            Ok(mark) => {
                let is_gone = mark.is_none();
                *seen = mark;
                let known = match &before {
                    KeyState::Closed(known) => Arc::clone(known),
                    KeyState::Open | KeyState::Broken => Arc::default(),
                };
                if is_gone {
                    Ok(KnownKeys::new())
                } else {
                    read(&self.file, self.limits, &known, self.clock.moment())
                }
            }
            Err(error) => Err(error),
        };
        let (state, done) = match keys {
            Ok(keys) => (KeyState::Closed(Arc::new(keys)), Ok(())),
            Err(_) if matches!(before, KeyState::Broken) => (KeyState::Broken, Ok(())),
            Err(error) => (KeyState::Broken, Err(error)),
        };
        let is_open = matches!(state, KeyState::Open);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.is_open.store(is_open, Ordering::Release);
        done
    }
}

/// Finds a valid key. The time this takes doesn't depend on which part of a wrong key is wrong.
pub(super) fn find_key(keys: &KnownKeys, text: &str, now: Millis) -> Option<Arc<KnownKey>> {
    let (id, hash) = read_key(text)?;
    let known = keys.get(id);
    // An unknown id is compared, too, with a hash that no key has.
    let nobody = blake3::Hash::from_bytes([0; 32]);
    // `blake3::Hash` compares in constant time.
    let is_equal = hash == known.map_or(nobody, |key| key.hash);
    let key = known.filter(|_| is_equal)?;
    (!key.is_expired(now)).then(|| Arc::clone(key))
}

fn read(file: &Path, limits: RateLimits, before: &KnownKeys, now: Instant) -> Result<KnownKeys, String> {
    let bytes = read_file(file, LARGEST).map_err(|error| told(file, &error))?;
    let keys = KeyFile::parse(&bytes).map_err(|error| told(file, &error))?.into_keys();
    Ok(keys.into_iter().filter_map(|record| known(record, limits, before, now)).collect())
}

/// Returns a key as the server uses it. What it has used of its rate stays used.
fn known(
    record: KeyRecord,
    limits: RateLimits,
    before: &KnownKeys,
    now: Instant,
) -> Option<(String, Arc<KnownKey>)> {
    let hash = record.hash()?;
    let allowance = before.get(&record.id).map(|key| Arc::clone(&key.allowance));
    let key = KnownKey {
        group: Arc::from(record.group()),
        name: Arc::from(record.name),
        project: record.project,
        allowance: allowance.unwrap_or_else(|| Arc::new(Allowance::new(&record.id, limits, now))),
        hash,
        scopes: record.scopes.into(),
        expires: record.expires,
    };
    Some((record.id, Arc::new(key)))
}

fn told(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!(
        "{}: {error}; restore the file, or delete it and create new keys with `deloop keys add`",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::super::api_key::ApiKey;
    use super::*;

    #[test]
    fn only_the_whole_key_is_found_and_only_until_it_expires() {
        let (key, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        let scopes = vec![KeyScope::Read];
        let record =
            KeyRecord::new(&key, "ci".into(), scopes, KeyProject::All, Millis(0), Some(Millis(1_000)));
        let now = Clock::default().moment();
        let keys: KnownKeys =
            known(record, RateLimits::default(), &KnownKeys::new(), now).into_iter().collect();
        let text = key.secret_text();
        assert!(find_key(&keys, text, Millis(999)).is_some_and(|key| key.allows(KeyScope::Read)));
        assert!(find_key(&keys, text, Millis(1_000)).is_none());
        assert!(find_key(&keys, other.secret_text(), Millis(1)).is_none());
        let forged = text.replace(text.rsplit('_').next().unwrap(), &"0".repeat(64));
        assert!(find_key(&keys, &forged, Millis(1)).is_none());
        assert!(find_key(&keys, &text.to_uppercase(), Millis(1)).is_none());
    }
}
