use deloop_conformance::{PROFILES, Reference, random};
use deloop_engine::{Engine, Options, Session};
use deloop_policy::Profile;
use deloop_store::MemoryStore;
use deloop_types::Step;
use serde_json::Value;

use crate::patient;
use crate::redis_server::RedisServer;

/// Random cases of the five documents, the steps in turn through two stores, as two machines would take them. `default`
/// has no reference and is compared with a store in memory, as the others are, too.
#[test]
#[ignore = "needs redis-server"]
fn decides_as_the_reference_and_as_in_memory() {
    let server = RedisServer::start();
    let stores = [patient(&server), patient(&server)];
    let cases = std::env::var("DELOOP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(25);
    for profile in PROFILES.iter().copied().chain(["default"]) {
        let engine = Engine::new(Profile::named(profile).unwrap(), Options::default());
        for seed in 0..cases {
            let memory = MemoryStore::<Session>::default();
            let mut reference = PROFILES.contains(&profile).then(|| Reference::new(profile));
            for (n, mut line) in random::steps(seed).into_iter().enumerate() {
                let verdict = reference.as_mut().map(|reference| reference.observe(&line));
                for key in ["session", "swarm"] {
                    if key == "session" || line.get(key).is_some() {
                        let name = line[key].as_str().unwrap_or("default").to_owned();
                        line[key] = format!("{profile}/{seed}/{name}").into();
                    }
                }
                let step: Step = serde_json::from_value(line).unwrap();
                let found = engine.observe(&stores[n % 2], &step).unwrap();
                let expected = engine.observe(&memory, &step).unwrap();
                assert_eq!(found, expected, "{profile}, seed {seed}, step {n}");
                if let Some(verdict) = verdict {
                    let action: Value = serde_json::to_value(found.decision.action).unwrap();
                    assert_eq!(
                        (action.as_str().unwrap(), u64::from(found.decision.level)),
                        (verdict.action.as_str(), verdict.level),
                        "{profile}, seed {seed}, step {n}"
                    );
                }
            }
        }
    }
}
