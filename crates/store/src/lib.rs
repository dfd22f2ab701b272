//! Where sessions and swarms are kept between steps: one contract, several backends.
//!
//! A change of state is a closure handed to the store, so that a backend in memory, on disk or across a network can
//! each make it atomic in its own way.

pub mod contract;
mod memory;
#[cfg(feature = "sqlite")]
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a database is a file")]
mod sqlite;

use std::path::{Path, PathBuf};

use deloop_detect::Swarm;
use deloop_types::{Millis, SessionId};

pub use memory::{Limits, MemoryStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{Bounds, SqliteStore};

/// Why a store could not do what it was asked to.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A state can't be written as text.
    Encode(BoxedError),
    /// A text isn't a state that this release and profile can read.
    Decode(BoxedError),
    /// The database failed.
    Database {
        /// The file.
        path: PathBuf,
        /// What the database reported.
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

    /// Creates an error about a database file.
    pub fn database(path: &Path, source: impl Into<BoxedError>) -> Self {
        Self::Database { path: path.to_owned(), source: source.into() }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Encode(source) => write!(f, "can't write the session's state: {source}"),
            Self::Decode(source) => write!(f, "can't read the session's state: {source}"),
            Self::Database { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Encode(source) | Self::Decode(source) | Self::Database { source, .. } => {
                Some(source.as_ref())
            }
        }
    }
}

/// Makes, writes and reads the state of a session; a backend that keeps bytes needs it.
pub trait Codec<T>: Send + Sync {
    /// The state of a session that was not there before.
    fn fresh(&self) -> T;

    /// As text.
    ///
    /// # Errors
    /// When the state cannot be written.
    fn freeze(&self, state: &T) -> Result<String, StoreError>;

    /// From text.
    ///
    /// # Errors
    /// When the text was not written by [`Codec::freeze`].
    fn thaw(&self, text: &str) -> Result<T, StoreError>;
}

/// Keeps the state `T` of each session, and what each swarm did.
///
/// Every backend passes the suite in [`contract`].
pub trait Store<T>: Send + Sync {
    /// Changes a session's state; makes it first if it is new. Nothing else sees the state while `change` runs.
    ///
    /// `ts` is the time of the step, by which idle sessions are dropped; time is data, no backend reads a clock for it.
    ///
    /// # Errors
    /// When the backend fails; the state is then as it was.
    fn update<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, StoreError>;

    /// Looks at a session's state, if there is one.
    ///
    /// # Errors
    /// When the backend fails.
    fn look<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        see: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, StoreError>;

    /// Changes what is known of a swarm.
    ///
    /// # Errors
    /// When the backend fails.
    fn swarm<R>(&self, swarm: &str, change: impl FnOnce(&mut Swarm) -> R) -> Result<R, StoreError>;

    /// Forgets a session; one that is not there is no error.
    ///
    /// # Errors
    /// When the backend fails.
    fn forget(&self, session: &SessionId) -> Result<(), StoreError>;

    /// Forgets a swarm, when its work is done.
    ///
    /// # Errors
    /// When the backend fails.
    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError>;

    /// The sessions that are kept, in no order.
    ///
    /// # Errors
    /// When the backend fails.
    fn sessions(&self) -> Result<Vec<SessionId>, StoreError>;
}
