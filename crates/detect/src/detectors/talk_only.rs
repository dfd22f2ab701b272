use deloop_types::{Evidence, Finding, Origin, Repeats, Turn};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::{Detector, Happening, Moment, Ring, Sketch, ToolKind, Words};

/// Number of earlier answers to automatic messages that a turn is compared with.
const ANSWERS: usize = 4;

/// Finds turns in a row with text and no call.
pub(crate) struct TalkOnly;

/// Parameters of [`TalkOnly`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TalkOnlyParams {
    /// Number of turns in a row without a call that make a finding.
    at: u64,
    /// Minimum similarity to the previous turn for a turn to count, 0 to 1. With 0 every turn counts, even after a
    /// message from a person.
    alike: f64,
    /// The same for turns that answer automatic messages: minimum similarity to any of the last ones.
    prompted: f64,
    /// Number of turns, or notes that the agent makes for itself, that repeat an earlier one word for word, not only the
    /// previous one, that make a finding if nothing is done or asked in between; 0 turns this rule off.
    again: u64,
    /// Number of turns in a row with neither text nor a call that make a finding; 0 turns this rule off.
    empty: u64,
    /// Number of empty turns in a row after which an unattended run may be stopped, once the agent was nudged; 0 means never.
    empty_hard: u64,
    /// Number of such turns after which an unattended run may be stopped, once the agent was nudged; 0 means never.
    persists: u64,
}

impl Default for TalkOnlyParams {
    fn default() -> Self {
        Self { at: 2, alike: 0.0, prompted: 0.0, again: 0, empty: 0, empty_hard: 0, persists: 0 }
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TalkOnlyMemory {
    run: Run,
    words: Option<Words>,
    /// The turns in a row with neither text nor a call.
    #[serde(default)]
    empty: Run,
    /// The words of the turns since an automatic message.
    #[serde(default)]
    answers: Ring<Sketch>,
    /// The number of requests at the last message.
    #[serde(default)]
    requests: u16,
    /// Whether the last message was automatic.
    #[serde(default)]
    automatic: bool,
}

impl Detector for TalkOnly {
    type Params = TalkOnlyParams;
    type Memory = TalkOnlyMemory;

    fn name(&self) -> &'static str {
        "talk-only"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(TalkOnlyParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("talk-only.md")
    }

    fn remembers(&self, memory: &Self::Memory) -> bool {
        *memory != TalkOnlyMemory::default()
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let turn = match &moment.event {
            Happening::Turn(turn) => turn,
            Happening::User(user) => {
                // What asks for something new is answered anew, whoever asks, and so is news.
                let requests = moment.history.requests();
                if params.alike > 0.0 && user.origin == Origin::Notice {
                    *memory = TalkOnlyMemory { requests: memory.requests, ..TalkOnlyMemory::default() };
                }
                memory.automatic = user.origin != Origin::Human || memory.requests == requests;
                if params.alike > 0.0 && memory.requests != requests {
                    *memory =
                        TalkOnlyMemory { requests, automatic: memory.automatic, ..TalkOnlyMemory::default() };
                }
                return None;
            }
            Happening::Call(call) if call.record.kind == ToolKind::Talk => return self.noted(params, moment),
            _ => return None,
        };
        if !turn.calls.is_empty() {
            *memory = TalkOnlyMemory { requests: memory.requests, ..TalkOnlyMemory::default() };
            return None;
        }
        let Some(text) = turn.said() else {
            memory.empty.extend(0, moment.step);
            let Run { count, since, .. } = memory.empty;
            return (params.empty > 0 && count >= params.empty).then(|| {
                let mut found = Finding::new(self.name(), count).by_rule("empty");
                (found.period, found.score, found.since) = (1, 1.0, since);
                found.repeats = Repeats::EmptyTurn;
                let hard = params.empty_hard > 0 && count >= params.empty_hard;
                found.evidence = Evidence { at: moment.history.turns(), hard, ..Evidence::default() };
                found
            });
        };
        memory.empty.end();
        let mut score = 1.0;
        if params.alike > 0.0 {
            let words = Words::of_text(text);
            score = memory.words.as_ref().map_or(0.0, |before| before.jaccard(&words));
            memory.words = Some(words);
            let again = params.prompted > 0.0 && memory.answers_again(params, turn);
            if score < params.alike && !again {
                memory.run.end();
            }
        }
        memory.run.extend(0, moment.step);
        let Run { mut count, mut since, .. } = memory.run;
        let stretch = moment.history.stretch();
        // An automatic message may well ask for the same answer again.
        let replies = if stretch.prompts == 0 { u64::from(stretch.replies) } else { 0 };
        let again = params.again > 0 && replies >= params.again;
        if again && replies > count {
            (count, since) = (replies, stretch.replies_since.into());
        }
        (again || count >= params.at).then(|| {
            let rule = if count >= params.at { "at" } else { "again" };
            let mut found = Finding::new(self.name(), count).by_rule(rule);
            found.period = 1;
            found.score = score;
            found.since = since;
            found.repeats = Repeats::Talk;
            found.evidence = Evidence { at: moment.history.turns(), ..Evidence::default() };
            found.evidence.hard = params.persists > 0 && replies >= params.persists;
            found
        })
    }
}

impl TalkOnly {
    /// Looks at a note that the agent makes for itself, such as a thought or a list: it is talk, too.
    fn noted(&self, params: &TalkOnlyParams, moment: &Moment<'_>) -> Option<Finding> {
        let stretch = moment.history.stretch();
        let count = u64::from(stretch.notes);
        (params.again > 0 && stretch.prompts == 0 && count >= params.again).then(|| {
            let mut found = Finding::new(self.name(), count).by_rule("again");
            found.period = 1;
            found.score = 1.0;
            found.since = stretch.notes_since.into();
            found.repeats = Repeats::Note;
            found.evidence = Evidence { at: moment.history.turns(), ..Evidence::default() };
            found.evidence.hard = params.persists > 0 && count >= params.persists;
            found
        })
    }
}

impl TalkOnlyMemory {
    /// Returns whether this turn answers an automatic message with something already said.
    fn answers_again(&mut self, params: &TalkOnlyParams, turn: &Turn) -> bool {
        let words = Sketch::of_turn(turn);
        let old = self.answers.iter().any(|a| a.likeness(&words) >= params.prompted);
        self.answers.push(words, ANSWERS);
        self.automatic && old
    }
}
