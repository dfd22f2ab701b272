//! Workers with one goal: each does little, together they repeat themselves.
//!
//! Run it with `cargo run --example swarm`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use deloop::{Action, Guard, Profile, ProfileError, Step};
use serde_json::json;

fn main() -> Result<(), ProfileError> {
    // The profile with the detector `swarm-repeat`: `deloop profiles show doom-loop` prints it.
    let guard = Guard::new(Profile::named("doom-loop")?);
    let mut nudged = Vec::new();
    for round in 0..3 {
        for worker in 0..5 {
            // Every worker has a session of its own and names the swarm it belongs to.
            let session = format!("worker-{worker}");
            let args = json!({"path": "/repo/CHANGELOG.md"});
            let step = Step::call(session.as_str(), "read_file", args).in_swarm("migration");
            let decision = guard.observe(&step);
            // In between they do other things, so that no worker repeats itself.
            let other = json!({"path": format!("/repo/src/{worker}/{round}.rs")});
            guard.observe(&Step::call(session.as_str(), "read_file", other));
            if decision.action != Action::Continue {
                println!("{session}, round {round}: {}", decision.message.unwrap_or_default());
                nudged.push((decision.action, decision.findings[0].detector.clone()));
            }
        }
    }
    assert!(!nudged.is_empty(), "ten reads of one file by five workers are found");
    assert!(nudged.iter().all(|(action, detector)| *action == Action::Nudge && detector == "swarm-repeat"));
    // Who made which call, and how often.
    let state = guard.swarm_state("migration").unwrap_or_default();
    let most = &state.fingerprints[0];
    println!("{}: {} calls by {}", most.call, most.total_calls, most.workers.join(", "));
    assert_eq!((most.total_calls, most.worker_count), (15, 5));
    // When the work is done.
    guard.reset_swarm("migration");
    Ok(())
}
