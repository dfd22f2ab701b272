//! What deloop does about what it sees: profiles, ladders and message texts.
//!
//! A [`Profile`] is data: it names detectors, tunes them and gives each a ladder of rungs. [`decide`] climbs the
//! ladders with the findings of one step and what was [`Tried`] before, and answers with a
//! [`Decision`](deloop_types::Decision). Pure: no I/O, no clock.

mod agent_block;
mod decide;
mod document;
mod events;
mod ladder;
mod prices;
mod profile;
mod schema;
mod template;
mod tried;
mod words;

pub use agent_block::AGENT_VARIABLES;
pub use decide::{Decided, Found, Setting, decide};
pub use document::{DocumentError, merge, unknown_key};
pub use events::{Told, events};
pub use ladder::{By, Ladder, Rung};
pub use prices::{Prices, undated};
pub use profile::{PROFILES, Profile, ProfileError, Registry, Rules, Watch, profile_text};
pub use schema::{AgentBlock, CONFIG_KEYS, Fail, MemoryBlock, Price, config_schema};
pub use template::render;
pub use tried::Tried;
pub use words::{advice, evidence, summary, told};
