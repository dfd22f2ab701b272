//! A session that outlives the process: stored as JSON, restored later, judged as if nothing had happened.
//!
//! Run it with `cargo run --example checkpoint`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use deloop::{Action, Guard, Profile, Step};
use serde_json::json;

/// One failing call with its result.
fn fail(guard: &Guard) -> Action {
    guard.observe(&Step::call("session-1", "bash", json!({"command": "make check"})));
    guard.observe(&Step::result("session-1", false, "make: *** No rule to make target 'check'.")).action
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let guard = Guard::new(Profile::named("default")?);
    assert_eq!([fail(&guard), fail(&guard)], [Action::Continue; 2]);
    let stored = serde_json::to_string(&guard.checkpoint(&"session-1".into())?)?;
    println!("after two failures the checkpoint has {} bytes", stored.len());
    drop(guard);

    let guard = Guard::new(Profile::named("default")?);
    guard.restore(&"session-1".into(), serde_json::from_str(&stored)?)?;
    let third = fail(&guard);
    println!("the third failure, in another process: {third}");
    assert_eq!(third, Action::Nudge);

    let fresh = Guard::new(Profile::named("default")?);
    assert_eq!(fail(&fresh), Action::Continue, "without the checkpoint it is the first");
    Ok(())
}
