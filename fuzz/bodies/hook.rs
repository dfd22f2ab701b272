//! Any events of any agent's hook: nothing panics, a reply is one JSON object or nothing, and it never does more than was
//! decided.

use std::sync::OnceLock;

use deloop_engine::{Engine, Options, Session};
use deloop_formats::hooks::{HOOK_AGENTS, HookAgent, HookEvent, Reply};
use deloop_live::{EventContext, Live, NullJournal};
use deloop_policy::{PROFILES, Profile};
use deloop_store::MemoryStore;
use deloop_types::{Action, Decision, Millis};

/// Longer sessions show nothing new and make the fuzzer slow.
const MOST: usize = 64;
/// A reply quotes short forms only, whatever the length of an event.
const LONGEST_REPLY: usize = 64 << 10;

/// The first byte says which agent it is, the second which profile judges; the rest are events, one a line.
///
/// # Panics
/// When a reply is no JSON object, is too long, or does more than was decided.
pub(crate) fn run(data: &[u8]) {
    let [agent, profile, events @ ..] = data else { return };
    let agent = HOOK_AGENTS[usize::from(*agent) % HOOK_AGENTS.len()];
    let engine = &engines()[usize::from(*profile) % engines().len()];
    let (store, journal) = (MemoryStore::<Session>::default(), NullJournal::default());
    let lines = events.split(|byte| *byte == b'\n').take(MOST);
    for (at, event) in lines.filter_map(|line| agent.decode(line).ok()).enumerate() {
        encode_all(agent, &event);
        let context = context(i64::try_from(at).unwrap_or(0));
        let live = Live { engine, store: &store, journal: &journal, context };
        let handled = live.hook_event(agent, event).expect("memory does not fail");
        check(agent, &handled.reply);
    }
}

/// Encodes a decision of every strength.
fn encode_all(agent: &dyn HookAgent, event: &HookEvent) {
    for action in Action::ALL {
        let mut decision = Decision::default();
        decision.action = action;
        decision.message = Some("[deloop] Stop.".to_owned());
        decision.calls = event.calls.iter().filter_map(|call| call.call.id.clone()).collect();
        let encoded = agent.encode(event, &decision);
        assert!(encoded.carried <= action, "{}: {action:?} becomes {encoded:?}", agent.name());
        check(agent, &encoded.reply);
    }
}

fn check(agent: &dyn HookAgent, reply: &Reply) {
    let Reply { stdout, stderr, .. } = reply;
    assert!(stdout.len() + stderr.len() <= LONGEST_REPLY, "{}: {} bytes", agent.name(), stdout.len());
    let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(stdout);
    assert!(stdout.is_empty() || object.is_ok(), "{}: {stdout}", agent.name());
}

fn context(now: i64) -> EventContext<'static> {
    EventContext {
        options: Options::default(),
        now: Millis(1_700_000_000_000 + 1000 * now),
        run: None,
        handoff: None,
        loop_calls: &[],
        swarm: None,
        subagent_swarms: true,
        controller: Some("boss"),
        project: None,
        project_id: Some("p"),
        project_of: str::to_owned,
        embeddings: None,
        remote: None,
        notice: None,
        price: &|_| (),
        // What an event names is never opened here.
        open: |_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    }
}

/// Reading the profiles takes longer than a session does, so it is done once; the stores are new each time.
fn engines() -> &'static [Engine] {
    static ENGINES: OnceLock<Vec<Engine>> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let engine =
            |name| Engine::new(Profile::named(name).expect("it comes with deloop"), Options::default());
        PROFILES.iter().map(|(name, _)| engine(*name)).collect()
    })
}
