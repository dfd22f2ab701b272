//! A message of the model, which comes as several lines.

use deloop_types::{Body, Call, Step, ToolResult, Turn, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::Sink;
use crate::json::tolerant::{Shaped, Text};
use crate::recent::RecentSet;
use crate::step_writer::tool_result;
use crate::text::append;

use super::outcome::ClaudeOutcomeFields;
use super::record::{ClaudeBlock, ClaudeTokens, output};

/// A message of the model whose further lines may follow, with the results of its first calls in between.
pub(super) struct ClaudeOpenMessage {
    /// Names its request.
    name: Option<RequestName>,
    /// The tokens it read, cached or not.
    prompt: u64,
    /// When and where it was said.
    step: Step,
    pub(super) turn: Turn,
    pub(super) usage: Option<Usage>,
    /// What came after it.
    pub(super) behind: Vec<Step>,
}

impl ClaudeOpenMessage {
    pub(super) fn new(name: Option<RequestName>, prompt: u64, step: Step) -> Self {
        Self { name, prompt, step, turn: Turn::default(), usage: None, behind: Vec::new() }
    }

    /// Hands it out and what came after it; the tokens only if they aren't among those that are `counted` already.
    pub(super) fn hand_out(self, counted: &mut RecentSet<u64>, out: &mut Sink<'_>) {
        let (key, is_new) = self.key(counted);
        let Self { name, step, turn, usage, behind, .. } = self;
        if turn.said().is_some() || !turn.calls.is_empty() {
            out.step({
                let mut made = step.clone();
                made.body = Body::Turn(turn);
                made
            });
        }
        if let Some(usage) = usage.filter(|_| is_new) {
            let mut made = step;
            made.body = Body::Usage(usage);
            match name.is_some_and(|name| !name.is_certain) {
                true => out.unsure_usage(made, key),
                false => out.usage(made, key),
            }
        }
        behind.into_iter().for_each(|step| out.step(step));
    }

    /// Returns what identifies its request in all files, and whether it wasn't `counted` before. Of messages with one name
    /// and prompt, the first is identified by these, so that its parts are alike, and a later one by what it says.
    fn key(&self, counted: &mut RecentSet<u64>) -> (Option<u64>, bool) {
        let Some(name) = self.name else { return (None, true) };
        let key = mixed(name.hash, self.prompt);
        if name.is_certain {
            return (Some(key), counted.insert(key, ()));
        }
        let ids = self.turn.calls.iter().filter_map(|call| call.id.as_deref());
        let said =
            ids.fold(xxh3_64(self.turn.text.as_bytes()), |said, id| mixed(said, xxh3_64(id.as_bytes())));
        let when = self.step.ts.map_or(0, |ts| ts.0.cast_unsigned());
        let content = mixed(mixed(key, said), when);
        let is_new = counted.insert(content, ());
        (Some(if counted.insert(key, ()) { key } else { content }), is_new)
    }

    /// Returns whether a line with these `blocks` and that name is of this message. Some servers give all their messages one
    /// name: a prompt of another length tells them apart, and so does what came in between, unless more calls follow it. The
    /// results of a message's first calls may come before its last ones.
    pub(super) fn goes_on(
        &self,
        name: Option<RequestName>,
        prompt: u64,
        blocks: &Shaped<'_, ClaudeBlock<'_>>,
    ) -> bool {
        let Some(name) = name.filter(|name| self.name == Some(*name)) else { return false };
        let is_same_prompt = prompt == 0 || self.prompt == 0 || self.prompt == prompt;
        if !is_same_prompt || self.behind.is_empty() {
            return is_same_prompt;
        }
        // With the results, the prompt of another request would have been longer.
        let are_more_calls = prompt != 0 && self.prompt == prompt && are_calls(blocks);
        (name.is_certain || are_more_calls) && !self.answered_again(blocks)
    }

    /// Returns whether one of the `blocks` makes a call anew that has its result.
    fn answered_again(&self, blocks: &Shaped<'_, ClaudeBlock<'_>>) -> bool {
        let Shaped::List(blocks) = blocks else { return false };
        let is_answered = |call: &Call| {
            let is_result =
                |step: &Step| matches!(&step.body, Body::Result(r) if r.id.is_some() && r.id == call.id);
            self.behind.iter().any(is_result)
        };
        let answered: Vec<&Call> = self.turn.calls.iter().filter(|call| is_answered(call)).collect();
        blocks.iter().filter(|block| block.kind.as_str().ends_with("tool_use")).any(|block| {
            let is_same = |call: &&Call| {
                call.id.as_deref() != block.id.get()
                    && call.tool == block.name.as_str()
                    && call.args == block.input
            };
            answered.iter().any(is_same)
        })
    }

    /// Adds a block; the result of a call that the server itself ran comes back.
    pub(super) fn add(&mut self, block: ClaudeBlock<'_>) -> Option<ToolResult> {
        let kind = block.kind.as_str();
        if kind == "text" {
            if let Some(text) =
                block.text.take().filter(|text| !text.trim().is_empty() && text != "(no content)")
            {
                append(&mut self.turn.text, text);
            }
        } else if kind.ends_with("tool_use") {
            self.call(block);
        } else if is_result(&block) {
            let failed = block.is_error.is_true();
            let fields = ClaudeOutcomeFields { tool: "", denial: None, details: &Shaped::Nothing, failed };
            return Some(result(block, &fields));
        }
        None
    }

    /// Adds a call, unless one of the last ones is the same: a line may repeat what the line before it held.
    fn call(&mut self, block: ClaudeBlock<'_>) {
        let id = block.id.take();
        if id.is_some()
            && self.turn.calls.iter().rev().take(64).any(|call| call.id.as_deref() == id.as_deref())
        {
            return;
        }
        self.turn.calls.push({
            let mut made = Call::new(block.name.as_str().to_owned(), block.input);
            made.id = id.map(Into::into);
            made
        });
    }
}

/// The name of a request in all files: a resumed session repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestName {
    hash: u64,
    /// Whether the server named the request, too, so that no other has this name.
    is_certain: bool,
}

fn mixed(a: u64, b: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.to_le_bytes());
    bytes[8..].copy_from_slice(&b.to_le_bytes());
    xxh3_64(&bytes)
}

/// Names the request of a message.
pub(super) fn request(message: &Text<'_>, request: &Text<'_>) -> Option<RequestName> {
    match (message.get(), request.get()) {
        (None, None) => None,
        (message, request) => {
            let name = [message.unwrap_or_default(), request.unwrap_or_default()].join(" ");
            Some(RequestName { hash: xxh3_64(name.as_bytes()), is_certain: request.is_some() })
        }
    }
}

/// What a request used.
pub(super) fn counted(tokens: &ClaudeTokens<'_>, model: &Text<'_>, cost_usd: Option<f64>) -> Usage {
    let mut made = Usage::default();
    made.model = model.get().map(str::to_owned);
    made.input_tokens = tokens.input_tokens.count();
    made.output_tokens = tokens.output_tokens.count();
    made.cache_read_tokens = tokens.cache_read_input_tokens.count();
    made.cache_write_tokens = tokens.cache_creation_input_tokens.count();
    if let Shaped::Object(parts) = &tokens.cache_creation {
        made.cache_write_1h_tokens = parts.ephemeral_1h_input_tokens.count();
    }
    made.cost_usd = cost_usd;
    made
}

/// The length of a request's prompt.
pub(super) fn read_tokens(usage: &Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.cache_read_tokens).saturating_add(usage.cache_write_tokens)
}

/// Returns whether all of the `blocks` are calls.
fn are_calls(blocks: &Shaped<'_, ClaudeBlock<'_>>) -> bool {
    matches!(blocks, Shaped::List(blocks) if blocks.iter().all(|block| block.kind.as_str().ends_with("tool_use")))
}

/// Returns whether a block is a call's result.
pub(super) fn is_result(block: &ClaudeBlock<'_>) -> bool {
    block.kind.as_str().ends_with("tool_result")
}

/// A call's result.
pub(super) fn result(block: ClaudeBlock<'_>, evidence: &ClaudeOutcomeFields<'_>) -> ToolResult {
    let output = output(block.content);
    let ended = evidence.ended(output.as_deref().unwrap_or_default());
    tool_result(block.tool_use_id.take().map(Into::into), Some(ended), output)
}
