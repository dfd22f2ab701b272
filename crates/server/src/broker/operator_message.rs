//! Passes messages of people on to agents, with the decision about their next step.

use deloop_policy::decision_id;
use deloop_types::{Action, Body, Decision, Role, Step};

use super::stored_session::SessionExtras;

/// Takes the messages that wait for the agent and go out with this decision, as one text. A step that says that earlier
/// ones didn't arrive puts them back.
pub(super) fn take(extras: &mut SessionExtras, step: &Step, decision: &Decision) -> Option<String> {
    if let Body::Delivery(delivery) = &step.body {
        extras.confirm(delivery.step, delivery.ok);
        return None;
    }
    // An agent that is stopped reads nothing more. The messages wait until the stop is lifted.
    let reads = step.agent.is_none() && matches!(step.body, Body::Turn(_) | Body::Result(_) | Body::User(_));
    if !reads || decision.action == Action::Stop {
        return None;
    }
    let messages = extras.receive(decision.step);
    (!messages.is_empty()).then(|| format!("[deloop] Message from the operator: {}", messages.join("\n\n")))
}

/// Makes a decision carry one more message for the agent.
pub(super) fn add_nudge(decision: &mut Decision, text: String, about: &str) {
    if decision.action >= Action::Nudge {
        let own = decision.message.take();
        decision.message = Some(own.map_or(text.clone(), |own| format!("{text}\n\n{own}")));
        return;
    }
    decision.action = Action::Nudge;
    decision.message = Some(text);
    decision.role = Some(Role::User);
    decision.user_message = Some(about.to_owned());
    let Decision { session, step, id, .. } = decision;
    id.get_or_insert_with(|| decision_id(session, *step));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(step: u64) -> Decision {
        Decision::go_on("s1".into(), step)
    }

    fn deliver(extras: &mut SessionExtras, step: &Step, decision: &mut Decision) -> bool {
        let message = take(extras, step, decision);
        message.map(|message| add_nudge(decision, message, "about")).is_some()
    }

    #[test]
    fn a_message_arrives_once_and_again_if_it_did_not() {
        let mut extras = SessionExtras::default();
        extras.send("Use the staging database.".to_owned());
        let mut first = decision(3);
        assert!(deliver(&mut extras, &Step::text("s1", "Hm."), &mut first));
        assert_eq!((first.action, first.role), (Action::Nudge, Some(Role::User)));
        assert_eq!(
            first.message.as_deref(),
            Some("[deloop] Message from the operator: Use the staging database.")
        );
        assert!(first.id.is_some());
        assert!(!deliver(&mut extras, &Step::text("s1", "Hm."), &mut decision(4)));
        deliver(&mut extras, &Step::delivery("s1", 3, false), &mut decision(5));
        assert!(deliver(&mut extras, &Step::text("s1", "Hm."), &mut decision(6)));
    }

    #[test]
    fn a_message_comes_before_the_nudge_and_waits_for_the_end_of_a_stop() {
        let mut extras = SessionExtras::default();
        extras.send("Look at the log.".to_owned());
        let mut stop = decision(1);
        stop.action = Action::Stop;
        assert!(!deliver(&mut extras, &Step::text("s1", "Hm."), &mut stop));
        let mut nudge = decision(2);
        (nudge.action, nudge.message) = (Action::Nudge, Some("[deloop] Stop that.".to_owned()));
        assert!(deliver(&mut extras, &Step::text("s1", "Hm."), &mut nudge));
        let message = nudge.message.unwrap();
        assert_eq!(message, "[deloop] Message from the operator: Look at the log.\n\n[deloop] Stop that.");
    }
}
