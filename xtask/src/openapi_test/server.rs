//! A server that is tested.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a server may take to start: so many times 50 ms.
const PATIENCE: u32 = 200;

/// A server on a free port, ended when it is dropped.
pub(super) struct TestedServer {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl TestedServer {
    /// Starts a server with its state in this folder.
    pub(super) fn start(deloop: &Path, state: PathBuf) -> Result<Self, String> {
        std::fs::create_dir_all(&state).map_err(|error| error.to_string())?;
        let log = state.join("stderr.txt");
        let errors = File::create(&log).map_err(|error| error.to_string())?;
        let mut command = Command::new(deloop);
        command.args(["serve", "--listen", "127.0.0.1:0", "--state"]).arg(&state);
        // The configuration of whoever runs this must not matter.
        command.env("HOME", &state).env("XDG_CONFIG_HOME", &state).env_remove("DELOOP").current_dir(&state);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        for _ in 0..PATIENCE {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let address = text.trim_end().strip_prefix("deloop: listening on http://");
            if let Some(address) = address.filter(|_| text.ends_with('\n')).and_then(|a| a.parse().ok()) {
                return Ok(Self { child, address, log });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(format!("the server didn't start: {}", std::fs::read_to_string(&log).unwrap_or_default()))
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends it and returns what it reported since it was ready. Fails if it ended before.
    pub(super) fn stop(mut self) -> Result<String, String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("the server ended with {status}"));
        }
        let said = std::fs::read_to_string(&self.log).map_err(|error| error.to_string())?;
        Ok(said.lines().skip(1).collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for TestedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
