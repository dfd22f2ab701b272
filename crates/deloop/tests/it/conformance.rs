//! The five documents: the vectors, and an independent reference on thousands of random sessions.

use deloop_conformance::{PROFILES, vectors};
use serde_json::Value;

use crate::binary::stream;
use crate::conformance_cases::{RandomCases, check_vector, config_file};

fn text(steps: &[Value]) -> Vec<u8> {
    steps.iter().flat_map(|s| format!("{s}\n").into_bytes()).collect()
}

#[test]
fn every_vector_holds() {
    let home = tempfile::tempdir().unwrap();
    let vectors = vectors::load().unwrap();
    assert!(vectors.len() >= 80, "{} vectors", vectors.len());
    for vector in vectors {
        let config = config_file(&vector, home.path());
        let arguments = ["--profile", &vector.profile, "--config", config.to_str().unwrap()];
        check_vector(&vector, &stream(home.path(), &arguments, &text(&vector.steps)));
    }
}

/// Hundreds of random cases for each profile, of several sessions each, in one process per profile: so the cases are also interleaved with what
/// came before.
#[test]
fn agrees_with_the_reference_on_random_sessions() {
    let home = tempfile::tempdir().unwrap();
    let cases = std::env::var("DELOOP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    for profile in PROFILES {
        let cases = RandomCases::new(profile, cases);
        cases.check(&stream(home.path(), &["--profile", profile], cases.lines.concat().as_bytes()));
    }
}
