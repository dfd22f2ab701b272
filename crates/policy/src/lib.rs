//! Decides what to do about findings: profiles, ladders and message texts.
//!
//! A [`Profile`] is data: it lists detectors, their parameters and a ladder of rungs for each. [`decide`] takes the
//! findings of one step and the [`LadderState`], and returns a
//! [`Decision`](deloop_types::Decision). The crate is pure: no I/O and no clock.

mod agent_block;
mod alert_routes;
mod ceilings_block;
mod climb;
#[cfg(feature = "schema")]
mod config_shape;
mod decide;
mod document;
mod events;
mod holdout;
mod identifier;
mod ladder;
mod ladder_state;
mod prices;
mod profile;
mod project_keys;
mod project_settings;
mod reached;
mod root_cause;
mod run_block;
mod schema;
mod serve_block;
mod settings;
mod spawn_words;
mod task_update;
mod template;
mod wait_words;
mod words;

pub use agent_block::AGENT_VARIABLES;
pub use alert_routes::{AlertKind, AlertLevel, AlertRouteBlock, AlertSinkKind};
pub use ceilings_block::CeilingsBlock;
pub use climb::Ladders;
pub use decide::{Decided, DecisionContext, DetectorHit, decide, decision_id};
pub use document::{DocumentError, merge, unknown_key, wrong_value};
pub use events::{AlertsSent, events};
pub use holdout::is_held_out;
pub use ladder::{Ladder, Rung, RungUnit};
pub use ladder_state::LadderState;
pub use prices::{
    LongPromptPrice, Price, PriceRow, PriceTable, PriceTableError, Prices, table_from_litellm, undated,
};
pub use profile::{PROFILES, Profile, ProfileError, Registry, Rules, StopEnds, Watch, profile_text};
pub use project_keys::{ProjectFile, project_keys, project_may_set};
pub use project_settings::{KeptSetting, ProjectMerge, ProjectMerged, check_project_file, merge_project};
pub use reached::ReachedRung;
pub use root_cause::{RootCause, root_cause};
pub use run_block::{RecoverWith, RunBlock};
pub use schema::{
    AgentBlock, CONFIG_KEYS, EmbeddingsBlock, EventsBlock, Fail, MemoryBlock, ServerBlock, SwarmBlock,
    config_schema,
};
pub use serve_block::{
    AuditBlock, AuditKeep, BudgetsBlock, ProjectBudgetBlock, ServeBlock, ServeLimitsBlock, ServeRedisBlock,
    ServeTlsBlock, WhenUnknown,
};
pub use settings::{merge_settings, profile_document, setting};
pub use task_update::{TASK_UPDATE, TaskMetadata, TaskUpdate, name_task};
pub use template::render;
pub use words::{advice, evidence, notice, summary, told, told_to_others, user_message};
