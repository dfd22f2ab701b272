//! The detectors: one file per pattern, with its page beside it.

pub(crate) mod call_cycle;
pub(crate) mod chanting;
pub(crate) mod counting;
pub(crate) mod duplicate_turn;
pub(crate) mod empty_search;
pub(crate) mod failing_commands;
pub(crate) mod failing_run;
pub(crate) mod failing_tests;
pub(crate) mod no_progress;
pub(crate) mod over_budget;
pub(crate) mod repeated_call;
pub(crate) mod repeated_edit;
pub(crate) mod repeated_error;
pub(crate) mod repeated_failure;
pub(crate) mod repeated_target;
pub(crate) mod run;
pub(crate) mod similar_call;
pub(crate) mod similar_turn;
pub(crate) mod swarm_repeat;
pub(crate) mod talk_only;
