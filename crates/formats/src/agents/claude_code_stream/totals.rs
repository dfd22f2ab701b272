//! Tokens: a message is written when it begins, so its output tokens are far too low. The result at the end of a turn
//! has the right ones, of all requests.

use std::collections::{BTreeMap, HashMap};

use deloop_types::Usage;

use super::record::ModelUsage;
use crate::json::tolerant::{Count, Object};

/// More models than that aren't told apart.
const MODELS: usize = 256;

/// The tokens so far, by model.
#[derive(Default)]
pub(super) struct StreamTotals {
    models: HashMap<String, ModelTotals>,
}

#[derive(Default)]
struct ModelTotals {
    /// What messages reported since the last result.
    reported: Usage,
    /// The totals of the last result, which are of the whole process.
    last: ModelUsage,
}

/// The tokens of each model in a result.
type Models = BTreeMap<String, Object<ModelUsage>>;

impl StreamTotals {
    /// Adds what a message reported.
    pub(super) fn reported(&mut self, usage: &Usage) {
        let Some(totals) = usage.model.as_deref().and_then(|model| self.model(model)) else { return };
        let sum = &mut totals.reported;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut sum.input_tokens, usage.input_tokens);
        add(&mut sum.output_tokens, usage.output_tokens);
        add(&mut sum.cache_read_tokens, usage.cache_read_tokens);
        add(&mut sum.cache_write_tokens, usage.cache_write_tokens);
        add(&mut sum.cache_write_1h_tokens, usage.cache_write_1h_tokens);
    }

    /// Returns what a result reports beyond what the messages before it did. `fresh` is what was used since the last
    /// result, which older versions don't report.
    pub(super) fn result(&mut self, all: Models, fresh: Option<&Models>) -> Vec<Usage> {
        let mut beyond = Vec::new();
        for (name, used) in fresh.unwrap_or(&all) {
            let (name, used) = (plain(name), used.0.unwrap_or_default());
            let is_fresh = fresh.is_some();
            let Some(totals) = self.model(name) else { continue };
            let used = if is_fresh { used } else { since(&used, &totals.last) };
            let mut usage = less(&used, &totals.reported);
            usage.model = Some(name.to_owned());
            beyond.push(usage);
        }
        for totals in self.models.values_mut() {
            totals.reported = Usage::default();
        }
        for (name, used) in all {
            if let Some(totals) = self.model(plain(&name)) {
                totals.last = used.0.unwrap_or_default();
            }
        }
        beyond
    }

    fn model(&mut self, name: &str) -> Option<&mut ModelTotals> {
        if !self.models.contains_key(name) {
            if self.models.len() >= MODELS {
                return None;
            }
            self.models.insert(name.to_owned(), ModelTotals::default());
        }
        self.models.get_mut(name)
    }
}

/// Returns a model's name as messages have it: a result may add the size of its context, as in `opus[1m]`.
fn plain(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// Returns what was used since the last totals, or all if those were of another process.
fn since(used: &ModelUsage, last: &ModelUsage) -> ModelUsage {
    let minus = |of: fn(&ModelUsage) -> &Count| of(used).0.checked_sub(of(last).0).map(Count);
    let difference = || {
        Some(ModelUsage {
            input_tokens: minus(|u| &u.input_tokens)?,
            output_tokens: minus(|u| &u.output_tokens)?,
            cache_read_input_tokens: minus(|u| &u.cache_read_input_tokens)?,
            cache_creation_input_tokens: minus(|u| &u.cache_creation_input_tokens)?,
            cache_creation_ephemeral1h_input_tokens: minus(|u| &u.cache_creation_ephemeral1h_input_tokens)?,
        })
    };
    difference().unwrap_or(*used)
}

fn less(used: &ModelUsage, reported: &Usage) -> Usage {
    let mut made = Usage::default();
    made.input_tokens = used.input_tokens.0.saturating_sub(reported.input_tokens);
    made.output_tokens = used.output_tokens.0.saturating_sub(reported.output_tokens);
    made.cache_read_tokens = used.cache_read_input_tokens.0.saturating_sub(reported.cache_read_tokens);
    made.cache_write_tokens = used.cache_creation_input_tokens.0.saturating_sub(reported.cache_write_tokens);
    made.cache_write_1h_tokens = used
        .cache_creation_ephemeral1h_input_tokens
        .0
        .saturating_sub(reported.cache_write_1h_tokens)
        .min(made.cache_write_tokens);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(name: &str, input: u64, output: u64) -> Models {
        let used = format!(r#"{{"{name}":{{"inputTokens":{input},"outputTokens":{output}}}}}"#);
        serde_json::from_str(&used).unwrap()
    }

    fn message(totals: &mut StreamTotals, input: u64, output: u64) {
        let mut usage = Usage::default();
        usage.model = Some("m".to_owned());
        (usage.input_tokens, usage.output_tokens) = (input, output);
        totals.reported(&usage);
    }

    fn tokens(beyond: &[Usage]) -> Vec<(&str, u64, u64)> {
        beyond
            .iter()
            .map(|u| (u.model.as_deref().unwrap_or_default(), u.input_tokens, u.output_tokens))
            .collect()
    }

    #[test]
    fn a_result_reports_what_its_messages_did_not() {
        let mut totals = StreamTotals::default();
        message(&mut totals, 100, 1);
        message(&mut totals, 100, 1);
        assert_eq!(tokens(&totals.result(models("m[1m]", 200, 80), None)), [("m", 0, 78)]);
        message(&mut totals, 100, 1);
        assert_eq!(tokens(&totals.result(models("m", 300, 120), None)), [("m", 0, 39)], "of the process");
        message(&mut totals, 100, 1);
        assert_eq!(tokens(&totals.result(models("m", 100, 40), None)), [("m", 0, 39)], "of another process");
        message(&mut totals, 100, 1);
        let fresh = models("m", 100, 40);
        assert_eq!(tokens(&totals.result(models("m", 9_000, 900), Some(&fresh))), [("m", 0, 39)], "resumed");
        assert!(totals.result(models("m", 9_000, 900), Some(&Models::new())).is_empty());
    }

    #[test]
    fn models_that_only_a_result_names_count_too() {
        let mut totals = StreamTotals::default();
        message(&mut totals, 100, 1);
        assert_eq!(tokens(&totals.result(models("small", 10, 5), None)), [("small", 10, 5)]);
    }
}
