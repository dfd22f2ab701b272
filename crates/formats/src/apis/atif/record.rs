//! The shapes of a trajectory, as far as they matter here.

use serde::Deserialize;

use crate::json::field::Field;

/// The document, or a subagent's in it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifTrajectory<'a> {
    #[serde(borrow)]
    pub(super) session_id: Field<'a>,
    #[serde(borrow)]
    pub(super) trajectory_id: Field<'a>,
    #[serde(borrow)]
    pub(super) agent: Field<'a>,
    #[serde(borrow)]
    pub(super) steps: Field<'a>,
    #[serde(borrow)]
    pub(super) final_metrics: Field<'a>,
    #[serde(borrow)]
    pub(super) subagent_trajectories: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifAgent<'a> {
    #[serde(borrow)]
    pub(super) name: Field<'a>,
    #[serde(borrow)]
    pub(super) version: Field<'a>,
    #[serde(borrow)]
    pub(super) model_name: Field<'a>,
    #[serde(borrow)]
    pub(super) extra: Field<'a>,
}

/// What some agents add about themselves.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifAgentExtra<'a> {
    #[serde(borrow)]
    pub(super) cwd: Field<'a>,
    #[serde(borrow)]
    pub(super) cwds: Field<'a>,
}

/// A message, with the calls that the model made in it and their results.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifStep<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Field<'a>,
    #[serde(borrow)]
    pub(super) source: Field<'a>,
    #[serde(borrow)]
    pub(super) model_name: Field<'a>,
    #[serde(borrow)]
    pub(super) message: Field<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Field<'a>,
    #[serde(borrow)]
    pub(super) observation: Field<'a>,
    #[serde(borrow)]
    pub(super) metrics: Field<'a>,
    #[serde(borrow)]
    pub(super) is_copied_context: Field<'a>,
    #[serde(borrow)]
    pub(super) extra: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifStepExtra<'a> {
    #[serde(borrow)]
    pub(super) context_management: Field<'a>,
}

/// How a step changed what the model sees.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContextManagement<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Field<'a>,
    #[serde(borrow)]
    pub(super) boundary: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifCall<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Field<'a>,
    #[serde(borrow)]
    pub(super) function_name: Field<'a>,
    #[serde(borrow)]
    pub(super) arguments: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifObservation<'a> {
    #[serde(borrow)]
    pub(super) results: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifResult<'a> {
    #[serde(borrow)]
    pub(super) source_call_id: Field<'a>,
    #[serde(borrow)]
    pub(super) content: Field<'a>,
    #[serde(borrow)]
    pub(super) extra: Field<'a>,
}

/// A part of a content that isn't text.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ImagePart<'a> {
    #[serde(borrow)]
    pub(super) source: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AtifImageSource<'a> {
    #[serde(borrow)]
    pub(super) path: Field<'a>,
}
