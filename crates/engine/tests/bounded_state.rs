//! The state of a session doesn't grow, whatever its files, plans and tasks are called.

use deloop_engine::Guard;
use deloop_policy::Profile;
use deloop_types::{Call, Step};
use serde_json::json;

/// The size of the stored state after this many turns, each about something new.
fn stored(turns: usize) -> usize {
    let guard = Guard::new(Profile::named("behavioral").unwrap());
    for n in 1000..1000 + turns {
        let items: Vec<_> = (0..200).map(|i| json!({"id": format!("{n}-{i}"), "content": n})).collect();
        let text: String = (0..200).map(|i| format!("## Part {n} {i}\nx\n")).collect();
        let calls = [
            ("Edit", json!({"file_path": format!("tests/a{n}.py"), "old_string": "x", "new_string": "y"})),
            ("Write", json!({"file_path": format!("plans/a{n}.md"), "content": text})),
            ("TodoWrite", json!({"todos": items})),
        ];
        let calls = calls.map(|(tool, args)| Call::new(tool, args));
        let mut step = Step::turn("s", "", calls.into_iter().cycle().take(60).collect());
        step.task = Some(format!("task {n}"));
        guard.observe(&step);
    }
    let state = guard.checkpoint(&"s".into()).unwrap();
    serde_json::to_string(&state).unwrap().len()
}

#[test]
fn the_detectors_of_behavioral_keep_little() {
    // A session keeps what it remembers of 32 tasks.
    let (some, many) = (stored(40), stored(100));
    assert!(many < some + some / 10, "{some} bytes after 40 turns, {many} after 100");
    assert!(many < 400 << 10, "{many} bytes");
}
