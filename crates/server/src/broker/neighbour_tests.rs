//! What one key sends in large amounts, and others beside it.

use std::thread;

use deloop_engine::{Engine, Options};
use deloop_policy::Profile;

use super::step_log::entries;
use super::*;
use crate::access::{Allowance, RateLimits};
use crate::wait::wait_for;

const NOW: Millis = Millis(20_000 * 24 * 3_600_000);

fn open(folder: &Path) -> Broker {
    let engine = Engine::new(Profile::named("doom-loop").unwrap(), Options::default());
    let file = folder.join("server.db");
    let (price, tell): (PriceFn, TellFn) = (Arc::new(|_| {}), Arc::new(|_| {}));
    Broker::open(BrokerStore::File(&file), engine, price, BudgetLimits::default(), false, NOW, tell).unwrap()
}

fn requester(project: &str, limits: Option<RateLimits>) -> Requester {
    let allowance = limits.map(|limits| Arc::new(Allowance::new(project, limits, Clock::default().moment())));
    let project = Project::parse(project).unwrap();
    let actor = project.as_str().to_owned();
    Requester { all_projects: false, allowance, ..Requester::without_key(project, &actor) }
}

fn decision(answers: &StepAnswers, n: usize) -> &Decision {
    answers.decisions[n].as_ref().unwrap()
}

/// A call by a session of its own, and in a swarm of its own if `swarm` says so.
fn call(n: usize, swarm: bool) -> String {
    let swarm = if swarm { format!(r#""swarm":"w{n}","#) } else { String::new() };
    format!(r#"{{"type":"call","session":"s{n}",{swarm}"tool":"read","args":{{"path":"{n}.rs"}}}}"#)
}

fn observe(broker: &Broker, requester: &Requester, texts: &[String], now: Millis) -> StepAnswers {
    let read = |text: &str| deloop_formats::read_step(text.as_bytes()).unwrap();
    let mut steps: Vec<_> = texts.iter().map(|text| SentStep::new(read(text), text.as_bytes())).collect();
    broker.observe(requester, CallerOptions::default(), &mut steps, now).unwrap()
}

fn local(broker: &Broker) -> &local::LocalStore {
    let Backend::Local(store) = &broker.backend else { panic!("a file") };
    store
}

/// Returns the projects of the steps in the log, in order, each once per run.
fn logged_projects(folder: &Path) -> Vec<String> {
    let log = std::fs::read(folder.join("server.steps-0")).unwrap();
    let mut projects: Vec<String> = entries(&log).map(|step| step.project.to_owned()).collect();
    projects.dedup();
    projects
}

/// Sends a batch, and the step of another project while the first slice waits for its turn. Returns the order of the log.
fn beside_a_batch(batch: &[String]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let broker = open(folder.path());
    let (large, small) = (requester("large", None), requester("small", None));
    let turns = local(&broker).turns();
    thread::scope(|scope| {
        let before = turns.all();
        scope.spawn(|| observe(&broker, &large, batch, NOW));
        wait_for("the first slice waits", || turns.waiting() == 1);
        scope.spawn(|| observe(&broker, &small, &[call(0, true)], NOW));
        wait_for("so does the step of the other project", || turns.waiting() == 2);
        drop(before);
    });
    logged_projects(folder.path())
}

#[test]
fn the_steps_of_others_come_between_two_slices_of_a_batch() {
    let many: Vec<String> = (0..1_000).map(|n| call(n % 3, false)).collect();
    assert_eq!(beside_a_batch(&many), ["large", "small", "large"]);
    let text = "x".repeat(60 << 10);
    let large: Vec<String> =
        (0..20).map(|n| format!(r#"{{"type":"turn","session":"s{}","text":"{text}"}}"#, n % 3)).collect();
    assert_eq!(beside_a_batch(&large), ["large", "small", "large"]);
}

#[test]
fn the_steps_of_others_come_between_new_swarms() {
    let many: Vec<String> = (0..1_000).map(|n| call(n, true)).collect();
    assert_eq!(beside_a_batch(&many), ["large", "small", "large"]);
}

#[test]
fn a_batch_in_slices_is_answered_in_order_and_decided_about_again_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (broker, owner) = (open(folder.path()), requester("a", None));
    let batch: Vec<String> = (0..500).map(|n| call(n % 7, n % 2 == 0)).collect();
    let answers = observe(&broker, &owner, &batch, NOW);
    let steps = |n: usize| (decision(&answers, n).session.to_string(), decision(&answers, n).step);
    assert_eq!((steps(0), steps(7), steps(499)), (("s0".into(), 0), ("s0".into(), 1), ("s2".into(), 71)));
    let state = |broker: &Broker| format!("{:?}", broker.checkpoint(&owner.project, &"s2".into(), NOW));
    let before = state(&broker);
    drop(broker);
    let mut broker = open(folder.path());
    broker.recover(NOW);
    assert_eq!(state(&broker), before);
}

/// The cost of swarms is that of their number: while they are counted, written, and found again after a crash.
#[test]
fn new_swarms_cost_as_much_each_however_many_there_are() {
    let owner = requester("a", None);
    let swarms = |broker: &Broker, count: usize| {
        let batch: Vec<String> =
            (0..count).map(|n| call(n % 50, true).replace("\"w", &format!("\"w{n}-"))).collect();
        observe(broker, &owner, &batch, NOW);
    };
    deloop_testing::assert_linear("a write to the database", 8_000, |count| {
        let folder = tempfile::tempdir().unwrap();
        let broker = open(folder.path());
        swarms(&broker, count);
        broker.write_back(NOW).unwrap();
        assert_eq!(broker.swarms(&owner.project, NOW).unwrap().len(), count);
    });
    deloop_testing::assert_linear("a start after a crash", 8_000, |count| {
        let folder = tempfile::tempdir().unwrap();
        swarms(&open(folder.path()), count);
        let mut broker = open(folder.path());
        broker.recover(NOW);
        assert_eq!(broker.swarms(&owner.project, NOW).unwrap().len(), count);
    });
}

#[test]
fn a_key_uses_so_many_swarms_within_an_hour_and_further_steps_are_judged_without() {
    let folder = tempfile::tempdir().unwrap();
    let broker = open(folder.path());
    let limits = RateLimits { swarms_per_hour: 2, ..RateLimits::default() };
    let (owner, other) = (requester("a", Some(limits)), requester("b", Some(limits)));
    let batch: Vec<String> = (0..4).map(|n| call(n, true)).collect();
    let answers = observe(&broker, &owner, &batch, NOW);
    let limit = |answers: &StepAnswers, n: usize| decision(answers, n).extra.get("limit").cloned();
    assert_eq!((limit(&answers, 0), limit(&answers, 1)), (None, None));
    for n in [2, 3] {
        let limit = limit(&answers, n).unwrap_or_default().to_string();
        assert!(limit.contains("2 swarms") && limit.contains("`swarms_per_hour`"), "{limit}");
    }
    assert_eq!(answers.limited, [0, 2]);
    assert_eq!(broker.swarms(&owner.project, NOW).unwrap(), ["w0", "w1"]);
    assert!(broker.session(&owner.project, &"s3".into(), NOW).unwrap().is_some(), "its steps are judged");
    assert_eq!(observe(&broker, &other, &batch[..1], NOW).limited, [0, 0], "others have theirs");
    let later = Millis(NOW.0 + 3_600_001);
    assert_eq!(observe(&broker, &owner, &batch[2..], later).limited, [0, 0]);
    // What was decided without a swarm is decided so again.
    drop(broker);
    let mut broker = open(folder.path());
    broker.recover(later);
    assert_eq!(broker.swarms(&owner.project, later).unwrap(), ["w0", "w1", "w2", "w3"]);
}

#[test]
fn a_step_that_was_judged_without_its_swarm_is_so_again_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let limits = RateLimits { swarms_per_hour: 1, ..RateLimits::default() };
    let owner = requester("a", Some(limits));
    observe(&open(folder.path()), &owner, &[call(0, true), call(1, true)], NOW);
    let mut broker = open(folder.path());
    broker.recover(NOW);
    assert_eq!(broker.swarms(&owner.project, NOW).unwrap(), ["w0"]);
}

#[test]
fn a_key_starts_so_many_sessions_and_agents_a_minute_and_the_rest_continue() {
    let folder = tempfile::tempdir().unwrap();
    let broker = open(folder.path());
    let limits = RateLimits { new_agents_per_minute: 3, ..RateLimits::default() };
    let owner = requester("a", Some(limits));
    let agent = |session: usize, agent: &str| {
        call(session, false).replace("\"tool\"", &format!(r#""agent":"{agent}","tool""#))
    };
    let batch =
        [call(0, false), agent(0, "x"), call(1, false), call(1, false), agent(1, "y"), call(2, false)];
    let answers = observe(&broker, &owner, &batch, NOW);
    assert_eq!(answers.limited, [2, 0]);
    for n in [4, 5] {
        let limit = decision(&answers, n).extra["limit"].to_string();
        assert!(limit.contains("3 sessions") && limit.contains("`new_agents_per_minute`"), "{limit}");
        assert_eq!(decision(&answers, n).action, deloop_types::Action::Continue);
    }
    let steps = |broker: &Broker, session: &str, now| {
        let report = broker.session(&owner.project, &session.into(), now).unwrap()?;
        serde_json::to_value(report).unwrap()["steps"].as_u64()
    };
    assert_eq!((steps(&broker, "s1", NOW), steps(&broker, "s2", NOW)), (Some(2), None));
    assert_eq!(observe(&broker, &owner, &batch[..4], NOW).limited, [0, 0], "those that run continue");
    let later = Millis(NOW.0 + 60_000);
    assert_eq!(observe(&broker, &owner, &batch[4..], later).limited, [0, 0]);
    drop(broker);
    let mut broker = open(folder.path());
    broker.recover(later);
    assert_eq!((steps(&broker, "s1", later), steps(&broker, "s2", later)), (Some(5), Some(1)));
}
