//! Everything through the command that a user types.

mod agent_hooks;
mod agreement;
mod bad_input;
mod behavioral_hook;
mod binary;
mod broker;
mod ceilings;
mod claims;
mod compare;
mod configuration;
mod conformance;
mod conformance_cases;
mod corpus;
mod day_ceilings;
mod dialects;
mod doctor;
mod documents;
mod embeddings;
mod escapes;
mod eval;
mod events;
mod holdout;
mod hook_replies;
mod hostile;
mod incidents;
mod install;
mod intervention;
mod judging;
mod known_failures;
mod limits;
mod live;
mod pages;
mod purge;
mod recovery;
#[path = "../../../engine/tests/redis/server.rs"]
mod redis_server;
mod reproductions;
mod run;
mod run_routing;
mod run_stall;
mod scan;
mod scan_files;
mod scan_privacy;
mod secrets;
mod sessions;
#[expect(clippy::disallowed_methods, reason = "measures how long an agent waits")]
mod shared_store;
mod spirals;
mod stale_runs;
mod state;
mod steps;
mod subagents;
mod swarms;
mod transcripts;
#[path = "../../../engine/tests/redis/wait.rs"]
mod wait;
