//! One folder per API or trace format: its messages become Steps.

pub(crate) mod anthropic_messages;
pub(crate) mod dialect;
pub(crate) mod envelope;
pub(crate) mod growing;
pub(crate) mod openai_messages;
pub(crate) mod openai_messages_jsonl;
pub(crate) mod openai_responses;
pub(crate) mod openinference;
pub(crate) mod otlp;
pub(crate) mod tokens;
