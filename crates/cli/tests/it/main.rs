//! Everything through the command that a user types.

mod agent_hooks;
mod bad_input;
mod behavioral_hook;
mod binary;
mod compare;
mod configuration;
mod conformance;
mod corpus;
mod dialects;
mod doctor;
mod escapes;
mod eval;
mod events;
mod install;
mod intervention;
mod limits;
mod live;
mod pages;
mod run;
mod scan;
mod scan_files;
mod scan_privacy;
mod secrets;
mod sessions;
mod steps;
mod transcripts;
