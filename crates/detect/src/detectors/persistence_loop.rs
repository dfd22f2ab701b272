use std::cmp::Ordering;

use deloop_types::{Evidence, Finding, Millis, Origin, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::request_words;
use crate::{CallRecord, Detector, Ending, Happening, History, Moment, Progress, Ring, ToolKind, short_hash};

/// Number of different requests remembered: several hooks may ask in turn.
const REQUESTS: usize = 3;
/// Number of numbers in a request that are compared.
const NUMBERS: usize = 8;

/// Finds automatic requests to continue that the agent answers without anything new.
pub(crate) struct PersistenceLoop;

/// Parameters of [`PersistenceLoop`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PersistenceLoopParams {
    /// Number of requests in a row without anything new that make a finding.
    at: u64,
    /// Seconds between an answer and the next request from which the request doesn't count: a timer asks then.
    idle: f64,
}

impl Default for PersistenceLoopParams {
    fn default() -> Self {
        Self { at: 3, idle: 600.0 }
    }
}

/// What is remembered from the first automatic request on, until a person writes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AnsweredRequests {
    known: Ring<KnownRequest>,
    /// What happened since the last answer.
    round: RequestRound,
    /// The time of that answer, or of the last result since.
    answered: Option<Millis>,
    /// Number of requests in a row that brought nothing new, and the step of the first.
    count: u64,
    since: u64,
}

/// A request that came before.
#[derive(Debug, Serialize, Deserialize)]
struct KnownRequest {
    /// Hash of its words, without numbers.
    words: u32,
    /// Its numbers, each with the direction in which it has changed so far.
    numbers: Vec<(u64, i8)>,
}

/// What happened since the agent's last answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct RequestRound {
    /// The step of the last request, if there was one.
    asked: Option<u64>,
    /// Number of calls without a result.
    open: u32,
    /// Whether a call was called off, and no other call was made since.
    called_off: bool,
    /// Whether a request asked for something new, or a call changed something or brought something new.
    news: bool,
    /// Whether a call waits, its result isn't known, or the request came after a long time.
    unknown: bool,
}

impl Detector for PersistenceLoop {
    type Params = PersistenceLoopParams;
    /// Empty before the first automatic request.
    type Memory = Option<Box<AnsweredRequests>>;

    fn name(&self) -> &'static str {
        "persistence-loop"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(PersistenceLoopParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("persistence-loop.md")
    }

    fn remembers(&self, memory: &Self::Memory) -> bool {
        memory.is_some()
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        if let Happening::User(user) = &moment.event {
            match user.origin {
                Origin::Human => *memory = None,
                // News and a timer's beats ask nobody to continue.
                Origin::Notice | Origin::Schedule => *memory = None,
                Origin::Harness if user.text.trim().is_empty() => {}
                Origin::Harness => {
                    let requests = memory.get_or_insert_default();
                    // A turn can also end with a call that was called off.
                    let counts = requests.round.called_off && requests.round.open == 0 && requests.answer();
                    let found = counts && requests.count >= params.at;
                    let found = found.then(|| self.found(moment, requests));
                    requests.ask(params, &user.text, moment);
                    return found;
                }
            }
            return None;
        }
        let requests = memory.as_mut()?;
        match &moment.event {
            Happening::Call(_) => requests.round.open += 1,
            Happening::Result(result) => {
                requests.outcome(&result.record, moment.history);
                requests.answered = moment.ts.or(requests.answered);
            }
            Happening::Turn(turn) if turn.calls.is_empty() => {
                requests.answered = moment.ts.or(requests.answered);
                let counts = requests.answer();
                return (counts && requests.count >= params.at).then(|| self.found(moment, requests));
            }
            _ => {}
        }
        None
    }
}

impl PersistenceLoop {
    fn found(&self, moment: &Moment<'_>, requests: &AnsweredRequests) -> Finding {
        let mut found = Finding::new(self.name(), requests.count).by_rule("at");
        found.repeats = Repeats::Request;
        found.period = 1;
        found.score = 1.0;
        found.since = requests.since;
        found.pattern = (short_hash(b"persistence-loop") ^ requests.since).into();
        found.evidence =
            Evidence { at: moment.history.turns(), hard: true, rounds: true, ..Evidence::default() };
        found
    }
}

impl AnsweredRequests {
    fn ask(&mut self, params: &PersistenceLoopParams, text: &str, moment: &Moment<'_>) {
        self.round.asked = Some(moment.step);
        self.round.news |= !self.is_known(text);
        #[expect(clippy::cast_precision_loss, reason = "seconds need no more")]
        let waited = moment.ts.zip(self.answered).map(|(now, then)| now.since(then) as f64 / 1000.0);
        self.round.unknown |= waited.is_some_and(|seconds| seconds >= params.idle);
    }

    /// Returns whether a request came before, and remembers it. Its numbers may count up or down, but must not jump.
    fn is_known(&mut self, text: &str) -> bool {
        let (words, _) = request_words(text);
        let numbers = numbers(text);
        if let Some(known) = self.known.iter_mut().find(|known| known.words == words) {
            return known.counts_on(&numbers);
        }
        let numbers = numbers.into_iter().map(|number| (number, 0)).collect();
        self.known.push(KnownRequest { words, numbers }, REQUESTS);
        false
    }

    fn outcome(&mut self, record: &CallRecord, history: &History) {
        let round = &mut self.round;
        round.open = round.open.saturating_sub(1);
        round.called_off = record.ending == Ending::CalledOff;
        let news = match record.progress {
            Progress::New | Progress::Changed | Progress::Failed | Progress::Moved => true,
            // The same failure in other words, such as another number of failed tests, is news.
            Progress::FailedAgain => {
                let before = history.recent().iter().rev().filter(|r| r.ordinal < record.ordinal);
                let last = before.clone().find(|r| r.signature == record.signature && r.ending.tells());
                last.is_some_and(|last| !last.came_back_as(record))
            }
            Progress::Same => false,
            Progress::None => {
                round.unknown |= record.kind != ToolKind::Talk && record.ending != Ending::CalledOff;
                false
            }
        };
        round.unknown |= record.waits();
        if news {
            round.news = true;
            self.count = 0;
        }
    }

    /// Notes that the agent ended its turn. Returns whether that is another answer without anything new.
    fn answer(&mut self) -> bool {
        let round = std::mem::take(&mut self.round);
        if round.news {
            self.count = 0;
        }
        let Some(asked) = round.asked.filter(|_| !round.news && !round.unknown && round.open == 0) else {
            return false;
        };
        if self.count == 0 {
            self.since = asked;
        }
        self.count += 1;
        true
    }
}

impl KnownRequest {
    /// Returns whether each number stayed or went on in the same direction. Otherwise the request is a new one.
    fn counts_on(&mut self, numbers: &[u64]) -> bool {
        let direction = |now: u64, before: u64| match now.cmp(&before) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        };
        let goes_on = |(now, (before, so_far)): (&u64, &(u64, i8))| {
            let direction = direction(*now, *before);
            direction * so_far >= 0
        };
        let same = self.numbers.len() == numbers.len() && numbers.iter().zip(&self.numbers).all(goes_on);
        let next = numbers.iter().enumerate().map(|(at, now)| match self.numbers.get(at) {
            Some((before, so_far)) if same => {
                let direction = direction(*now, *before);
                (*now, if direction == 0 { *so_far } else { direction })
            }
            _ => (*now, 0),
        });
        self.numbers = next.collect();
        same
    }
}

/// Returns the first numbers in a text.
fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    digits.take(NUMBERS).map(|digits| digits.parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_may_count_but_not_jump() {
        let mut requests = AnsweredRequests::default();
        let mut ask = |text: &str| requests.is_known(text);
        assert!(!ask("Continue (1 of 9)"));
        assert!(ask("Continue (2 of 9)"));
        assert!(ask("Continue (4 of 9)"));
        assert!(!ask("Continue (3 of 9)"), "another direction");
        assert!(ask("Continue (3 of 9)"));
        assert!(!ask("Continue, 3 of 9 and 4"), "more numbers");
        assert!(!ask("Go on"));
        assert!(ask("Continue (4 of 9)"), "two requests in turn");
        let sums = [(12, 7), (31, 4), (5, 90), (66, 1), (70, 3)];
        let known = sums.map(|(a, b)| ask(&format!("What is {a} + {b}?")));
        assert_eq!(
            known,
            [false, true, false, true, false],
            "two numbers have a direction, three show that they jump"
        );
    }
}
