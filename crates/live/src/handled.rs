use deloop_formats::hooks::Reply;
use deloop_types::{Decision, Event};

/// The result of an event.
#[derive(Debug, Default)]
pub struct Handled {
    /// The reply to the agent.
    pub reply: Reply,
    /// Whether the notice about the configuration is new in this session.
    pub is_news: bool,
    /// The events, for people and other programs.
    pub events: Vec<Event>,
    /// The decisions that ended a task.
    pub task_ends: Vec<Decision>,
}
