//! Runs the body of the fuzz target `hook` on its seeds and on random changes to them, with any compiler.
//!
//! `DELOOP_FUZZ_SECONDS=30` makes it run that long; without it, it gets a few hundred inputs.

#![expect(
    clippy::disallowed_methods,
    reason = "the seeds are files, and the time to fuzz is wall-clock time"
)]

#[path = "../../../fuzz/bodies/hook.rs"]
mod hook;
#[path = "../../../fuzz/bodies/seeds.rs"]
mod seeds;

use deloop_formats::hooks::HOOK_AGENTS;

/// The first byte of a seed is its agent.
#[test]
fn events_of_hooks() {
    seeds::run_target("hook", 3 * HOOK_AGENTS.len(), hook::run);
}

/// An event of one agent, sent as if by each of the others.
#[test]
fn events_of_another_agent() {
    seeds::run_target("hook", 3 * HOOK_AGENTS.len(), |seed| {
        let mut seed = seed.to_vec();
        for agent in 0..HOOK_AGENTS.len() {
            if let Some(byte) = seed.first_mut() {
                *byte = u8::try_from(agent).unwrap_or(0);
            }
            hook::run(&seed);
        }
    });
}
