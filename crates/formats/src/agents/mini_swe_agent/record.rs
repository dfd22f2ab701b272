//! The shapes of a run's records, as far as they matter here.

use serde::Deserialize;

use crate::json::field::Field;

/// The document.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MiniSweRun<'a> {
    #[serde(borrow)]
    pub(super) info: Field<'a>,
    #[serde(borrow)]
    pub(super) messages: Field<'a>,
    #[serde(borrow)]
    pub(super) instance_id: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MiniSweInfo<'a> {
    #[serde(borrow)]
    pub(super) mini_version: Field<'a>,
    #[serde(borrow)]
    pub(super) config: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MiniSweConfig<'a> {
    #[serde(borrow)]
    pub(super) environment: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Environment<'a> {
    #[serde(borrow)]
    pub(super) cwd: Field<'a>,
}

/// What stands beside a message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Extra<'a> {
    #[serde(borrow)]
    pub(super) actions: Field<'a>,
    #[serde(borrow)]
    pub(super) response: Field<'a>,
    #[serde(borrow)]
    pub(super) model_response: Field<'a>,
    #[serde(borrow)]
    pub(super) cost: Field<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Field<'a>,
    #[serde(borrow)]
    pub(super) interrupt_type: Field<'a>,
    #[serde(borrow)]
    pub(super) exit_status: Field<'a>,
    #[serde(borrow)]
    pub(super) returncode: Field<'a>,
    #[serde(borrow)]
    pub(super) exception_info: Field<'a>,
    #[serde(borrow)]
    pub(super) exception_type: Field<'a>,
}

/// A message of the Responses API without a role: all of a response, or a call's output.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) object: Field<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Field<'a>,
    #[serde(borrow)]
    pub(super) call_id: Field<'a>,
    #[serde(borrow)]
    pub(super) output: Field<'a>,
}

/// A response of Chat Completions or Responses.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MiniSweResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Field<'a>,
    #[serde(borrow)]
    pub(super) model: Field<'a>,
    #[serde(borrow)]
    pub(super) created: Field<'a>,
    #[serde(borrow)]
    pub(super) created_at: Field<'a>,
    #[serde(borrow)]
    pub(super) choices: Field<'a>,
    #[serde(borrow)]
    pub(super) output: Field<'a>,
    #[serde(borrow)]
    pub(super) usage: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MiniSweChoice<'a> {
    #[serde(borrow)]
    pub(super) message: Field<'a>,
}

/// A command that the model asked for.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MiniSweAction<'a> {
    #[serde(borrow)]
    pub(super) command: Field<'a>,
}
