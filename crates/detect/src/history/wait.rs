use deloop_types::Usage;
use serde::{Deserialize, Serialize};

use super::{History, limited_tokens};
use crate::{CallRecord, Look, Progress};

/// How many input tokens of a model without a price count as a dollar, when waiting is judged by its cost.
const TOKENS_PER_DOLLAR: f64 = 800_000.0;

/// What waiting has cost since the last new request of a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// Number of looks in a row that brought nothing new.
    pub looks: u32,
    /// The step of the first of them.
    pub since: u32,
    /// When the first and the last of them were made, in tenths of a second after the history's first call.
    first: u32,
    last: u32,
    /// What these looks cost.
    pub run: WaitCost,
    /// What all waiting has cost, whatever came in between.
    pub all: WaitCost,
    /// The last call that waited.
    pub call: u64,
    /// Whether the agent waits: the last call did, or a timer woke it.
    waiting: bool,
}

/// What looks cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitCost {
    /// Number of requests to the model.
    pub requests: u32,
    /// Dollars, as far as the prices are known.
    pub usd: f64,
    /// Tokens of models without a price, weighted like input tokens.
    pub tokens: f64,
}

impl WaitCost {
    /// Returns the cost in dollars, with an estimate for models without a price.
    #[must_use]
    pub fn dollars(&self) -> f64 {
        self.usd + self.tokens / TOKENS_PER_DOLLAR
    }

    fn add(&mut self, usage: &Usage) {
        self.requests = self.requests.saturating_add(1);
        match usage.dollars() {
            Some(usd) => self.usd = (self.usd + usd).min(f64::MAX),
            None => self.tokens = (self.tokens + weighted_tokens(usage)).min(f64::MAX),
        }
    }
}

impl Wait {
    /// Returns whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a look. `news`: it returned something that the look before it didn't.
    fn add(&mut self, record: &CallRecord, news: bool) {
        self.waiting = true;
        if news {
            self.start_over();
            return;
        }
        if self.looks == 0 {
            (self.since, self.first) = (record.step, record.at);
        }
        self.looks += 1;
        (self.last, self.call) = (record.at, record.signature);
    }

    /// Returns the mean time between two looks in seconds, if their times are known.
    #[must_use]
    pub fn pause(&self) -> Option<f64> {
        let known = self.looks > 1 && self.first != u32::MAX && self.last != u32::MAX;
        known.then(|| f64::from(self.last.saturating_sub(self.first)) / 10.0 / f64::from(self.looks - 1))
    }

    /// Returns for how many minutes the looks have gone on, if their times are known.
    #[must_use]
    pub fn minutes(&self) -> Option<f64> {
        self.pause().map(|pause| pause * f64::from(self.looks - 1) / 60.0)
    }

    fn start_over(&mut self) {
        (self.looks, self.run) = (0, WaitCost::default());
    }

    fn charge(&mut self, usage: &Usage) {
        if self.waiting {
            self.run.add(usage);
            self.all.add(usage);
        }
    }
}

/// Returns the tokens of a request, weighted like input tokens as far as somebody knows the weights.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
fn weighted_tokens(usage: &Usage) -> f64 {
    usage.weighted_tokens.unwrap_or_else(|| limited_tokens(usage)) as f64
}

impl History {
    /// Returns what waiting has cost so far.
    #[must_use]
    pub fn wait(&self) -> &Wait {
        &self.wait
    }

    /// Adds a call whose result has just been judged. `news`: a look returned something new.
    pub(super) fn push_look(&mut self, record: &CallRecord, news: bool) {
        match record.look {
            Look::Waiting => self.wait.add(record, news),
            _ if record.ending.tells()
                && !record.progress.nothing_new()
                && record.progress != Progress::None =>
            {
                self.wait.waiting = false;
                self.wait.start_over();
            }
            _ => {}
        }
    }

    /// Notes that a timer woke the agent: until it does something, it only waits.
    pub(super) fn push_beat(&mut self) {
        self.wait.waiting = true;
    }

    /// Adds what a request to the model used.
    pub(super) fn charge_wait(&mut self, usage: &Usage) {
        self.wait.charge(usage);
    }
}
