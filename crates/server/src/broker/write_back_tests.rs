//! Steps that arrive while sessions are being written to the database, and a process that is killed then.

use std::path::PathBuf;
use std::thread;

use deloop_engine::{Engine, Options};
use deloop_policy::Profile;
use rusqlite::Connection;

use super::*;
use crate::money::UtcDay;
use crate::reports;
use crate::wait::wait_for;

const NOW: Millis = Millis(20_000 * 24 * 3_600_000);
const SESSIONS: [&str; 4] = ["before", "both", "during", "ended"];

struct TestServer {
    broker: Broker,
    requester: Requester,
}

impl TestServer {
    fn open(folder: &Path) -> Self {
        let engine = Engine::new(Profile::named("default").unwrap(), Options::default());
        let (file, tell): (_, TellFn) = (folder.join("server.db"), Arc::new(|_| {}));
        let price: PriceFn = Arc::new(|_| {});
        let budgets = BudgetLimits::default();
        let broker =
            Broker::open(BrokerStore::File(&file), engine, price, budgets, false, NOW, tell).unwrap();
        Self { broker, requester: Requester::without_key(Project::default(), "test") }
    }

    fn send(&self, json: &str) {
        let step = deloop_formats::read_step(json.as_bytes()).unwrap();
        let sent = SentStep::new(step, json.as_bytes());
        self.broker.observe(&self.requester, CallerOptions::default(), &mut [sent], NOW).unwrap();
    }

    /// Sends a call, its result and what a request to the model cost: one dollar.
    fn turn(&self, session: &str, n: u32) {
        let call = format!(r#""session":"{session}","id":"{n}""#);
        self.send(&format!(r#"{{"type":"call",{call},"tool":"read","args":{{"path":"{n}.rs"}}}}"#));
        self.send(&format!(r#"{{"type":"result",{call},"ok":true,"output":"fn f{n}() {{}}"}}"#));
        self.send(&format!(r#"{{"type":"usage","session":"{session}","input_tokens":9,"cost_usd":1.0}}"#));
    }

    fn end(&self, session: &str) {
        self.send(&format!(r#"{{"type":"end","session":"{session}"}}"#));
    }

    /// Returns the states of all sessions, as text.
    fn states(&self) -> Vec<String> {
        let checkpoint =
            |session: &str| self.broker.checkpoint(&self.requester.project, &session.into(), NOW);
        SESSIONS.iter().map(|session| format!("{:?}", checkpoint(session).unwrap())).collect()
    }

    /// Returns what was spent, in dollars.
    fn spent(&self) -> String {
        let money = self.broker.money(NOW).unwrap();
        let report = reports::daily(money.records(), None, UtcDay::of(NOW), NOW).unwrap();
        serde_json::to_value(report).unwrap()["total"]["cost_usd"].to_string()
    }
}

/// Sends steps, writes to the database while another process has locked it, and sends more steps meanwhile. `while_locked`
/// gets the lock and the write. Returns the states at the end and the folder, as a process that was killed leaves it.
fn steps_during_a_write(
    while_locked: impl FnOnce(Connection, thread::ScopedJoinHandle<'_, Result<(), StoreError>>),
) -> (Vec<String>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::open(folder.path());
    for session in ["before", "both", "ended"] {
        server.turn(session, 1);
    }
    let lock = Connection::open(folder.path().join("server.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let states = thread::scope(|scope| {
        let write = scope.spawn(|| server.broker.write_back(NOW));
        wait_for("the write begins", || log(folder.path(), 1).exists());
        for session in ["both", "during", "both"] {
            server.turn(session, 2);
        }
        server.end("ended");
        let states = server.states();
        while_locked(lock, write);
        states
    });
    assert_eq!(server.states(), states, "writing changes nothing");
    (states, folder)
}

fn log(folder: &Path, generation: u32) -> PathBuf {
    folder.join(format!("server.steps-{generation}"))
}

#[test]
fn a_session_is_written_as_it_was_when_the_write_began() {
    let (states, folder) = steps_during_a_write(|lock, write| {
        lock.execute_batch("ROLLBACK").unwrap();
        write.join().unwrap().unwrap();
    });
    assert!(!log(folder.path(), 0).exists(), "the database has these steps");
    let server = TestServer::open(folder.path());
    assert_eq!(server.states(), states, "no step is lost or counted twice");
    assert_eq!(server.spent(), "6.0");
    drop(server);
    assert_eq!(TestServer::open(folder.path()).states(), states);
}

#[test]
fn after_a_failed_write_all_steps_are_in_the_log() {
    let (states, folder) = steps_during_a_write(|lock, write| {
        write.join().unwrap().unwrap_err();
        drop(lock);
    });
    assert!(log(folder.path(), 0).exists() && log(folder.path(), 1).exists());
    let server = TestServer::open(folder.path());
    assert_eq!(server.states(), states);
    assert_eq!(server.spent(), "6.0");
    let logs = |n| log(folder.path(), n).exists();
    assert_eq!([logs(0), logs(1), logs(2)], [false, true, false], "what the database has is deleted");
    drop(server);
    let server = TestServer::open(folder.path());
    assert_eq!((server.states(), server.spent()), (states, "6.0".to_owned()));
}

/// What was spent belongs to the steps that are in the log: once they are deleted, it must be in the database.
#[test]
fn a_write_after_a_failed_one_has_all_that_was_spent() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::open(folder.path());
    server.turn("before", 1);
    let lock = Connection::open(folder.path().join("server.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    server.broker.write_back(NOW).unwrap_err();
    server.turn("before", 2);
    drop(lock);
    server.broker.write_back(NOW).unwrap();
    drop(server);
    assert_eq!(TestServer::open(folder.path()).spent(), "2.0");
}
