//! What somebody does with the server in the middle of a run: writes to the agent, or kills the server. The agent's command
//! waits until it is done, so that the request in which it must show is known.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::cases::Case;
use super::model::script::{Act, Script, Turn};
use super::place::{self, Place, STUCK};
use super::seen::Seen;
use super::server::{ServerProcess, person, succeed};

/// What the operator says.
const MESSAGE: &str = "Use the staging database, and leave production alone.";
/// How often the agent is looked at.
const BEAT: Duration = Duration::from_millis(20);

/// The name of the binary behind the script that measures it.
const ITSELF: &str = "deloop-itself";
/// Passes a hook's event on and notes when it began and ended, in milliseconds.
const TIMED: &str = "#!/bin/sh\nbegun=$(date +%s%3N)\n\"$0-itself\" \"$@\"\ncode=$?\n\
    echo \"$begun $(date +%s%3N)\" >> \"$E2E_COUNTER.events\"\nexit $code\n";

/// What is done during the run.
type VisitFn = Box<dyn FnOnce(&Place) -> Result<(), String> + Send>;

/// Somebody who waits for their moment in a run.
pub(super) struct ServerVisit {
    thread: JoinHandle<Result<Vec<u64>, String>>,
    over: Arc<AtomicBool>,
}

impl ServerVisit {
    /// Ends with the run. Returns how long each event before the visit took, in milliseconds.
    pub(super) fn end(self) -> Result<Vec<u64>, String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err("the visitor panicked".to_owned()))
    }
}

/// What the model does: in both cases, its third call waits for the visitor.
pub(super) fn script(case: Case) -> Script {
    let shell = |command: &str| Turn::Acts(vec![Act::Shell(command.to_owned())]);
    let note = |what: &str| shell(&format!("sh note.sh {what}"));
    Script::Turns(match case {
        Case::ServerGone => {
            let stuck = || shell(STUCK);
            vec![stuck(), stuck(), shell("sh wait.sh"), stuck(), stuck(), stuck(), stuck()]
        }
        _ => vec![note("one"), note("two"), shell("sh wait.sh"), note("three"), note("four")],
    })
}

/// Prepares what the case asks for, if it does.
pub(super) fn prepare(
    case: Case,
    place: &Place,
    server: &ServerProcess,
    operator: &Path,
) -> Result<Option<ServerVisit>, String> {
    let act: VisitFn = match case {
        Case::Message => {
            let (server, operator) = (server.clone(), operator.to_owned());
            Box::new(move |place| say(place, &server, &operator))
        }
        Case::ServerGone => {
            fs::rename(place.deloop(), place.bin.join(ITSELF))
                .and_then(|()| place::write_program(&place.deloop(), TIMED))
                .map_err(|e| format!("the hook can't be timed: {e}"))?;
            let server = server.clone();
            Box::new(move |_| server.kill())
        }
        _ => return Ok(None),
    };
    let over = Arc::new(AtomicBool::new(false));
    let (place, ends) = (place.clone(), Arc::clone(&over));
    let thread = thread::spawn(move || {
        while place.ran("wait") == 0 {
            if ends.load(Ordering::Relaxed) {
                return Err("the agent never waited".to_owned());
            }
            thread::sleep(BEAT);
        }
        let before = events(&place);
        let done = act(&place);
        fs::write(place.signal(), "").map_err(|e| e.to_string())?;
        done.map(|()| before)
    });
    Ok(Some(ServerVisit { thread, over }))
}

/// Writes to the only session of the server, as somebody with this home.
fn say(place: &Place, server: &ServerProcess, operator: &Path) -> Result<(), String> {
    let sessions = server.sessions()?;
    let [session] = sessions.as_slice() else { return Err(format!("not one session: {sessions:?}")) };
    let said = succeed(person(&place.deloop(), operator).args(["say", session, MESSAGE, "--json"]))?;
    if said.contains("\"queued\":true") { Ok(()) } else { Err(format!("`deloop say` prints {said}")) }
}

/// How long each event of a timed hook took so far, in milliseconds.
fn events(place: &Place) -> Vec<u64> {
    let text = fs::read_to_string(place.events()).unwrap_or_default();
    let took = |line: &str| {
        let (begun, ended) = line.split_once(' ')?;
        ended.parse::<u64>().ok()?.checked_sub(begun.parse().ok()?)
    };
    text.lines().filter_map(took).collect()
}

/// Whether the agent went on, and the model read what the case asks for in the right request.
pub(super) fn judge(case: Case, seen: &Seen<'_>) -> Result<String, String> {
    seen.expect(seen.ended.code == Some(0), "the exit code is not 0")?;
    seen.expect(seen.place.ran("wait") == 1, "it didn't wait once")?;
    if case == Case::ServerGone {
        seen.expect(seen.place.ran("check") == 6, "not every call ran")?;
        // The server knew of two failures; the engine of this machine counts from the third on.
        seen.expect_first("[deloop]", 6)?;
        return Ok("this machine took over".to_owned());
    }
    let ran = ["one", "two", "three", "four"].iter().all(|note| seen.place.ran(note) == 1);
    seen.expect(ran, "not every call ran")?;
    seen.expect_first(MESSAGE, 3)?;
    let once = seen.record.session[3..].iter().all(|asked| asked.text().matches(MESSAGE).count() == 1);
    seen.expect(once, "the model got the message more than once")?;
    Ok("the message is in the next request, once".to_owned())
}

/// Whether the audit log names who wrote to the agent, and the server decided about everything.
pub(super) fn judge_message(seen: &Seen<'_>, server: &ServerProcess) -> Result<(), String> {
    let records = server.audited("session.message")?;
    let actors: Vec<&str> = records.iter().filter_map(|record| record["actor"].as_str()).collect();
    seen.expect(actors == ["alice"], &format!("the audit log has {records:?}"))?;
    seen.expect(server.sessions()? == [records[0]["session"].clone()], "it names another session")?;
    let status = status(seen.place)?;
    seen.expect(!status.contains("Server:"), &format!("the server didn't decide everything: {status}"))
}

/// Whether the agent didn't notice that the server was gone, and people can.
pub(super) fn judge_gone(seen: &Seen<'_>, server: &ServerProcess, before: &[u64]) -> Result<String, String> {
    let status = status(seen.place)?;
    let said = status.contains("decided on this machine because it didn't answer");
    seen.expect(said, &format!("`deloop status` prints {status}"))?;
    seen.expect(server.audited("server.start")?.len() == 1, "the audit log lost its beginning")?;
    if seen.remembers {
        return Ok("in one process, whose events aren't timed".to_owned());
    }
    let all = events(seen.place);
    let after = all.get(before.len()..).unwrap_or_default();
    let slowest = |events: &[u64]| events.iter().max().copied().unwrap_or_default();
    let figures =
        format!("events took up to {} ms with the server and {} ms without", slowest(before), slowest(after));
    seen.expect(before.len() >= 4 && after.len() >= 8, &format!("{} events were timed", all.len()))?;
    Ok(figures)
}

/// What `deloop status` says to the agent's user.
fn status(place: &Place) -> Result<String, String> {
    let itself = place.bin.join(ITSELF);
    let program = if itself.exists() { itself } else { place.deloop() };
    succeed(person(&program, &place.home).arg("status"))
}
