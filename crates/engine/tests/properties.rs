//! What holds for every session, whatever happens in it.

mod made_up;

use std::collections::{BTreeMap, BTreeSet};

use deloop_detect::{Detector, Happening, Moment};
use deloop_engine::Guard;
use deloop_policy::{PROFILES, Profile, Registry};
use deloop_types::{Action, Finding, SessionId, Step};
use proptest::prelude::*;

fn guards() -> impl Iterator<Item = (&'static str, Guard)> {
    PROFILES.iter().map(|(name, _)| (*name, Guard::new(Profile::named(name).unwrap())))
}

/// All that a caller sees of a step, evidence included.
fn seen(guard: &Guard, step: &Step) -> String {
    let observed = guard.observe_all(step);
    format!("{} {:?}", serde_json::to_string(&observed.decision).unwrap(), observed.events)
}

/// Writes everything that `from` knows of these steps as JSON text and reads it into `to`: swarms with their
/// sessions first, then the sessions that are in none.
fn copy(from: &Guard, to: &Guard, steps: &[Step]) {
    let mut swarms: BTreeMap<&str, BTreeSet<&SessionId>> = BTreeMap::new();
    for step in steps {
        if let Some(swarm) = &step.swarm {
            swarms.entry(swarm).or_default().insert(&step.session);
        }
    }
    for (swarm, members) in &swarms {
        let checkpoint = from.checkpoint_swarm(swarm, |session| members.contains(session)).unwrap();
        let json = serde_json::to_string(&checkpoint).unwrap();
        to.restore_swarm(swarm, serde_json::from_str(&json).unwrap()).unwrap();
    }
    for session in from.sessions() {
        if !swarms.values().any(|members| members.contains(&session)) {
            let json = serde_json::to_string(&from.checkpoint(&session).unwrap()).unwrap();
            to.restore(&session, serde_json::from_str(&json).unwrap()).unwrap();
        }
    }
}

fn a_checkpoint_changes_nothing(steps: &[Step], middle: usize) -> Result<(), TestCaseError> {
    for ((name, whole), (_, restored)) in guards().zip(guards()) {
        for step in &steps[..middle] {
            whole.observe(step);
        }
        copy(&whole, &restored, &steps[..middle]);
        for step in &steps[middle..] {
            prop_assert_eq!(seen(&whole, step), seen(&restored, step), "{}: {:?}", name, step);
        }
    }
    Ok(())
}

/// Each session's own steps in their order, the sessions mixed as `turns` says.
fn mixed(steps: &[Step], turns: &[usize]) -> Vec<Step> {
    let mut sessions: BTreeMap<&SessionId, Vec<&Step>> = BTreeMap::new();
    for step in steps.iter().rev() {
        sessions.entry(&step.session).or_default().push(step);
    }
    let mut queues: Vec<Vec<&Step>> = sessions.into_values().collect();
    let mut out = Vec::with_capacity(steps.len());
    for turn in turns.iter().cycle() {
        queues.retain(|queue| !queue.is_empty());
        let Some(count) = std::num::NonZeroUsize::new(queues.len()) else { break };
        out.extend(queues[*turn % count].pop().cloned());
    }
    out
}

fn by_session(guard: &Guard, steps: &[Step]) -> BTreeMap<SessionId, Vec<String>> {
    let mut answers: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
    for step in steps {
        answers.entry(step.session.clone()).or_default().push(seen(guard, step));
    }
    answers
}

fn their_order_does_not_matter(mut steps: Vec<Step>, turns: &[usize]) -> Result<(), TestCaseError> {
    for step in &mut steps {
        step.swarm = None;
    }
    let other = mixed(&steps, turns);
    prop_assert_eq!(steps.len(), other.len());
    for ((name, one), (_, two)) in guards().zip(guards()) {
        prop_assert_eq!(by_session(&one, &steps), by_session(&two, &other), "{}", name);
    }
    Ok(())
}

fn random_steps(seed: u64) -> Vec<Step> {
    deloop_conformance::random::lines(seed).iter().map(|line| line.parse().unwrap()).collect()
}

proptest! {
    // A case runs through six profiles, twice; PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 6,
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_checkpoint_changes_nothing_in_random_sessions(seed: u64, share in 0..=100_usize) {
        let steps = random_steps(seed);
        a_checkpoint_changes_nothing(&steps, steps.len() * share / 100)?;
    }

    #[test]
    fn a_checkpoint_changes_nothing_in_odd_sessions(steps in made_up::steps(), share in 0..=100_usize) {
        a_checkpoint_changes_nothing(&steps, steps.len() * share / 100)?;
    }

    #[test]
    fn the_order_of_random_sessions_does_not_matter(
        seed: u64,
        turns in proptest::collection::vec(0..12_usize, 1..40),
    ) {
        their_order_does_not_matter(random_steps(seed), &turns)?;
    }

    #[test]
    fn the_order_of_odd_sessions_does_not_matter(
        steps in made_up::steps(),
        turns in proptest::collection::vec(0..12_usize, 1..40),
    ) {
        their_order_does_not_matter(steps, &turns)?;
    }

    #[test]
    fn nothing_is_found_where_nothing_is_alike(steps in made_up::all_different()) {
        for (name, guard) in guards() {
            for step in &steps {
                let decision = guard.observe(step);
                prop_assert_eq!(decision.action, Action::Continue, "{}: {:?}", name, step);
                prop_assert_eq!(decision.findings, Vec::<Finding>::new(), "{}: {:?}", name, step);
            }
        }
    }
}

/// The properties above would hold for an engine that never says anything.
#[test]
fn the_sessions_reach_every_profile() {
    for (name, guard) in guards() {
        let steps: Vec<Step> = (0..40).flat_map(random_steps).collect();
        let found = steps.iter().filter(|step| !guard.observe(step).findings.is_empty()).count();
        assert!(found > 5, "{name}: {found} of {} steps", steps.len());
    }
}

/// A detector of somebody else: turns that are all capitals.
struct Shouting;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Loudness {
    /// From how many capitals on a turn is loud.
    capitals: usize,
}

impl Default for Loudness {
    fn default() -> Self {
        Self { capitals: 3 }
    }
}

impl Detector for Shouting {
    type Params = Loudness;
    type Memory = u64;

    fn name(&self) -> &'static str {
        "shouting"
    }

    fn page(&self) -> &'static str {
        "# shouting"
    }

    fn look(&self, params: &Loudness, moment: &Moment<'_>, loud: &mut u64) -> Option<Finding> {
        let Happening::Turn(turn) = &moment.event else { return None };
        if turn.text.chars().filter(|c| c.is_uppercase()).count() < params.capitals {
            return None;
        }
        *loud += 1;
        Some({
            let mut found = Finding::new(self.name().to_owned(), *loud);
            found.since = moment.step;
            found.summary = format!("{loud} loud turns");
            found
        })
    }
}

const LOUD: &str = r#"
name = "loud"
rules = "counter"
order = ["shouting", "duplicate-turn"]

[detectors.shouting]
ladder = "loud"
capitals = 5

[[ladders.loud.rungs]]
at = 2
action = "nudge"
message = "You shouted {count} times."

[[ladders.loud.rungs]]
at = 4
action = "stop"
status = "TOO_LOUD"
message = "{summary}."
"#;

#[test]
fn a_detector_of_ones_own_works_in_a_profile() {
    let registry = Registry::default().with(&Shouting);
    let guard = || Guard::new(Profile::from_toml(LOUD, &registry).unwrap());
    let first = guard();
    let say = |guard: &Guard, text: &str| guard.observe(&Step::text("s", text));

    assert_eq!(say(&first, "HELP").findings, [], "four capitals are not loud");
    let once = say(&first, "HELLO");
    assert_eq!((once.action, once.findings[0].detector.as_str()), (Action::Continue, "shouting"));
    let twice = say(&first, "HELLO THERE");
    assert_eq!((twice.action, twice.message.as_deref()), (Action::Nudge, Some("You shouted 2 times.")));

    // Its memory is part of the checkpoint, and ours still works beside it.
    let second = guard();
    second.restore(&"s".into(), first.checkpoint(&"s".into()).unwrap().unwrap()).unwrap();
    assert_eq!(say(&second, "hello").findings, []);
    assert_eq!(say(&second, "hello").findings[0].detector, "duplicate-turn");
    assert_eq!(say(&second, "STILL HERE").message.as_deref(), Some("You shouted 3 times."));
    let last = say(&second, "AND NOW");
    assert_eq!((last.action, last.status.as_deref()), (Action::Stop, Some("TOO_LOUD")));

    let unknown = Profile::from_toml(LOUD, &Registry::default()).err().unwrap().to_string();
    assert!(unknown.contains("shouting"), "{unknown}");
    let mistyped = Profile::from_toml(&LOUD.replace("capitals =", "capital ="), &registry);
    assert!(mistyped.err().unwrap().to_string().contains("did you mean `capitals`"));
}
