//! A harness around an agent: every turn and result goes to the guard, and every action is carried out.
//!
//! Run it with `cargo run --example harness`. The model, the tool and the person are stand-ins.

#![expect(clippy::print_stdout, reason = "an example prints")]

use deloop::store::Limits;
use deloop::{Action, Call, Decision, Guard, Mode, Options, Profile, ProfileError, Step};
use serde_json::json;

const SESSION: &str = "session-1";
/// Keep a limit of your own: deloop finds loops, not every way to waste time.
const MOST_TURNS: usize = 10;

/// Stands for your model: it runs the same command again and again, whatever it is told.
fn model(turn: usize, _conversation: &[String]) -> (String, Vec<Call>) {
    let call = Call::new("bash", json!({"command": "make check"})).with_id(format!("call-{turn}"));
    ("Let me run the checks again.".to_owned(), vec![call])
}

/// Stands for your tools: the command fails in the same way each time.
fn run_tool(_call: &Call) -> (bool, String) {
    (false, "make: *** No rule to make target 'check'.  Stop.".to_owned())
}

/// Stands for a person who is asked whether a call may run.
fn person_allows(_question: &str) -> bool {
    false
}

/// What the harness does next.
enum Next {
    Continue,
    /// Don't run the calls that the decision names; the model gets this text as their result.
    Refuse(String),
    End,
}

/// Carries out a decision.
fn carry_out(decision: &Decision, conversation: &mut Vec<String>) -> Next {
    let message = decision.message.clone().unwrap_or_default();
    if decision.action != Action::Continue {
        println!("  {}: {message}", decision.action);
    }
    match decision.action {
        // A warning is for people; the agent doesn't see it.
        Action::Continue | Action::Warn => Next::Continue,
        // The model reads it with its next turn.
        Action::Nudge => {
            conversation.push(message);
            Next::Continue
        }
        Action::Ask if person_allows(&message) => Next::Continue,
        Action::Ask => Next::Refuse("A person refused this call.".to_owned()),
        Action::Block => Next::Refuse(message),
        Action::Stop => Next::End,
    }
}

/// Runs the agent; returns every action beyond `continue`, in order.
fn run_agent(guard: &Guard) -> Vec<Action> {
    let mut conversation = vec!["Make the build pass.".to_owned()];
    guard.observe(&Step::user(SESSION, "Make the build pass."));
    let mut actions = Vec::new();
    'session: for turn in 1..=MOST_TURNS {
        let (text, calls) = model(turn, &conversation);
        println!("turn {turn}: {text}");

        // Before the calls run, so that they can be refused.
        let decision = guard.observe(&Step::turn(SESSION, text, calls.clone()));
        actions.push(decision.action);
        let refusal = match carry_out(&decision, &mut conversation) {
            Next::Continue => None,
            Next::Refuse(why) => Some(why),
            Next::End => break,
        };

        for call in &calls {
            let id = call.id.clone().unwrap_or_default();
            let (ok, output) = match &refusal {
                Some(why) if decision.calls.contains(&id) => (false, why.clone()),
                _ => run_tool(call),
            };
            conversation.push(output.clone());
            // Most loops show in the results.
            let decision = guard.observe(&Step::result(SESSION, ok, output).for_call(id));
            actions.push(decision.action);
            if let Next::End = carry_out(&decision, &mut conversation) {
                break 'session;
            }
        }
    }
    guard.observe(&Step::end(SESSION));
    actions.retain(|action| *action != Action::Continue);
    actions
}

fn main() -> Result<(), ProfileError> {
    println!("Unattended, deloop nudges, then blocks the call, then stops the run.");
    let guard = Guard::new(Profile::named("default")?);
    let actions = run_agent(&guard);
    assert_eq!(actions.first(), Some(&Action::Nudge));
    assert!(actions.contains(&Action::Block));
    assert_eq!(actions.last(), Some(&Action::Stop));

    println!("\nAttended, it nudges, then asks.");
    let options = Options::new(Mode::Enforce, true);
    let guard = Guard::with(Profile::named("default")?, options, Limits::default());
    let actions = run_agent(&guard);
    assert_eq!(actions.first(), Some(&Action::Nudge));
    assert!(actions.contains(&Action::Ask) && !actions.contains(&Action::Stop));
    Ok(())
}
