//! What the fuzz targets check, on their seeds: no nightly compiler is needed for this.

use std::path::PathBuf;

#[path = "../../../fuzz/bodies/normalise.rs"]
mod normalise;
#[path = "../../../fuzz/bodies/observe.rs"]
mod observe;
#[path = "../../../fuzz/bodies/shell.rs"]
mod shell;
#[path = "../../../fuzz/bodies/step.rs"]
mod step;

fn run_seeds(target: &str, least: usize, run: fn(&[u8])) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut seeds: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(seeds.len() >= least, "{} seeds in {}", seeds.len(), folder.display());
    for seed in seeds {
        // The test's own output names the seed that fails.
        let name = seed.display().to_string();
        let bytes = std::fs::read(&seed).unwrap();
        let ran = std::panic::catch_unwind(|| run(&bytes));
        assert!(ran.is_ok(), "{name} fails; the panic is above");
    }
}

#[test]
fn step_seeds() {
    run_seeds("step", 20, step::run);
}

#[test]
fn normalise_seeds() {
    run_seeds("normalise", 20, normalise::run);
}

#[test]
fn shell_seeds() {
    run_seeds("shell", 20, shell::run);
}

#[test]
fn observe_seeds() {
    run_seeds("observe", 20, |seed| {
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
