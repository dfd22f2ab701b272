//! Any JSON as a checkpoint: it is refused, or the session that it restores can be used, stored and restored again.

use std::sync::OnceLock;

use deloop_engine::{Checkpoint, Guard};
use deloop_policy::{PROFILES, Profile};
use deloop_types::Step;

/// The first byte says which profile it is; the rest is the checkpoint.
///
/// # Panics
/// When a checkpoint that was accepted can't be used, or decides differently after it was stored and restored.
pub(crate) fn run(data: &[u8]) {
    let [profile, json @ ..] = data else { return };
    let profiles = profiles();
    let profile = &profiles[usize::from(*profile) % profiles.len()];
    let Ok(checkpoint) = serde_json::from_slice::<Checkpoint>(json) else { return };
    let (first, second) = (Guard::new(profile.clone()), Guard::new(profile.clone()));
    let session = "s".into();
    if first.restore(&session, checkpoint).is_err() {
        return;
    }
    let stored = first.checkpoint(&session).expect("a session can be written").expect("there is a session");
    let text = serde_json::to_string(&stored).expect("a checkpoint can be written");
    let again = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    second.restore(&session, again).unwrap_or_else(|e| panic!("{e}: {text}"));
    for step in steps() {
        let (one, other) = (first.observe(step), second.observe(step));
        let text = |decision| serde_json::to_string(decision).expect("a Decision can be written");
        assert_eq!(text(&one), text(&other), "{}: {step:?}", profile.name);
    }
}

fn profiles() -> &'static [Profile] {
    static READ: OnceLock<Vec<Profile>> = OnceLock::new();
    READ.get_or_init(|| {
        let names = PROFILES.iter().map(|(name, _)| *name);
        names.map(|name| Profile::named(name).expect("it comes with deloop")).collect()
    })
}

/// A run that every profile has something to say about.
fn steps() -> &'static [Step] {
    static READ: OnceLock<Vec<Step>> = OnceLock::new();
    READ.get_or_init(|| {
        let lines = (0..12).flat_map(|n| {
            let call = format!(
                r#"{{"type":"turn","session":"s","text":"Again.","ts":{n},"calls":[{{"id":"c{n}","tool":"bash","args":{{"command":"make"}}}}]}}"#
            );
            let result =
                format!(r#"{{"type":"result","session":"s","id":"c{n}","ok":false,"output":"make: error 2"}}"#);
            [call, result]
        });
        lines.map(|line| Step::from_slice(line.as_bytes()).expect("it is a Step")).collect()
    })
}
