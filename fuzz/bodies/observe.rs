//! Any lines of JSON, through any profile: nothing panics, and a checkpoint in the middle, written and restored,
//! changes no later decision.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use deloop_engine::{Engine, Options, Session};
use deloop_policy::{PROFILES, Profile};
use deloop_store::{Codec, MemoryStore, Store};
use deloop_types::{SessionId, Step};

/// Longer sessions show nothing new and make the fuzzer slow.
const MOST: usize = 160;

/// The first byte says after which share of the steps the checkpoint is made, the second which profile it is; the
/// rest are lines.
///
/// # Panics
/// When a restored session decides differently.
pub(crate) fn run(data: &[u8]) {
    let [share, profile, lines @ ..] = data else { return };
    let engine = &engines()[usize::from(*profile) % engines().len()];
    let lines = lines.split(|b| *b == b'\n');
    let steps: Vec<Step> = lines.filter_map(|line| Step::from_slice(line).ok()).take(MOST).collect();
    let middle = steps.len() * usize::from(*share) / 256;
    let whole = MemoryStore::default();
    for step in &steps[..middle] {
        observe(engine, &whole, step);
    }
    let restored = copy(engine, &whole, &steps[..middle]);
    for step in &steps[middle..] {
        let expected = observe(engine, &whole, step);
        let found = observe(engine, &restored, step);
        assert_eq!(expected, found, "{}: {step:?}", engine.profile().name);
    }
}

/// Reading the profiles takes longer than a session does, so it is done once; the stores are new each time.
fn engines() -> &'static [Engine] {
    static ENGINES: OnceLock<Vec<Engine>> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let names = PROFILES.iter().map(|(name, _)| *name);
        names
            .map(|name| Engine::new(Profile::named(name).expect("it comes with deloop"), Options::default()))
            .collect()
    })
}

fn observe(engine: &Engine, store: &MemoryStore<Session>, step: &Step) -> String {
    let observed = engine.observe(store, step).expect("memory does not fail");
    let decision = serde_json::to_string(&observed.decision).expect("a Decision can be written");
    format!("{decision} {:?}", observed.events)
}

/// Another store with the same sessions and swarms, by way of their JSON.
fn copy(engine: &Engine, store: &MemoryStore<Session>, steps: &[Step]) -> MemoryStore<Session> {
    let copy = MemoryStore::default();
    let sessions: BTreeSet<&SessionId> = steps.iter().map(|step| &step.session).collect();
    for id in sessions {
        let frozen = store.look(engine, id, |session| engine.freeze(session)).expect("memory does not fail");
        let Some(frozen) = frozen else { continue };
        let frozen = frozen.expect("a session can be written");
        let session = engine.thaw(&frozen).unwrap_or_else(|e| panic!("{e}: {frozen}"));
        let last = session.ledger().last;
        copy.put(id, last, session);
    }
    let swarms: BTreeSet<&String> = steps.iter().filter_map(|step| step.swarm.as_ref()).collect();
    for name in swarms {
        let Some(swarm) = store.look_swarm(name, Clone::clone).expect("memory does not fail") else {
            continue;
        };
        let json = serde_json::to_string(&swarm).expect("a swarm can be written");
        copy.put_swarm(name, serde_json::from_str(&json).expect("a swarm can be read"));
    }
    copy
}
