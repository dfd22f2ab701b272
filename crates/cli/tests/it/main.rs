//! Everything through the command that a user types.

mod agent_hooks;
mod bad_input;
mod behavioral_hook;
mod binary;
mod configuration;
mod conformance;
mod events;
mod pages;
mod scan;
mod sessions;
