//! Stores sessions and swarms between steps. All backends follow one contract.
//!
//! You change a state by passing a closure to the store, so that each backend (in memory, on disk or across a network)
//! can make the change atomic in its own way.

pub mod contract;
mod memory;
pub mod records;
#[cfg(feature = "redis")]
#[expect(clippy::disallowed_methods, reason = "a server may be slow: the clock says when to give up")]
mod redis;
#[cfg(feature = "sqlite")]
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a database is a file")]
mod sqlite;
#[cfg(any(feature = "redis", feature = "sqlite"))]
mod stored_swarm;

use std::path::{Path, PathBuf};

use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_types::{Millis, SessionId};

#[cfg(feature = "redis")]
pub use self::redis::{
    RedisMemory, RedisOptions, RedisRecords, RedisSecret, RedisStore, RedisTls, SessionStored, SessionWrite,
    SwarmTurn, VersionedSession,
};
pub use memory::{Limits, MemoryStore};
pub use records::{AddedOnce, Addition, EventCursor, MemoryRecords, RecordName, SharedRecords};
#[cfg(feature = "sqlite")]
pub use sqlite::{Bounds, SqliteRecords, SqliteStore, StateChange, StoredState, set_aside_files};
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub use stored_swarm::read_swarm;

/// An error of a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A state can't be serialized.
    Encode(BoxedError),
    /// A stored text isn't a state that this release and profile can read.
    Decode(BoxedError),
    /// A later release wrote a stored text.
    Later {
        /// The version of its format.
        found: u32,
        /// The latest version that this release reads.
        known: u32,
    },
    /// The database failed.
    Database {
        /// The file.
        path: PathBuf,
        /// What the database reported.
        source: BoxedError,
    },
    /// The text isn't the URL of a server.
    Address(BoxedError),
    /// The server can't be reached, can't write at the moment, or is too slow. The next step may succeed.
    Unavailable {
        /// Its host and port.
        server: String,
        /// What went wrong.
        source: BoxedError,
    },
    /// The server refused a command.
    Refused {
        /// Its host and port.
        server: String,
        /// What the server reported.
        source: BoxedError,
    },
}

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// Creates an error about writing a state.
    pub fn encode(source: impl Into<BoxedError>) -> Self {
        Self::Encode(source.into())
    }

    /// Creates an error about reading a state.
    pub fn decode(source: impl Into<BoxedError>) -> Self {
        Self::Decode(source.into())
    }

    /// Returns whether a state is stored that this release can't read. It stays as it is.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Decode(_) | Self::Later { .. })
    }

    /// Creates an error about a database file.
    pub fn database(path: &Path, source: impl Into<BoxedError>) -> Self {
        Self::Database { path: path.to_owned(), source: source.into() }
    }

    /// Creates an error about the URL of a server.
    pub fn address(source: impl Into<BoxedError>) -> Self {
        Self::Address(source.into())
    }

    /// Creates an error about a server that can't be reached or is too slow.
    pub fn unavailable(server: &str, source: impl Into<BoxedError>) -> Self {
        Self::Unavailable { server: server.to_owned(), source: source.into() }
    }

    /// Creates an error about a command that a server refused.
    pub fn refused(server: &str, source: impl Into<BoxedError>) -> Self {
        Self::Refused { server: server.to_owned(), source: source.into() }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Encode(source) => write!(f, "can't write the session's state: {source}"),
            Self::Decode(source) => write!(f, "can't read the session's state: {source}"),
            Self::Later { found, known } => write!(
                f,
                "a later release wrote the stored state (format {found}, this release reads up to {known}): update deloop"
            ),
            Self::Database { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Address(source) => {
                write!(
                    f,
                    "not the URL of a server (write redis://HOST[:PORT], or rediss:// for TLS): {source}"
                )
            }
            Self::Unavailable { server, source } => {
                write!(f, "{server} is unreachable or too slow: {source}")
            }
            Self::Refused { server, source } => write!(f, "{server} refused a command: {source}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Later { .. } => None,
            Self::Encode(source)
            | Self::Decode(source)
            | Self::Address(source)
            | Self::Database { source, .. }
            | Self::Unavailable { source, .. }
            | Self::Refused { source, .. } => Some(source.as_ref()),
        }
    }
}

/// Creates, serializes and deserializes the state of a session, for backends that store bytes.
pub trait Codec<T>: Send + Sync {
    /// Returns the state of a new session.
    fn fresh(&self) -> T;

    /// Serializes a state to text.
    ///
    /// # Errors
    /// When the state can't be serialized.
    fn freeze(&self, state: &T) -> Result<String, StoreError>;

    /// Deserializes a state from text.
    ///
    /// # Errors
    /// When the text wasn't written by [`Codec::freeze`].
    fn thaw(&self, text: &str) -> Result<T, StoreError>;

    /// Returns a new state with what a text that [`Codec::thaw`] can't read still tells for sure, such as that a session
    /// was stopped. `None` if that is nothing.
    fn salvage(&self, _text: &str) -> Option<T> {
        None
    }
}

/// Stores the state `T` of each session and the tallies of each swarm.
///
/// Every backend passes the suite in [`contract`].
pub trait Store<T>: Send + Sync {
    /// Changes a session's state, after creating it if it is new.
    ///
    /// `change` may run more than once: a backend that many machines share runs it again, on the newer state, if another
    /// change was stored first. Only its last run is stored and returned.
    ///
    /// `ts` is the time of the step and determines when idle sessions are dropped. No backend reads a clock for this.
    ///
    /// # Errors
    /// When the backend fails. The state is unchanged then, or changed once if only the answer of a server got lost.
    fn update<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl Fn(&mut T) -> R,
    ) -> Result<R, StoreError>;

    /// Reads a session's state, if there is one.
    ///
    /// # Errors
    /// When the backend fails.
    fn look<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        see: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, StoreError>;

    /// Adds the calls of one turn to a swarm, as [`Swarm::tally`] does, and returns their counts. Tally a turn before you
    /// update its session: a backend that can lose an answer then recognizes calls with an id that are tallied again.
    ///
    /// # Errors
    /// When the backend fails.
    fn tally(
        &self,
        swarm: &str,
        worker: SwarmWorker<'_>,
        calls: &[SwarmCall<'_>],
    ) -> Result<Vec<SwarmCount>, StoreError>;

    /// Adds a call that failed or found nothing to a swarm, by its signature.
    ///
    /// # Errors
    /// When the backend fails.
    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError>;

    /// Reads the state of a swarm, if there is one.
    ///
    /// # Errors
    /// When the backend fails.
    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError>;

    /// Returns the failures that the sessions of a project met; none for an unknown project.
    ///
    /// # Errors
    /// When the backend fails.
    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError>;

    /// Enters what happened into the failures of a project, as [`KnownFailures::enter`] does.
    ///
    /// # Errors
    /// When the backend fails.
    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError>;

    /// Deletes the failures of a project. It isn't an error if there are none.
    ///
    /// # Errors
    /// When the backend fails.
    fn forget_project(&self, project: &str) -> Result<(), StoreError>;

    /// Returns the projects with known failures, in no particular order.
    ///
    /// # Errors
    /// When the backend fails.
    fn projects(&self) -> Result<Vec<String>, StoreError>;

    /// Deletes a session. It isn't an error if there is no such session.
    ///
    /// # Errors
    /// When the backend fails.
    fn forget(&self, session: &SessionId) -> Result<(), StoreError>;

    /// Deletes a swarm. It isn't an error if there is no such swarm.
    ///
    /// # Errors
    /// When the backend fails.
    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError>;

    /// Returns the stored sessions, in no particular order.
    ///
    /// # Errors
    /// When the backend fails.
    fn sessions(&self) -> Result<Vec<SessionId>, StoreError>;

    /// Returns the names of the stored swarms, in no particular order.
    ///
    /// # Errors
    /// When the backend fails.
    fn swarms(&self) -> Result<Vec<String>, StoreError>;
}
