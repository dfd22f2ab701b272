use crate::Format;
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code_stream::ClaudeCodeStream;
use crate::agents::cline::Cline;
use crate::agents::codex::Codex;
use crate::agents::copilot_cli::CopilotCli;
use crate::agents::cursor::Cursor;
use crate::agents::gemini_cli::{GeminiCli, GeminiCliJson};
use crate::agents::goose::Goose;
use crate::agents::mini_swe_agent::MiniSweAgent;
use crate::agents::opencode::Opencode;
use crate::agents::openhands::OpenHands;
use crate::agents::pi::Pi;
use crate::agents::qwen_code::QwenCode;
use crate::agents::swe_agent::SweAgent;
use crate::apis::anthropic_messages::AnthropicMessages;
use crate::apis::atif::Atif;
use crate::apis::openai_messages::OpenAiMessages;
use crate::apis::openai_messages_jsonl::OpenAiMessagesJsonl;
use crate::apis::openai_responses::OpenAiResponses;
use crate::apis::openinference::OpenInference;
use crate::apis::otlp::Otlp;
use crate::native::Native;

/// Every format, in the order in which [`sniff`] tries them: specific ones before general ones.
pub static FORMATS: &[&dyn Format] = &[
    &ClaudeCode,
    &ClaudeCodeStream,
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
    &Atif,
    &OpenInference,
    &Otlp,
    &AnthropicMessages,
    &OpenAiResponses,
    &OpenAiMessages,
    &OpenAiMessagesJsonl,
    &Native,
];

/// Returns the format with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.name() == name)
}

/// Returns the format of a file that begins with these bytes.
#[must_use]
pub fn sniff(head: &[u8]) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.sniff(head))
}
