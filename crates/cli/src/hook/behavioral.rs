//! The hook of the behavioral profile: reads one action and prints its escalation. Tasks are stored in files.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use deloop_engine::Guard;
use deloop_policy::{Profile, Registry, TASK_UPDATE, TaskUpdate};
use deloop_store::Limits;
use deloop_types::{Action, Body, Call, Decision, Millis, Step, Turn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::forced_ends;
use crate::args::BehavioralArgs;
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::notes::{self, NotesFolder};
use crate::safe_file::{self, Make, Target};
use crate::state::{now, prepare_folder};

/// The input: the action about to be taken.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Input of deloop hook behavioral", extend("required" = ["taskId", "toolName"]))]
pub(crate) struct Input {
    /// The current task.
    task_id: Option<String>,
    /// The tool to be called.
    tool_name: Option<String>,
    /// The tool's arguments.
    #[serde(default)]
    args: Value,
    /// The session, if one session works on several tasks.
    session_id: Option<String>,
    /// The time, in milliseconds since 1970.
    timestamp: Option<i64>,
}

/// The output: the current level of escalation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Output of deloop hook behavioral")]
pub(crate) struct Output {
    /// The level, 0 to 3.
    level: u32,
    /// The action: continue, replan, explore or force-done.
    action: String,
    /// The message for the agent.
    message: Option<String>,
    /// Whether the action is similar to the first one of its run.
    similar: bool,
    /// Number of similar actions in a row, including this one.
    run_length: u64,
    /// Similarity, 0 to 1; null for the first action of a run.
    score: Option<f64>,
    /// The arguments for TaskUpdate, at level 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_update: Option<TaskUpdate>,
}

/// One line of tool-events.jsonl.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Line of tool-events.jsonl")]
pub(crate) struct ToolEvent {
    /// Always `loop-detection`.
    event: &'static str,
    /// The time, in RFC 3339.
    timestamp: String,
    /// The task.
    task_id: String,
    /// The tool.
    tool_name: String,
    /// The level, 0 to 3.
    level: u32,
    /// The action: continue, replan, explore or force-done.
    action: String,
    /// Number of similar actions in a row.
    run_length: u64,
}

/// The state of a task between two calls.
#[derive(Default, Serialize, Deserialize)]
struct SavedTask {
    checkpoint: Option<deloop_engine::Checkpoint>,
}

pub(crate) fn run(args: &BehavioralArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut text = Vec::new();
    std::io::stdin().lock().take(deloop_types::limits::EVENT as u64).read_to_end(&mut text)?;
    let input: Input = deloop_formats::read_json(&text)
        .map_err(|e| Failure::new(format!("the input doesn't match `deloop schema hook-input`: {e}")))?;
    let required = |value: Option<String>, name: &str| {
        value.filter(|v| !v.is_empty()).ok_or_else(|| Failure::new(format!("the input needs a {name}")))
    };
    let task = required(input.task_id, "taskId")?;
    let tool = required(input.tool_name, "toolName")?;
    let Config { profile, options, memory, off, .. } = config::load_over(&args.rules, "behavioral");
    let guard = Guard::with(reporting_every_run(profile), options, Limits::default());

    let state = args
        .state
        .clone()
        .or_else(config::state_folder)
        .ok_or_else(|| Failure::new("no home folder to keep the task in; name a folder with --state"))?;
    let memory = args.memory.as_deref().map(NotesFolder::chosen).or(memory);
    if args.state.is_none() {
        prepare_folder(&state).map_err(|e| Failure::new(format!("{}: {e}", state.display())))?;
    }
    let mut file = open_task(&state, input.session_id.as_deref(), &task)?;
    let mut saved = read_saved(&mut file);
    let session = input.session_id.clone().unwrap_or_else(|| task.clone());
    if let Some(checkpoint) = saved.checkpoint.take() {
        // State written by an older release is discarded: a guard must not stop the work it guards.
        let _ = guard.restore(&session.as_str().into(), checkpoint);
    }
    let call = Call::new(tool.clone(), input.args);
    let mut step = Step::new(session.as_str(), Body::Turn(Turn::new("", vec![call])));
    step.task = Some(task.clone());
    step.ts = Some(input.timestamp.map_or_else(now, Millis));
    let decision = guard.observe(&step);

    saved.checkpoint = guard.checkpoint(&step.session).map_err(|e| Failure::new(e.to_string()))?;
    write_saved(&mut file, &saved)?;
    let mut output = output_of(if off { Decision::go_on(step.session.clone(), 0) } else { decision.clone() });
    if let Some(update) = &mut output.task_update {
        update.task_id = Some(task.clone());
    }
    if output.level > 0 {
        let event = event_of(&output, &task, &tool)?;
        let written = match (&args.tool_events, &memory) {
            (Some(path), _) => append_to(path, &event),
            (None, Some(folder)) => folder.append("tool-events.jsonl", &event),
            (None, None) => append_to(&state.join("tool-events.jsonl"), &event),
        };
        print_failure(written);
        crate::print::tell(format_args!(
            "[loop-detection] {}: {} similar actions. Task {}",
            output.action.to_uppercase(),
            output.run_length,
            deloop_detect::clean(&task, 80)
        ));
    }
    if let Some(folder) = memory.filter(|_| !off && decision.extra.contains_key(TASK_UPDATE)) {
        let forced = forced_ends::count(&state, session.as_str());
        print_failure(forced.and_then(|times| notes::write(&folder, &task, &decision, times)));
    }
    serde_json::to_writer(&mut *out, &output)?;
    out.write_all(b"\n")?;
    Ok(exit::OK)
}

/// Returns the profile with the run reported from its first action: the hook's output includes the length at every
/// action. The rungs of the ladder stay the same.
fn reporting_every_run(mut profile: Profile) -> Profile {
    let registry = Registry::default();
    for watch in profile.watches.iter_mut().filter(|watch| watch.detector.name() == "similar-call") {
        let mut params = watch.params.clone();
        params["at"] = 1.into();
        let tuned = registry.get("similar-call").and_then(|detector| detector.tune(params).ok());
        watch.detector = tuned.map_or_else(|| watch.detector.clone(), Into::into);
    }
    profile
}

/// Logs a failed write, which must not keep the answer from the agent.
fn print_failure(written: Result<(), Failure>) {
    if let Err(Failure::Message(why)) = written {
        crate::print::tell(format_args!("deloop: {why}"));
    }
}

fn output_of(decision: Decision) -> Output {
    let finding = decision.findings.first();
    let task_update = TaskUpdate::in_decision(&decision);
    Output {
        level: decision.level,
        action: match decision.action {
            Action::Continue => "continue".to_owned(),
            action => decision.rung.unwrap_or_else(|| action.to_string()),
        },
        message: decision.message,
        similar: finding.is_some_and(|f| f.count > 1),
        run_length: finding.map_or(1, |f| f.count),
        score: finding.filter(|f| f.count > 1).map(|f| f.score),
        task_update,
    }
}

/// Opens and locks the file of a task, so hooks of parallel calls wait for each other.
fn open_task(state: &Path, session: Option<&str>, task: &str) -> Result<File, Failure> {
    let name = deloop_detect::Fingerprint::of_call(session.unwrap_or_default(), &Value::from(task));
    let path = format!("behavioral/{name}.json");
    let open = || -> std::io::Result<File> {
        safe_file::private_folder(state)?;
        let file = Target::below(state, Path::new(&path))?.edit()?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|e| Failure::new(format!("{}: {e}", state.join(&path).display())))
}

fn read_saved(file: &mut File) -> SavedTask {
    let mut text = Vec::new();
    match file.take(64 << 20).read_to_end(&mut text) {
        Ok(_) => serde_json::from_slice(&text).unwrap_or_default(),
        Err(_) => SavedTask::default(),
    }
}

fn write_saved(file: &mut File, saved: &SavedTask) -> Result<(), Failure> {
    let text = serde_json::to_vec(saved)?;
    file.rewind()?;
    file.write_all(&text)?;
    file.set_len(text.len() as u64)?;
    Ok(())
}

fn event_of(output: &Output, task: &str, tool: &str) -> Result<Vec<u8>, Failure> {
    let event = ToolEvent {
        event: "loop-detection",
        timestamp: jiff::Timestamp::now().to_string(),
        task_id: task.to_owned(),
        tool_name: tool.to_owned(),
        level: output.level,
        action: output.action.clone(),
        run_length: output.run_length,
    };
    let mut line = serde_json::to_vec(&event)?;
    line.push(b'\n');
    Ok(line)
}

fn append_to(path: &Path, line: &[u8]) -> Result<(), Failure> {
    let told = |e: std::io::Error| Failure::new(format!("{}: {e}", path.display()));
    if safe_file::is_stream(path) {
        return safe_file::append_named(path).and_then(|mut file| file.write_all(line)).map_err(told);
    }
    let target = Target::chosen(path, Make::Folders);
    target.and_then(|target| target.append()).and_then(|mut file| file.write_all(line)).map_err(told)
}
