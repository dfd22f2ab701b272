//! The server's own clock jumps.

use deloop_engine::{Engine, Options};
use deloop_policy::Profile;

use super::*;

const DAY: i64 = 24 * 3_600_000;
const TODAY: i64 = 20_000 * DAY;

struct JumpingServer {
    broker: Broker,
    requester: Requester,
    _folder: tempfile::TempDir,
}

impl JumpingServer {
    fn start(profile: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(Profile::named(profile).unwrap(), Options::default());
        let file = folder.path().join("server.db");
        let broker = Broker::open(
            BrokerStore::File(&file),
            engine,
            Arc::new(|_| {}),
            BudgetLimits::default(),
            false,
            Millis(0),
            Arc::new(|_| {}),
        )
        .unwrap();
        let requester = Requester::without_key(Project::default(), "test");
        Self { broker, requester, _folder: folder }
    }

    /// Sends a step without a time of its own. Returns its index.
    fn step(&self, json: &str, day: i64) -> u64 {
        let step = deloop_formats::read_step(json.as_bytes()).unwrap();
        let sent = SentStep::new(step, json.as_bytes());
        let now = Millis(TODAY + day * DAY);
        let answers =
            self.broker.observe(&self.requester, CallerOptions::default(), &mut [sent], now).unwrap();
        answers.decisions[0].as_ref().unwrap().step
    }

    fn turn(&self, day: i64) -> u64 {
        self.step(r#"{"type":"turn","session":"s1","text":"Hello."}"#, day)
    }

    fn write_back(&self, day: i64) {
        self.broker.write_back(Millis(TODAY + day * DAY)).unwrap();
    }
}

#[test]
fn a_clock_that_jumps_back_loses_no_session_and_keeps_the_order() {
    let server = JumpingServer::start("turn-hash");
    for (n, day) in (0..).zip([0, -4_000, -3_999, 0, -8_000, 1]) {
        assert_eq!(server.turn(day), n, "day {day}");
        server.write_back(day);
    }
}

#[test]
fn a_clock_that_jumps_ahead_by_less_than_a_week_loses_no_session() {
    let server = JumpingServer::start("turn-hash");
    assert_eq!((server.turn(0), server.turn(6), server.turn(0), server.turn(6)), (0, 1, 2, 3));
    server.write_back(12);
    assert_eq!(server.turn(12), 4);
}

/// As documented: a week without a step is a week by the server's clock.
#[test]
fn a_clock_that_jumps_ahead_by_more_than_a_week_starts_sessions_anew() {
    let server = JumpingServer::start("turn-hash");
    assert_eq!((server.turn(0), server.turn(1)), (0, 1));
    assert_eq!(server.turn(9), 0);
    assert_eq!((server.turn(1), server.turn(0)), (1, 2));
}

#[test]
fn claims_of_swarms_survive_a_clock_that_jumps() {
    let server = JumpingServer::start("doom-loop");
    for (n, day) in (0..40).zip([0, 4_000, -4_000, 1, -20_000, 0].into_iter().cycle()) {
        let call = format!(
            r#"{{"type":"call","session":"w{n}","swarm":"fix","id":"c{n}","tool":"bash","args":{{"command":"npm test"}}}}"#
        );
        assert_eq!(server.step(&call, day), 0);
    }
}
