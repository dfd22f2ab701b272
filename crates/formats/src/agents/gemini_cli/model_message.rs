//! What the model said and what came back, as one record holds it.

use deloop_types::{Call, Millis, Outcome, Usage};

use super::identity::{self, MESSAGE};
use super::outcome;
use super::record::{GeminiMessage, GeminiTokens};

/// Calls of one record that ended further apart than this were asked for in different requests.
const SAME_BATCH: u64 = 100;

/// A record of the model.
pub(super) struct ModelMessage {
    pub(super) id: Option<u64>,
    pub(super) ts: Option<Millis>,
    pub(super) text: String,
    pub(super) calls: Vec<CompletedCall>,
    pub(super) usage: Option<Usage>,
}

/// A call, and what came back if it did.
pub(super) struct CompletedCall {
    pub(super) call: Call,
    pub(super) ts: Option<Millis>,
    pub(super) result: Option<(Option<Outcome>, Option<String>)>,
}

impl ModelMessage {
    /// Of a message of the model.
    pub(super) fn new(message: GeminiMessage<'_>) -> Self {
        let text = message.content.text();
        let mut calls: Vec<CompletedCall> = Vec::new();
        for call in message.tool_calls.0 {
            let output = outcome::output(&call.result);
            let ended = outcome::of_status(call.status.as_str(), call.name.as_str(), &output);
            let shown = Some(output).filter(|output| !output.is_empty());
            let recorded = !call.result.responses.is_empty();
            let output = shown.or_else(|| call.result_display.owned()).or_else(|| recorded.then(String::new));
            calls.push(CompletedCall {
                call: {
                    let mut made = Call::new(call.name.owned().unwrap_or_default(), call.args.0);
                    made.id = call.id.owned();
                    made
                },
                ts: call.timestamp.0,
                result: (ended.is_some() || output.is_some()).then_some((ended, output)),
            });
        }
        if calls.is_empty() {
            calls.extend(message.content.calls.into_iter().map(|call| CompletedCall {
                call: {
                    let mut made = Call::new(call.name.owned().unwrap_or_default(), call.args.0);
                    made.id = call.id.owned();
                    made
                },
                ts: None,
                result: None,
            }));
        }
        Self {
            id: identity::hash(MESSAGE, message.id.get()),
            ts: message.timestamp.0,
            text,
            calls,
            usage: message.tokens.0.map(|tokens| used(&tokens, message.model.owned())),
        }
    }
}

fn used(tokens: &GeminiTokens, model: Option<String>) -> Usage {
    let mut made = Usage::default();
    made.model = model;
    made.input_tokens = (tokens.input.0.saturating_add(tokens.tool.0)).saturating_sub(tokens.cached.0);
    made.output_tokens = tokens.output.0.saturating_add(tokens.thoughts.0);
    made.cache_read_tokens = tokens.cached.0;
    made
}

/// Cuts the calls of one record into those that were asked for together: requests without text and thoughts
/// are added to the record of the one before, but calls of one request are written down at one moment.
pub(super) fn batches(calls: Vec<CompletedCall>) -> Vec<Vec<CompletedCall>> {
    let mut batches: Vec<Vec<CompletedCall>> = Vec::new();
    let mut before = None;
    for done in calls {
        let apart = matches!((before, done.ts), (Some(last), Some(ts)) if ts.since(last) > SAME_BATCH);
        before = done.ts.or(before);
        match batches.last_mut() {
            Some(batch) if !apart => batch.push(done),
            _ => batches.push(vec![done]),
        }
    }
    batches
}
