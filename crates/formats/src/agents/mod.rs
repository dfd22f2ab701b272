//! One folder per agent: its transcripts become Steps, its hook events too, and a Decision becomes its reply.

pub(crate) mod claude_code;
pub(crate) mod claude_code_stream;
pub(crate) mod cline;
pub(crate) mod codex;
pub(crate) mod copilot_cli;
pub(crate) mod cursor;
pub(crate) mod gemini_cli;
pub(crate) mod goose;
pub(crate) mod mini_swe_agent;
pub(crate) mod opencode;
pub(crate) mod openhands;
pub(crate) mod pi;
pub(crate) mod qwen_code;
pub(crate) mod swe_agent;
