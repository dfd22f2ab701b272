//! Which steps lift a stop, and which don't when stops are kept.

use deloop_engine::{Engine, Guard, Options, Session};
use deloop_policy::Profile;
use deloop_store::{Limits, MemoryStore};
use deloop_types::{Action, Body, Origin, Step, UserText};
use serde_json::json;

/// A profile whose stop ends the session, and one whose stop ends a run.
const PROFILES: [&str; 2] = ["signature", "default"];

struct Watched {
    store: MemoryStore<Session>,
    engine: Engine,
}

impl Watched {
    fn new(profile: &str) -> Self {
        let engine = Engine::new(Profile::named(profile).unwrap(), Options::default());
        Self { store: MemoryStore::new(Limits::default()), engine }
    }

    /// Sends a step, as a caller that may speak for a person or as one that may not. Returns the action, and whether the
    /// step lifted a stop.
    fn send(&self, step: &Step, keeps_stops: bool) -> (Action, bool) {
        let options = self.engine.options();
        let options = if keeps_stops { options.with_stops_kept() } else { options };
        let observed = self.engine.with_options(options).observe(&self.store, step).unwrap();
        (observed.decision.action, observed.lifted)
    }

    /// Repeats a call that fails until its agent is stopped.
    fn stop(&self, agent: Option<&str>) {
        let by = |mut step: Step| {
            step.agent = agent.map(str::to_owned);
            step
        };
        for n in 0..60 {
            let call = by(Step::call("s", "bash", json!({"command": "npm test"})).with_id(format!("c{n}")));
            let (action, _) = self.send(&call, true);
            let result = by(Step::result("s", false, "1 failed").for_call(format!("c{n}")));
            if action == Action::Stop || self.send(&result, true).0 == Action::Stop {
                return;
            }
        }
        panic!("it isn't stopped");
    }

    fn next(&self, agent: Option<&str>) -> Action {
        let mut step = Step::text("s", "Next.");
        step.agent = agent.map(str::to_owned);
        self.send(&step, true).0
    }
}

fn lifting() -> [Step; 3] {
    [Step::user("s", "Please do something else now."), Step::intervention("s"), Step::end("s")]
}

/// Every step that a client can send, on behalf of the agent that was stopped.
fn all() -> Vec<Step> {
    let mut steps = lifting().to_vec();
    for origin in [Origin::Harness, Origin::Notice, Origin::Schedule] {
        steps.push(Step::new("s", Body::User(UserText::new("Continue with the rest.", origin))));
    }
    let usage = r#"{"type": "usage", "session": "s", "cost_usd": 0.1}"#.parse().unwrap();
    let compact = r#"{"type": "compact", "session": "s"}"#.parse().unwrap();
    steps.extend([
        usage,
        compact,
        Step::chunk("s", "a"),
        Step::delivery("s", 3, false),
        Step::delivery("s", 3, true),
        Step::embedding("s", 1, vec![1.0, 0.0]),
        Step::state("s"),
        Step::swarm_end("s", "w"),
        Step::call("s", "read", json!({"path": "a.txt"})).with_id("other"),
        Step::result("s", true, "done").for_call("other"),
        Step::text("s", "Something new."),
    ]);
    steps
}

#[test]
fn a_persons_message_an_intervention_and_an_end_lift_a_stop_and_say_so() {
    for profile in PROFILES {
        for step in lifting() {
            let watched = Watched::new(profile);
            watched.stop(None);
            // What ends the session outlasts a person's message.
            let outlasts = profile == "signature" && matches!(step.body, Body::User(_));
            let (_, lifted) = watched.send(&step, false);
            assert_eq!(lifted, !outlasts, "{profile}: {step:?}");
            assert_eq!(watched.next(None) == Action::Stop, outlasts, "{profile}: {step:?}");
            assert!(
                !watched.send(&step, false).1 || outlasts,
                "nothing is left to lift: {profile}: {step:?}"
            );
        }
    }
}

#[test]
fn no_step_lifts_a_stop_that_is_kept() {
    for profile in PROFILES {
        for step in all() {
            let watched = Watched::new(profile);
            watched.stop(None);
            assert!(!watched.send(&step, true).1, "{profile}: {step:?}");
            assert_eq!(watched.next(None), Action::Stop, "{profile}: {step:?}");
        }
        let watched = Watched::new(profile);
        watched.stop(None);
        all().iter().for_each(|step| assert!(!watched.send(step, true).1));
        assert_eq!(watched.send(&Step::end("s"), true).0, Action::Stop, "{profile}: its answer is the stop");
    }
}

/// A session that wasn't stopped ends, and a message to it begins something new.
#[test]
fn kept_stops_change_nothing_for_what_was_not_stopped() {
    let watched = Watched::new("default");
    watched.next(None);
    watched.send(&Step::end("s"), true);
    assert_eq!(deloop_store::Store::sessions(&watched.store).unwrap(), []);
    // The subagent's stop stays, and the main agent starts over.
    watched.stop(Some("worker"));
    watched.send(&Step::user("s", "Please go on with something else."), true);
    assert_eq!((watched.next(Some("worker")), watched.next(None)), (Action::Stop, Action::Continue));
}

#[test]
fn new_agents_push_no_stopped_agent_out() {
    let watched = Watched::new("default");
    watched.stop(Some("worker"));
    for n in 0..70 {
        watched.next(Some(&format!("invented-{n}")));
    }
    assert_eq!(watched.next(Some("worker")), Action::Stop);
    assert_eq!(watched.next(Some("another")), Action::Continue);
}

#[test]
fn once_every_agent_is_stopped_the_session_is() {
    let watched = Watched::new("default");
    for n in 0..65 {
        watched.stop(Some(&format!("worker-{n}")));
    }
    for agent in ["worker-0", "worker-64", "another"] {
        assert_eq!(watched.next(Some(agent)), Action::Stop, "{agent}");
    }
    let message = Step::user("s", "Please do something else now.");
    assert_eq!(watched.send(&message, false), (Action::Continue, true));
    assert_eq!(watched.next(Some("another")), Action::Continue);
}

/// Programs that use the library speak for whom they like.
#[test]
fn a_guard_lets_a_person_lift_a_stop() {
    let guard = Guard::new(Profile::named("signature").unwrap());
    for n in 0..60 {
        guard.observe(&Step::call("s", "bash", json!({"command": "ls"})).with_id(format!("c{n}")));
    }
    assert_eq!(guard.observe(&Step::text("s", "Next.")).action, Action::Stop);
    guard.observe(&Step::intervention("s"));
    assert_eq!(guard.observe(&Step::text("s", "Next.")).action, Action::Continue);
}
