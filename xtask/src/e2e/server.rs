//! A `deloop serve` with keys beside a run. It enforces, the hooks only nudge: what is blocked or stopped was decided by it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::agents::Agent;
use super::cases::Case;
use super::place::{self, Place};
use super::seen::Seen;
use super::server_visit::{self, ServerVisit};

/// A running server, and what somebody does with it during the run. It ends when dropped.
pub(super) struct RunServer {
    process: ServerProcess,
    /// The key of the agents: they may send steps.
    agents_key: String,
    visit: Option<ServerVisit>,
}

/// The process, its address and its folder.
#[derive(Clone)]
pub(super) struct ServerProcess {
    child: Arc<Mutex<Child>>,
    url: String,
    /// A key that may read.
    reader: String,
    state: PathBuf,
    /// The deloop that people run.
    program: PathBuf,
}

impl RunServer {
    /// Starts a server if the case has one, and makes the agent's hooks report to it. In some cases, somebody waits to do
    /// something with it during the run.
    pub(super) fn beside(case: Case, agent: &dyn Agent, place: &Place) -> Result<Option<Self>, String> {
        if !case.has_server() {
            return Ok(None);
        }
        // A running server may take a second to notice a new key.
        let [agents_key, alice, reader] = [("agents", "ingest"), ("alice", "operate"), ("reader", "read")]
            .map(|(name, scope)| add_key(place, name, scope));
        let process = ServerProcess::start(place, reader?)?;
        let agents_key = agents_key?;
        configure(&place.home, None, &agents_key)?;
        let operator = place.root.join("operator");
        configure(&operator, Some(&process.url), &alice?)?;
        let mut install = person(&process.program, &place.home);
        install.args(["install", agent.name(), "--scope", "user", "--mode", "nudge"]);
        if case != Case::Server || !agent.ends_by_signal_only() {
            // The others get the server from `deloop run --server`.
            install.args(["--server", &process.url]);
        }
        succeed(install.current_dir(&place.work))?;
        let visit = server_visit::prepare(case, place, &process, &operator)?;
        Ok(Some(Self { process, agents_key, visit }))
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.process.url
    }

    /// Returns what came of the case, or what is wrong.
    pub(super) fn judge(&mut self, case: Case, seen: &Seen<'_>) -> Result<String, String> {
        let visited = self.visit.take().map(ServerVisit::end).transpose()?;
        let said = seen.judge(case)?;
        match (case, visited) {
            (Case::Message, Some(_)) => server_visit::judge_message(seen, &self.process).map(|()| said),
            (Case::ServerGone, Some(before)) => {
                server_visit::judge_gone(seen, &self.process, &before).map(|more| format!("{said}, {more}"))
            }
            _ => judge_stop(seen, &self.process, &self.agents_key).map(|()| said),
        }
    }
}

impl ServerProcess {
    fn start(place: &Place, reader: String) -> Result<Self, String> {
        let (program, state) = (place.deloop(), place.server());
        let mut serve = person(&program, &place.home);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--profile", "default", "--state"]).arg(&state);
        let broken = |e: std::io::Error| format!("the server: {e}");
        let mut child = serve
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(broken)?;
        let mut line = String::new();
        if let Some(stderr) = child.stderr.take() {
            BufReader::new(stderr).read_line(&mut line).map_err(broken)?;
        }
        let url = line.trim().strip_prefix("deloop: listening on ").unwrap_or_default().to_owned();
        let process = Self { child: Arc::new(Mutex::new(child)), url, reader, state, program };
        if process.url.starts_with("http://") {
            Ok(process)
        } else {
            Err(format!("the server says {line:?}"))
        }
    }

    /// Runs a command over the server's folder and returns its output.
    fn command(&self, words: &[&str]) -> Result<String, String> {
        let mut command = person(&self.program, &self.state);
        succeed(command.args(words).arg("--state").arg(&self.state))
    }

    /// Returns the records of this action, after the log was verified.
    pub(super) fn audited(&self, action: &str) -> Result<Vec<Value>, String> {
        self.command(&["audit", "verify"])?;
        let lines = self.command(&["audit", "query", "--action", action, "--json"])?;
        let records = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        records.map_err(|e| format!("`deloop audit query --json`: {e}"))
    }

    /// Ends the process as `kill -9` does.
    pub(super) fn kill(&self) -> Result<(), String> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child
            .kill()
            .and_then(|()| child.wait())
            .map(drop)
            .map_err(|e| format!("the server can't be killed: {e}"))
    }

    /// Returns the names of the sessions it knows.
    pub(super) fn sessions(&self) -> Result<Vec<String>, String> {
        let answer = self.request("GET /v1/sessions", &self.reader, "")?;
        let names = answer["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn request(&self, what: &str, key: &str, body: &str) -> Result<Value, String> {
        let broken = |e: std::io::Error| format!("the server: {e}");
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).map_err(broken)?;
        let request = format!(
            "{what} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(broken)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(broken)?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body).map_err(|e| format!("the server answered {answer:?}: {e}"))
    }
}

impl Drop for RunServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
    }
}

/// Fails unless the audit log holds one stop with its turns, and later steps of that session get the same stop.
fn judge_stop(seen: &Seen<'_>, process: &ServerProcess, key: &str) -> Result<(), String> {
    let stops = process.audited("decision.stop")?;
    let [stop] = stops.as_slice() else { return Err(format!("not one stop is recorded: {stops:?}")) };
    let turns = stop["turns"]["turns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let history = turns.len() >= 5 && turns.iter().all(|turn| turn.to_string().contains("sh check.sh"));
    seen.expect(history, &format!("the stop has no history of turns: {stop}"))?;
    for text in ["Let me try again.", "One more time."] {
        let step = json!({"type": "turn", "session": stop["session"], "text": text});
        let decision = process.request("POST /v1/steps", key, &step.to_string())?;
        let of = |decision: &Value| ["action", "id", "status"].map(|field| decision[field].clone());
        let same = of(&decision) == of(&stop["decision"]);
        seen.expect(same, &format!("a later step gets {decision}, not {stop}"))?;
    }
    let stops = process.audited("decision.stop")?.len();
    seen.expect(stops == 1, "a stop that still applies is recorded again")
}

/// Creates a key of the server and returns it.
fn add_key(place: &Place, name: &str, scope: &str) -> Result<String, String> {
    let mut command = person(&place.deloop(), &place.home);
    command.args(["keys", "add", name, "--scope", scope, "--state"]).arg(place.server());
    succeed(&mut command).map(|key| key.trim().to_owned())
}

/// Writes the configuration of somebody who uses the server.
fn configure(home: &Path, url: Option<&str>, key: &str) -> Result<(), String> {
    let broken = |e: std::io::Error| format!("the configuration: {e}");
    place::write(&home.join("server.key"), key).map_err(broken)?;
    let url = url.map(|url| format!("url = \"{url}\"\n")).unwrap_or_default();
    let settings = format!("[server]\n{url}key_file = \"~/server.key\"\n");
    place::write(&home.join(".config/deloop/deloop.toml"), &settings).map_err(broken)
}

/// The command as a person with this home runs it.
pub(super) fn person(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home);
    if home.exists() {
        command.current_dir(home);
    }
    command
}

/// Runs a command and returns its output.
pub(super) fn succeed(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } =
        command.output().map_err(|e| format!("{command:?} doesn't start: {e}"))?;
    let said = String::from_utf8_lossy(&stdout).into_owned();
    if status.success() {
        return Ok(said);
    }
    Err(format!("{command:?}: {said}{}", String::from_utf8_lossy(&stderr)))
}
