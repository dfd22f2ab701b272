use crate::AnyDetector;
use crate::detectors::{
    call_cycle::CallCycle, chanting::Chanting, compaction_spiral::CompactionSpiral,
    duplicate_turn::DuplicateTurn, edits_without_progress::EditsWithoutProgress, empty_search::EmptySearch,
    failing_commands::FailingCommands, failing_run::FailingRun, failing_tests::FailingTests,
    idle_spend::IdleSpend, known_failure::KnownFailureDetector, no_progress::NoProgress,
    over_budget::OverBudget, persistence_loop::PersistenceLoop, plan_rewrite::PlanRewrite,
    repeated_call::RepeatedCall, repeated_edit::RepeatedEdit, repeated_error::RepeatedError,
    repeated_failure::RepeatedFailure, repeated_target::RepeatedTarget, similar_call::SimilarCall,
    similar_turn::SimilarTurn, spawn_tree::SpawnTreeDetector, stale_run::StaleRun, stalled_task::StalledTask,
    swarm_repeat::SwarmRepeat, talk_only::TalkOnly, test_edits_without_green::TestEditsWithoutGreen,
    waiting::WaitingDetector,
};

/// All built-in detectors.
pub static DETECTORS: &[&dyn AnyDetector] = &[
    &RepeatedCall,
    &RepeatedTarget,
    &SimilarCall,
    &CallCycle,
    &SimilarTurn,
    &DuplicateTurn,
    &FailingTests,
    &FailingCommands,
    &TalkOnly,
    &SwarmRepeat,
    &RepeatedFailure,
    &NoProgress,
    &RepeatedError,
    &EmptySearch,
    &RepeatedEdit,
    &FailingRun,
    &StaleRun,
    &IdleSpend,
    &WaitingDetector,
    &EditsWithoutProgress,
    &TestEditsWithoutGreen,
    &PlanRewrite,
    &StalledTask,
    &Chanting,
    &CompactionSpiral,
    &PersistenceLoop,
    &SpawnTreeDetector,
    &KnownFailureDetector,
    &OverBudget,
];

/// Returns the detector of this name.
#[must_use]
pub fn detector(name: &str) -> Option<&'static dyn AnyDetector> {
    DETECTORS.iter().copied().find(|d| d.name() == name)
}
