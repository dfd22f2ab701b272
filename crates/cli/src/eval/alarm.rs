//! Alarms: fires that belong together, and whether they were right.

use deloop_types::Action;
use serde::Serialize;

use crate::eval::label::{LoopLabel, SessionLabels};
use crate::replay::Intervention;

/// A decision that was more than `continue`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fire {
    /// The agent's turn, from 0 as in the labels.
    pub(crate) turn: u64,
    /// The session's step.
    pub(crate) step: u64,
    pub(crate) action: Action,
    pub(crate) level: u32,
    pub(crate) detector: String,
    pub(crate) summary: String,
    /// Tells one pattern from another of the same detector.
    #[serde(skip)]
    pub(crate) pattern: u64,
}

impl Fire {
    pub(crate) fn new(action: &Intervention) -> Self {
        Self {
            turn: u64::from(action.turn.saturating_sub(1)),
            step: action.step.into(),
            action: action.action,
            level: action.level,
            detector: action.detector.clone(),
            summary: action.summary.clone(),
            pattern: action.pattern,
        }
    }

    /// Returns whether it takes a decision out of the agent's hands.
    pub(crate) fn hard(&self) -> bool {
        self.action >= Action::Ask
    }
}

/// A fire this many turns after the last one of an alarm still belongs to it.
const TOGETHER: u64 = 10;

/// What an alarm was worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Worth {
    /// At least one fire lies in a loop.
    Right,
    /// At least one fire lies in a doubtful episode, or the session is doubtful as a whole.
    Borderline,
    /// It comes after a loop, when the session is already off course; not counted.
    Late,
    /// It disturbs honest work.
    False,
}

/// Fires of one session that belong together.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Alarm {
    pub(crate) first_turn: u64,
    pub(crate) last_turn: u64,
    /// The strongest action.
    pub(crate) action: Action,
    /// The detector of the first fire with that action.
    pub(crate) detector: String,
    /// The evidence of that fire, in words.
    pub(crate) summary: String,
    pub(crate) worth: Worth,
    pub(crate) fires: Vec<Fire>,
}

impl Alarm {
    /// Whether it asks, blocks or stops.
    pub(crate) fn hard(&self) -> bool {
        self.fires.iter().any(Fire::hard)
    }
}

/// Groups the fires of a session into alarms and judges each by the session's labels.
pub(crate) fn alarms(fires: &[Fire], labels: &SessionLabels) -> Vec<Alarm> {
    let mut groups: Vec<Vec<Fire>> = Vec::new();
    for fire in fires {
        match groups.last_mut() {
            Some(group) if belongs(fire, group) => group.push(fire.clone()),
            _ => groups.push(vec![fire.clone()]),
        }
    }
    groups.into_iter().filter_map(|group| alarm(group, labels)).collect()
}

fn belongs(fire: &Fire, group: &[Fire]) -> bool {
    let near = group.last().is_some_and(|last| fire.turn <= last.turn + TOGETHER);
    near || group.iter().any(|f| f.detector == fire.detector && f.pattern == fire.pattern)
}

fn alarm(fires: Vec<Fire>, labels: &SessionLabels) -> Option<Alarm> {
    let (first_turn, last_turn) = (fires.first()?.turn, fires.last()?.turn);
    let action = fires.iter().map(|f| f.action).max()?;
    let strongest = fires.iter().find(|f| f.action == action)?;
    let within = |label: &LoopLabel| fires.iter().any(|f| label.covers(f.turn));
    let has_turns = |label: &LoopLabel| label.onset_turn.is_some();
    let worth = if labels.loops().any(within) {
        Worth::Right
    } else if labels.borderline().any(|label| !has_turns(label) || within(label)) {
        Worth::Borderline
    } else if labels.loops().any(|label| first_turn > label.window().1) {
        Worth::Late
    } else {
        Worth::False
    };
    let (detector, summary) = (strongest.detector.clone(), strongest.summary.clone());
    Some(Alarm { first_turn, last_turn, action, detector, summary, worth, fires })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire(turn: u64, detector: &str, pattern: u64) -> Fire {
        let (action, summary) = (Action::Nudge, String::new());
        Fire { turn, step: turn, action, level: 1, detector: detector.to_owned(), summary, pattern }
    }

    fn labels(lines: &[&str]) -> SessionLabels {
        let lines = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
        SessionLabels { id: None, lines }
    }

    fn worths(fires: &[Fire], lines: &[&str]) -> Vec<(u64, u64, Worth)> {
        let all = alarms(fires, &labels(lines));
        all.iter().map(|a| (a.first_turn, a.last_turn, a.worth)).collect()
    }

    #[test]
    fn fires_that_are_near_or_alike_are_one_alarm() {
        let fires = [fire(1, "a", 1), fire(11, "b", 2), fire(80, "a", 1), fire(91, "c", 3)];
        assert_eq!(worths(&fires, &[]), [(1, 80, Worth::False), (91, 91, Worth::False)]);
    }

    #[test]
    fn an_alarm_is_judged_by_the_episodes_around_it() {
        let fires = [fire(3, "a", 1), fire(24, "a", 2), fire(50, "a", 3), fire(70, "a", 4), fire(90, "a", 5)];
        let one = r#"{"path":"p","label":"loop","onset_turn":30,"last_turn":40}"#;
        let two = r#"{"path":"p","label":"borderline","onset_turn":70,"last_turn":75}"#;
        assert_eq!(
            worths(&fires, &[one, two]).iter().map(|w| w.2).collect::<Vec<_>>(),
            [Worth::False, Worth::Right, Worth::Late, Worth::Borderline, Worth::Late]
        );
        let doubtful = r#"{"path":"p","label":"borderline"}"#;
        assert_eq!(worths(&fires[..1], &[one, doubtful]), [(3, 3, Worth::Borderline)]);
    }
}
