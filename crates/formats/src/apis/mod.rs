//! One folder per API or trace format: its messages become Steps.

pub(crate) mod anthropic_messages;
pub(crate) mod atif;
pub(crate) mod conversations;
pub(crate) mod dialect;
pub(crate) mod incremental;
pub(crate) mod openai_messages;
pub(crate) mod openai_messages_jsonl;
pub(crate) mod openai_responses;
pub(crate) mod openinference;
pub(crate) mod otlp;
pub(crate) mod tokens;
