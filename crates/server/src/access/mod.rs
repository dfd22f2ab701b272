//! Who may use the server: keys with scopes and a project, names of hosts, rates, and TLS.
//!
//! [`AccessGate`] checks a request before anything of it is read. A server without a key file answers programs on its own
//! machine only.

mod api_key;
mod file_mark;
mod gate;
mod head_deadline;
mod host;
mod key_file;
mod key_ring;
mod rate_limit;
mod recent_names;
mod scope;
mod settings;
mod tls;
mod write_deadline;

pub use api_key::ApiKey;
pub(crate) use gate::{AccessGate, is_public, may_continue, needs_all_projects};
pub(crate) use head_deadline::HeadDeadline;
pub use key_file::{KEY_FILE, KeyFile, KeyProject, KeyRecord};
pub(crate) use rate_limit::{Allowance, ListenerPlace, RateReached, network};
pub use scope::KeyScope;
pub use settings::{AccessSettings, RateLimits, ServerAccess, TlsFiles, check_certificates};
pub(crate) use tls::TlsAccess;
pub(crate) use write_deadline::WriteDeadline;
