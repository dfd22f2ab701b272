use crate::Format;
use crate::anthropic_messages::AnthropicMessages;
use crate::claude_code::ClaudeCode;
use crate::cline::Cline;
use crate::codex::Codex;
use crate::copilot_cli::CopilotCli;
use crate::cursor::Cursor;
use crate::gemini_cli::{GeminiCli, GeminiCliJson};
use crate::goose::Goose;
use crate::mini_swe_agent::MiniSweAgent;
use crate::native::Native;
use crate::openai_messages::OpenAiMessages;
use crate::openai_messages_jsonl::OpenAiMessagesJsonl;
use crate::openai_responses::OpenAiResponses;
use crate::opencode::Opencode;
use crate::openhands::OpenHands;
use crate::openinference::OpenInference;
use crate::otlp::Otlp;
use crate::pi::Pi;
use crate::qwen_code::QwenCode;
use crate::swe_agent::SweAgent;

/// Every format, in the order in which they are tried: the more telling before the more general.
pub static FORMATS: &[&dyn Format] = &[
    &ClaudeCode,
    &Codex,
    &CopilotCli,
    &QwenCode,
    &Pi,
    &GeminiCli,
    &GeminiCliJson,
    &Opencode,
    &OpenHands,
    &Goose,
    &Cline,
    &Cursor,
    &SweAgent,
    &MiniSweAgent,
    &OpenInference,
    &Otlp,
    &AnthropicMessages,
    &OpenAiResponses,
    &OpenAiMessages,
    &OpenAiMessagesJsonl,
    &Native,
];

/// The format of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.name() == name)
}

/// The format that a file's first bytes are of.
#[must_use]
pub fn sniff(head: &[u8]) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.sniff(head))
}
