//! The programs that are measured, each in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Returns the path of the binary that is measured.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_deloop")
}

/// Returns the processor time that a process has used so far; nothing where there is no /proc.
fn cpu_time(process: u32) -> Duration {
    /// What a tick of the clock in /proc takes on Linux.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u32 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
    TICK * ticks
}

/// Runs `deloop stream` on these lines.
pub(crate) fn stream(lines: &[u8]) {
    let home = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(binary())
        .arg("stream")
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("its input").write_all(lines).expect("it reads");
    assert!(child.wait().expect("it ends").success());
}

/// What would limit the steps that are measured.
const NO_RATE: &str = "[serve.limits]\nrequests_per_second = 0\nnew_agents_per_minute = 0\n";

/// A `deloop serve`.
pub(crate) struct Serve {
    child: Child,
    pub(crate) port: u16,
    pub(crate) state: tempfile::TempDir,
    /// The keys that it was given, in the order of their names.
    pub(crate) keys: Vec<String>,
}

impl Serve {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), arguments)
    }

    /// Starts a server with a key for a project each, which have these names.
    pub(crate) fn with_keys(names: &[&str]) -> Self {
        let state = tempfile::tempdir().expect("a folder");
        let add = |name: &&str| {
            let output = Command::new(binary())
                .args(["keys", "add", name, "--scope", "ingest,read", "--project", name, "--state"])
                .arg(state.path())
                .env("HOME", state.path())
                .output()
                .expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let keys = names.iter().map(add).collect();
        let folder = state.path().join(".config/deloop");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("deloop.toml"), NO_RATE).expect("a file");
        let mut server = Self::start_in(state, &[]);
        server.keys = keys;
        server
    }

    fn start_in(state: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--state"])
            .arg(state.path())
            .args(arguments)
            .env("HOME", state.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().expect("its errors"));
        said.read_line(&mut line).expect("a line");
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("{line}"));
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        Self { child, port, state, keys: Vec::new() }
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time(self.child.id())
    }

    /// Returns the memory that it uses now, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The route to compare with.
pub(crate) struct EmptyRoute {
    child: Child,
    pub(crate) port: u16,
}

impl EmptyRoute {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child =
            Command::new(program).arg("--empty-route").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        Self { port: line.trim().parse().expect("a port"), child }
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time(self.child.id())
    }
}

impl Drop for EmptyRoute {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Redis server, without persistence.
pub(crate) struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    pub(crate) fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        let child = command.stdout(Stdio::null()).spawn().ok()?;
        for _ in 0..100 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Self { child, port })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Prints what Redis itself does per second: a step reads a session and writes it back.
    pub(crate) fn benchmark(&self) {
        let (port, size) = (self.port.to_string(), "4000");
        let output = Command::new("redis-benchmark")
            .args(["-p", &port, "-c", "16", "-n", "100000", "-d", size, "-t", "get,set", "--csv"])
            .output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        for line in text.unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split(',').map(|field| field.trim_matches('"')).collect();
            if let [name, per_second, _, _, p50, _, p99, ..] = fields[..] {
                println!(
                    "{:<40} {per_second:>12} {p50:>9} {p99:>9}",
                    format!("redis-benchmark {name}, 4 kB")
                );
            }
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
