//! A harness that takes repeated turns out of its own list of messages when a decision has a `rollback`.
//!
//! Run it with `cargo run --example rollback`. The model and the tool are stand-ins.

#![expect(clippy::print_stdout, reason = "an example prints")]

use deloop::store::Limits;
use deloop::{Action, Call, Guard, Mode, Options, Profile, ProfileError, Rollback, Step};
use serde_json::json;

const SESSION: &str = "session-1";

/// A message for the model, and the step that it was reported with.
struct Message {
    step: u64,
    text: String,
}

/// Replaces the messages of the range by one line. What came before and after stays.
fn fold(messages: &mut Vec<Message>, rollback: &Rollback) {
    let range = rollback.from_step..=rollback.to_step;
    let at = messages.iter().position(|message| range.contains(&message.step));
    messages.retain(|message| !range.contains(&message.step));
    if let Some(at) = at {
        messages.insert(at, Message { step: rollback.from_step, text: rollback.summary.clone() });
    }
}

/// Stands for a model that repeats what it reads: it changes course once the repetition is gone.
fn model(messages: &[Message]) -> &'static str {
    let repeats = messages.iter().filter(|message| message.text == "call make check").count();
    let folded = messages.iter().any(|message| message.text.contains("were removed"));
    if folded && repeats < 3 { "ls" } else { "make check" }
}

fn main() -> Result<(), ProfileError> {
    let options = Options::new(Mode::Enforce, false).with_rollback();
    let guard = Guard::with(Profile::named("default")?, options, Limits::default());
    let task = "Make the build pass.";
    let decision = guard.observe(&Step::user(SESSION, task));
    let mut messages = vec![Message { step: decision.step, text: task.to_owned() }];
    let mut commands = Vec::new();
    for turn in 1..=8 {
        let command = model(&messages);
        commands.push(command);
        let id = format!("call-{turn}");
        let call = Call::new("bash", json!({"command": command})).with_id(id.clone());
        let decision = guard.observe(&Step::turn(SESSION, "", vec![call]));
        if let Some(rollback) = &decision.rollback {
            println!("steps {} to {}: {}", rollback.from_step, rollback.to_step, rollback.summary);
            fold(&mut messages, rollback);
        }
        messages.push(Message { step: decision.step, text: format!("call {command}") });
        let (ok, output) = match (decision.action, command) {
            (Action::Block, _) => (false, decision.message.unwrap_or_default()),
            (_, "ls") => (true, "Cargo.toml  src".to_owned()),
            _ => (false, "make: *** No rule to make target 'check'.  Stop.".to_owned()),
        };
        let decision = guard.observe(&Step::result(SESSION, ok, output.clone()).for_call(id));
        let nudge = decision.message.filter(|_| decision.action == Action::Nudge).unwrap_or_default();
        messages.push(Message { step: decision.step, text: format!("{output}{nudge}") });
    }
    println!("{}", commands.join(", "));
    assert_eq!(commands[..6], ["make check"; 6], "the call is blocked at the sixth turn");
    assert!(commands[6..].iter().all(|command| *command == "ls"), "the model left the loop");
    assert_eq!(
        messages[1].text,
        "[deloop] `make check` failed the same way 5 times, with nothing changed in between. The turns that repeated it were removed from this conversation. Take a different approach."
    );
    Ok(())
}
