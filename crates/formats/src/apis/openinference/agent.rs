//! What agents' spans say about the agent. smolagents' are special: its CodeAgent writes Python instead of calls, and
//! each of its steps has a span.

use serde_json::Value;

use super::code;
use super::span::{Span, Status};
use super::tree::Tree;

/// The tool that runs a CodeAgent's code.
pub(super) const INTERPRETER: &str = "python_interpreter";

/// The name of an agent that works for another or beside the first; the main agent has none.
pub(super) fn name(tree: &Tree<'_>, index: usize) -> Option<String> {
    let own = own_name(tree, index);
    match tree.owner(index) {
        Some(_) => Some(own),
        None => (Some(&own) != tree.main().map(|main| own_name(tree, main)).as_ref()).then_some(own),
    }
}

fn own_name(tree: &Tree<'_>, index: usize) -> String {
    let span = tree.span(index);
    let given = span.first(&["agent.name", "gen_ai.agent.name", "traceloop.entity.name"]);
    let told = || {
        let task = task(span)?;
        let (_, rest) = task.split_once("You're a helpful agent named '")?;
        Some(rest.split_once('\'')?.0.to_owned())
    };
    let managed = || {
        let boss = tree.span(tree.owner(index)?);
        let only = boss.text("smolagents.managed_agents.1.name").is_none();
        boss.text("smolagents.managed_agents.0.name").filter(|_| only).map(str::to_owned)
    };
    let plain = || span.name.strip_suffix(".run").unwrap_or(&span.name).to_owned();
    given.filter(|name| !name.is_empty()).or_else(told).or_else(managed).unwrap_or_else(plain)
}

/// What an agent was asked for. smolagents writes its arguments as JSON.
pub(super) fn task(span: &Span) -> Option<String> {
    let input = span.first(&["input.value", "traceloop.entity.input"])?;
    let task = serde_json::from_str::<Value>(&input)
        .ok()
        .and_then(|value| Some(value.get("task")?.as_str()?.to_owned()));
    Some(task.unwrap_or(input)).filter(|task| !task.trim().is_empty())
}

/// Returns whether a span is a step of smolagents.
pub(super) fn is_step(span: &Span) -> bool {
    span.name.strip_prefix("Step ").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether an agent writes code. Its class is in the name of its span, unless it has a name of its own.
pub(super) fn runs_code(span: &Span) -> bool {
    !span.name.starts_with("ToolCallingAgent")
}

/// The thought and the code in what a CodeAgent said, if its step ran any.
pub(super) fn code(text: &str, step: &Span) -> Option<(String, String)> {
    if step.status == Status::Error && !step.error.contains("Code execution failed") {
        return None;
    }
    // What has no code block runs if all of it is Python.
    let ran = || step.text("output.value").is_some_and(|output| output.starts_with("Execution logs:"));
    match code::split(text) {
        Some((thought, code)) => Some((thought.to_owned(), code)),
        None => ran().then(|| (String::new(), text.trim().to_owned())),
    }
}
