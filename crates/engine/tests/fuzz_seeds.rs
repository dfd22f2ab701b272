//! Runs the bodies of the fuzz targets on their seeds and on random changes to them, with any compiler.
//!
//! `DELOOP_FUZZ_SECONDS=30` makes each target run that long; without it each gets a few hundred inputs.

#![expect(
    clippy::disallowed_methods,
    reason = "the seeds are files, and the time to fuzz is wall-clock time"
)]

#[path = "../../../fuzz/bodies/checkpoint.rs"]
mod checkpoint;
#[path = "../../../fuzz/bodies/configuration.rs"]
mod configuration;
#[path = "../../../fuzz/bodies/normalise.rs"]
mod normalise;
#[path = "../../../fuzz/bodies/observe.rs"]
mod observe;
#[path = "../../../fuzz/bodies/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/bodies/shell.rs"]
mod shell;
#[path = "../../../fuzz/bodies/step.rs"]
mod step;

use seeds::run_target;

#[test]
fn configurations() {
    run_target("configuration", 20, configuration::run);
}

#[test]
fn steps() {
    run_target("step", 20, step::run);
}

#[test]
fn normal_forms() {
    run_target("normalise", 20, normalise::run);
}

#[test]
fn shell_commands() {
    run_target("shell", 20, shell::run);
}

#[test]
fn checkpoints() {
    run_target("checkpoint", 10, checkpoint::run);
}

#[test]
fn observed_sessions() {
    run_target("observe", 20, |seed| {
        let mut seed = seed.to_vec();
        for profile in 0..deloop_policy::PROFILES.len() {
            // The second byte is the profile.
            if let Some(byte) = seed.get_mut(1) {
                *byte = u8::try_from(profile).unwrap();
            }
            observe::run(&seed);
        }
    });
}
