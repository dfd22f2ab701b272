//! What was spent: no token counted twice, no price guessed.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::scan::prices::{Prices, cost};
use crate::scan::watch::Used;

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Spend {
    /// Tokens read, without those from the cache.
    pub(crate) input_tokens: u64,
    /// Tokens written.
    pub(crate) output_tokens: u64,
    /// Tokens read from the cache.
    pub(crate) cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub(crate) cache_write_tokens: u64,
    /// Dollars, for the tokens whose price is known.
    pub(crate) usd: f64,
    /// Tokens of models whose price is not known; they are not in `usd`.
    pub(crate) unpriced_tokens: u64,
}

impl Spend {
    /// All tokens.
    pub(crate) fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens
    }

    /// Adds what one request used.
    pub(crate) fn add(&mut self, used: &Used, models: &[String], prices: &Prices) {
        self.input_tokens += u64::from(used.input);
        self.output_tokens += u64::from(used.output);
        self.cache_read_tokens += u64::from(used.cache_read);
        self.cache_write_tokens += u64::from(used.cache_write);
        if !used.usd.is_nan() {
            self.usd += used.usd;
            return;
        }
        match models.get(usize::from(used.model)).and_then(|model| prices.of(model)) {
            Some(price) => self.usd += cost(price, used),
            None => self.unpriced_tokens += used.tokens(),
        }
    }

    /// Adds another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.usd += other.usd;
        self.unpriced_tokens += other.unpriced_tokens;
    }
}

/// Leaves one record of every request. Streamed records, resumed and forked sessions repeat a request: the first
/// in the order of `lists` stays, with the largest figures that any of them has, and the others become empty.
pub(crate) fn once_each(lists: &mut [&mut Vec<Used>]) {
    let mut owners: HashMap<u64, (usize, usize)> = HashMap::new();
    for list in 0..lists.len() {
        for index in 0..lists[list].len() {
            let used = lists[list][index];
            if used.key == 0 {
                continue;
            }
            match owners.get(&used.key) {
                None => {
                    owners.insert(used.key, (list, index));
                }
                Some(&(first, at)) => {
                    let kept = &mut lists[first][at];
                    kept.input = kept.input.max(used.input);
                    kept.output = kept.output.max(used.output);
                    kept.cache_read = kept.cache_read.max(used.cache_read);
                    kept.cache_write = kept.cache_write.max(used.cache_write);
                    // `max` takes the number where the other is none.
                    kept.usd = kept.usd.max(used.usd);
                    let empty =
                        Used { input: 0, output: 0, cache_read: 0, cache_write: 0, usd: f64::NAN, ..used };
                    lists[list][index] = empty;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(key: u64, output: u32, usd: f64) -> Used {
        Used { step: 0, agent: 0, model: 0, input: 10, output, cache_read: 0, cache_write: 0, usd, key }
    }

    fn total(lists: &[&Vec<Used>]) -> Spend {
        let mut spend = Spend::default();
        let prices = Prices::new(std::collections::BTreeMap::new()).unwrap();
        for one in lists.iter().flat_map(|l| l.iter()) {
            spend.add(one, &["claude-sonnet-4-5".to_owned()], &prices);
        }
        spend
    }

    #[test]
    fn a_request_counts_once_with_its_last_figures() {
        let mut first =
            vec![used(7, 1, f64::NAN), used(7, 5, f64::NAN), used(0, 2, f64::NAN), used(0, 2, f64::NAN)];
        let mut copy = vec![used(7, 4, f64::NAN), used(8, 1, 0.5)];
        once_each(&mut [&mut first, &mut copy]);
        let spend = total(&[&first, &copy]);
        assert_eq!((spend.input_tokens, spend.output_tokens), (40, 10));
        assert_eq!(total(&[&copy]).output_tokens, 1);
        // Of the four, one says itself what it cost.
        let priced = (30.0 * 3.0 + 9.0 * 15.0) / 1e6;
        assert!((spend.usd - 0.5 - priced).abs() < 1e-12, "{spend:?}");
    }

    #[test]
    fn a_model_without_a_price_costs_nothing_known() {
        let mut spend = Spend::default();
        let prices = Prices::new(std::collections::BTreeMap::new()).unwrap();
        spend.add(&used(0, 5, f64::NAN), &["mystery".to_owned()], &prices);
        spend.add(&used(0, 5, 0.25), &["mystery".to_owned()], &prices);
        assert_eq!((spend.usd, spend.unpriced_tokens, spend.tokens()), (0.25, 15, 30));
    }
}
