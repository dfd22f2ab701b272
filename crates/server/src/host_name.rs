/// Returns the name of this machine, for alerts and records. It can be empty.
#[must_use]
pub fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    deloop_detect::clean(&name, 64)
}
