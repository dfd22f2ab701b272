//! Tokens: each message tells what it wrote, only the end of the session tells what was read.

use std::collections::HashMap;

use deloop_types::Usage;

use super::record::Metric;

/// What was counted so far, for each model.
#[derive(Default)]
pub(super) struct CopilotTotals {
    models: HashMap<String, Counted>,
}

#[derive(Default)]
struct Counted {
    /// Messages since the last totals.
    messages: u64,
    /// The tokens these messages reported.
    reported: Usage,
    /// The last totals.
    requests: u64,
    usage: Usage,
}

impl CopilotTotals {
    /// A message reported these tokens: mostly only those that it wrote.
    pub(super) fn message(&mut self, usage: &Usage) {
        let counted = self.models.entry(usage.model.clone().unwrap_or_default()).or_default();
        counted.messages += 1;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut counted.reported.input_tokens, usage.input_tokens);
        add(&mut counted.reported.output_tokens, usage.output_tokens);
        add(&mut counted.reported.cache_read_tokens, usage.cache_read_tokens);
        add(&mut counted.reported.cache_write_tokens, usage.cache_write_tokens);
    }

    /// Totals were told: gives what they hold beyond what was counted before.
    pub(super) fn told(&mut self, model: &str, metric: &Metric) -> Usage {
        let counted = self.models.entry(model.to_owned()).or_default();
        let requests = metric.requests.0.as_ref().map_or(0, |requests| requests.count.0);
        let usage = total(model, metric);
        // A resumed session tells totals again, either of all of it or of what came after it was resumed.
        let of_all = requests >= counted.requests.saturating_add(counted.messages);
        let before = if of_all { std::mem::take(&mut counted.usage) } else { Usage::default() };
        let mut fresh = Usage::default();
        fresh.model = usage.model.clone();
        let reported = &counted.reported;
        let beyond =
            |of: fn(&Usage) -> u64| of(&usage).saturating_sub(of(&before)).saturating_sub(of(reported));
        fresh.input_tokens = beyond(|u| u.input_tokens);
        fresh.output_tokens = beyond(|u| u.output_tokens);
        fresh.cache_read_tokens = beyond(|u| u.cache_read_tokens);
        fresh.cache_write_tokens = beyond(|u| u.cache_write_tokens);
        fresh.cost_usd = None;
        *counted = Counted { messages: 0, reported: Usage::default(), requests, usage };
        fresh
    }
}

fn total(model: &str, metric: &Metric) -> Usage {
    let Some(totals) = &metric.usage.0 else { return Usage::default() };
    let (read, write) = (totals.cache_read_tokens.0, totals.cache_write_tokens.0);
    let input = totals.input_tokens.0;
    let mut made = Usage::default();
    made.model = Some(model.to_owned());
    made.input_tokens = input.checked_sub(read.saturating_add(write)).unwrap_or(input);
    made.output_tokens = totals.output_tokens.0;
    made.cache_read_tokens = read;
    made.cache_write_tokens = write;
    made.cost_usd = None;
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(count: u64, input: u64, output: u64, read: u64) -> Metric {
        let json = format!(
            r#"{{"requests":{{"count":{count}}},
            "usage":{{"inputTokens":{input},"outputTokens":{output},"cacheReadTokens":{read}}}}}"#
        );
        crate::json::tolerant::read(json.as_bytes()).unwrap()
    }

    fn wrote(totals: &mut CopilotTotals, output: u64) {
        let mut usage = Usage::default();
        usage.model = Some("m".to_owned());
        usage.output_tokens = output;
        totals.message(&usage);
    }

    fn tokens(usage: &Usage) -> (u64, u64, u64) {
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    }

    #[test]
    fn totals_of_a_resumed_session_are_not_counted_twice() {
        let mut totals = CopilotTotals::default();
        wrote(&mut totals, 10);
        wrote(&mut totals, 10);
        assert_eq!(tokens(&totals.told("m", &metric(2, 1_000, 25, 400))), (600, 5, 400));
        wrote(&mut totals, 10);
        assert_eq!(
            tokens(&totals.told("m", &metric(3, 1_500, 35, 700))),
            (200, 0, 300),
            "totals of all of it"
        );
        wrote(&mut totals, 10);
        assert_eq!(tokens(&totals.told("m", &metric(1, 500, 10, 0))), (500, 0, 0), "of the rest only");
    }

    #[test]
    fn tokens_that_messages_reported_are_not_counted_twice() {
        let mut totals = CopilotTotals::default();
        let mut usage = Usage::default();
        usage.model = Some("m".to_owned());
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) = (600, 25, 400);
        totals.message(&usage);
        assert_eq!(tokens(&totals.told("m", &metric(1, 1_000, 25, 400))), (0, 0, 0));
    }
}
