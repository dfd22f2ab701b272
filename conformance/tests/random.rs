//! The made-up sessions are repeatable, of the promised size, and reach every rung.

use std::collections::HashMap;

use deloop_conformance::{PROFILES, Reference, random};

const SEEDS: u64 = 60;

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in 0..SEEDS {
        let steps = random::steps(seed);
        assert!((30..=200).contains(&steps.len()));
        assert_eq!(steps, random::steps(seed));
        let lines = random::lines(seed);
        let parsed: Result<Vec<serde_json::Value>, _> =
            lines.iter().map(|line| serde_json::from_str(line)).collect();
        assert_eq!(parsed.ok(), Some(steps));
    }
}

#[test]
fn every_rung_is_reached_often() {
    let rungs = [
        ("behavioral", "nudge", 1),
        ("behavioral", "nudge", 2),
        ("behavioral", "stop", 3),
        ("signature", "nudge", 1),
        ("signature", "nudge", 2),
        ("signature", "stop", 3),
        ("doom-loop", "nudge", 1),
        ("doom-loop", "nudge", 2),
        ("doom-loop", "block", 3),
        ("turn-similarity", "warn", 1),
        ("turn-similarity", "stop", 2),
        ("turn-hash", "nudge", 1),
    ];
    let mut reached: HashMap<(&str, String, u64), u64> = HashMap::new();
    for profile in PROFILES {
        for seed in 0..SEEDS {
            let mut reference = Reference::new(profile);
            for step in random::steps(seed) {
                let verdict = reference.observe(&step);
                *reached.entry((profile, verdict.action, verdict.level)).or_default() += 1;
            }
        }
    }
    for (profile, action, level) in rungs {
        let times = reached.remove(&(profile, action.to_owned(), level));
        assert!(times.is_some_and(|times| times >= SEEDS / 2), "{profile} {action} {level}: {times:?}");
    }
    reached.retain(|(_, action, level), _| action != "continue" || *level != 0);
    assert!(reached.is_empty(), "rungs that no document has: {reached:?}");
}

#[test]
fn every_detector_of_behavioral_is_reached() {
    let detectors = ["edits-without-progress", "test-edits-without-green", "plan-rewrite", "stalled-task"];
    let mut reached = [0; 4];
    for seed in 0..SEEDS {
        let mut reference = Reference::new("behavioral");
        for step in random::steps(seed) {
            let found = reference.observe(&step).findings.unwrap_or_default();
            for (detector, times) in detectors.iter().zip(&mut reached) {
                *times += u64::from(found.iter().any(|(name, _)| name == detector));
            }
        }
    }
    assert!(reached.iter().all(|times| *times >= SEEDS / 2), "{reached:?}");
}

#[test]
fn every_pattern_of_doom_loop_is_reached() {
    let patterns = ["consecutive test failures", "GLOBAL DOOM LOOP", "CRITICAL"];
    let mut reached = [0; 3];
    let (mut talk, mut commands) = (0, 0);
    for seed in 0..SEEDS {
        let mut reference = Reference::new("doom-loop");
        for step in random::steps(seed) {
            let verdict = reference.observe(&step);
            match reference.message() {
                Some(message) => {
                    for (pattern, times) in patterns.iter().zip(&mut reached) {
                        *times += u64::from(message.contains(pattern));
                    }
                }
                None if verdict.level == 0 => {}
                None if step["type"] == "result" => commands += 1,
                None => talk += 1,
            }
        }
    }
    for times in reached.into_iter().chain([talk, commands]) {
        assert!(times >= SEEDS / 2, "{reached:?} {talk} {commands}");
    }
}
