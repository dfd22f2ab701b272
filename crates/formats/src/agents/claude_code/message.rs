//! A message of the model, which comes as several lines.

use deloop_types::{Body, Call, Step, ToolResult, Turn, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::Sink;
use crate::json::tolerant::{Shaped, Text};
use crate::step_writer::tool_result;
use crate::text::append;

use super::outcome::ClaudeOutcomeFields;
use super::record::{ClaudeBlock, ClaudeTokens, output};

/// A message of the model whose further lines may follow, with the results of its first calls in between.
pub(super) struct ClaudeOpenMessage {
    /// Names its request.
    name: Option<u64>,
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
    pub(super) fn new(name: Option<u64>, prompt: u64, step: Step) -> Self {
        Self { name, prompt, step, turn: Turn::default(), usage: None, behind: Vec::new() }
    }

    /// Names its request, if it has a name.
    pub(super) fn name(&self) -> Option<u64> {
        self.name
    }

    /// Hands it out and what came after it; the tokens only if they are not `counted` already.
    pub(super) fn hand_out(self, counted: bool, out: &mut Sink<'_>) {
        let Self { name, step, turn, usage, behind, .. } = self;
        if turn.said().is_some() || !turn.calls.is_empty() {
            out.step({
                let mut made = step.clone();
                made.body = Body::Turn(turn);
                made
            });
        }
        if let Some(usage) = usage.filter(|_| !counted) {
            out.usage(
                {
                    let mut made = step;
                    made.body = Body::Usage(usage);
                    made
                },
                name,
            );
        }
        behind.into_iter().for_each(|step| out.step(step));
    }

    /// Whether a line of that name is of this message. Some servers give all their messages one name; a prompt of
    /// another length then tells them apart.
    pub(super) fn goes_on(&self, name: Option<u64>, prompt: u64) -> bool {
        name.is_some() && self.name == name && (prompt == 0 || self.prompt == 0 || self.prompt == prompt)
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
pub(super) fn request(message: &Text<'_>, request: &Text<'_>) -> Option<u64> {
    match (message.get(), request.get()) {
        (None, None) => None,
        (message, request) => {
            let name = [message.unwrap_or_default(), request.unwrap_or_default()].join(" ");
            Some(xxh3_64(name.as_bytes()))
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
