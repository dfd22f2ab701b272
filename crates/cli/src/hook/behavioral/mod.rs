//! The hook of the behavioral profile: reads one action, before or after it is taken, and prints its escalation. Tasks
//! are stored in files.

mod input;
mod output;
mod task_file;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deloop_detect::{CompletedTask, completed_task};
use deloop_engine::{Guard, Options};
use deloop_policy::{Profile, Registry, TASK_UPDATE};
use deloop_store::Limits;
use deloop_types::{Body, Call, Decision, Millis, Step, ToolResult, Turn};
use serde_json::Value;

pub(crate) use input::Input;
pub(crate) use output::{Output, ToolEvent};

use crate::args::{BehavioralArgs, HookPhase};
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::learnings::known_patterns;
use crate::notes::{self, NotesFolder};
use crate::safe_file::{self, Make, Target};
use crate::state::{now, prepare_folder};
pub(crate) use task_file::count_forced;
use task_file::{LockedFile, SavedTask};

pub(crate) fn run(args: &BehavioralArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    if let Some(phase) = args.print_shim {
        out.write_all(shim(phase).as_bytes())?;
        return Ok(exit::OK);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().take(deloop_types::limits::EVENT as u64).read_to_end(&mut text)?;
    if args.phase == HookPhase::SessionEnd {
        let session = input::read_session(&text)?;
        task_file::end_session(&Hook::load(args)?.state, &session)?;
        return Ok(exit::OK);
    }
    let input = input::read(&text)?;
    let hook = Hook::load(args)?;
    let output = match args.phase {
        HookPhase::PostExecute => hook.after(&input)?,
        _ => hook.before(&input)?,
    };
    print_failure(hook.end_tasks(&input));
    serde_json::to_writer(&mut *out, &output)?;
    out.write_all(b"\n")?;
    Ok(exit::OK)
}

/// Returns a hook file for agents that run JavaScript.
fn shim(phase: HookPhase) -> String {
    let phase = match phase {
        HookPhase::PreExecute => "pre-execute",
        HookPhase::PostExecute => "post-execute",
        HookPhase::SessionEnd => "session-end",
    };
    format!(
        "// hooks/{phase}.cjs: passes the input to deloop and its answer back.\n\
         const {{ spawnSync }} = require('node:child_process');\n\
         process.exit(spawnSync('deloop', ['hook', 'behavioral', '{phase}'], {{ stdio: 'inherit' }}).status ?? 0);\n"
    )
}

/// What the hook works with.
struct Hook {
    profile: Profile,
    options: Options,
    state: PathBuf,
    memory: Option<NotesFolder>,
    tool_events: Option<PathBuf>,
    /// How long nothing happens until a task is over.
    idle: Duration,
    off: bool,
}

/// The guard of one task, and its file.
struct TaskGuard {
    guard: Guard,
    file: LockedFile,
    saved: SavedTask,
}

impl Hook {
    fn load(args: &BehavioralArgs) -> Result<Self, Failure> {
        let Config { profile, options, memory, off, .. } = config::load_over(&args.rules, "behavioral");
        let state =
            args.state.clone().or_else(config::state_folder).ok_or_else(|| {
                Failure::new("no home folder to keep the task in; name a folder with --state")
            })?;
        if args.state.is_none() {
            prepare_folder(&state).map_err(|e| Failure::new(format!("{}: {e}", state.display())))?;
        }
        Ok(Self {
            profile: reporting_every_run(profile),
            options,
            state,
            memory: args.memory.as_deref().map(NotesFolder::chosen).or(memory),
            tool_events: args.tool_events.clone(),
            idle: Duration::from_secs(args.task_idle.saturating_mul(60)),
            off,
        })
    }

    /// Checks an action that is about to be taken.
    fn before(&self, input: &Input) -> Result<Output, Failure> {
        let mut task = self.open(input)?;
        let output = self.act(&mut task, input)?;
        let number = task.saved.actions;
        task.saved.open(number, &input.tool_name, &input.args, output.answered());
        task.save(session_of(input))?;
        Ok(output)
    }

    /// Adds the result of an action. An action that no pre-execute hook checked is checked now.
    fn after(&self, input: &Input) -> Result<Output, Failure> {
        let mut task = self.open(input)?;
        let known = task.saved.close(&input.tool_name, &input.args);
        let (number, told) = match known {
            Some((number, answered)) => (number, Err(answered)),
            None => {
                let output = self.act(&mut task, input)?;
                (task.saved.actions, Ok(output))
            }
        };
        let result = result_of(input).for_call(call_id(number));
        let step = step_of(input, Body::Result(result));
        let decision = task.guard.observe(&step);
        task.save(session_of(input))?;
        let off = Decision::go_on(step.session.clone(), 0);
        let decision = if self.off { off } else { decision };
        Ok(match told {
            Ok(mut output) => {
                output.findings.extend(Output::of(decision, false).findings);
                output
            }
            Err(answered) => Output::again(answered, &decision),
        })
    }

    fn open(&self, input: &Input) -> Result<TaskGuard, Failure> {
        let mut file = LockedFile::of_task(&self.state, input.session_id.as_deref(), &input.task_id)?;
        let mut saved = file.read::<SavedTask>().at(time_of(input), self.idle);
        let guard = Guard::with(self.profile.clone(), self.options, Limits::default());
        if let Some(checkpoint) = saved.checkpoint.take() {
            // State written by an older release is discarded: a guard must not stop the work it guards.
            let _ = guard.restore(&session_of(input).into(), checkpoint);
        }
        Ok(TaskGuard { guard, file, saved })
    }

    /// Removes the files of tasks that are over: the one that this action completes, and those in which nothing happened for
    /// long.
    fn end_tasks(&self, input: &Input) -> Result<(), Failure> {
        task_file::end_idle(&self.state, now(), self.idle)?;
        let call = Call::new(input.tool_name.clone(), input.args.clone());
        let task = match completed_task(&call, &self.profile.tools) {
            Some(CompletedTask::Named(task)) => task,
            Some(CompletedTask::Current) => input.task_id.clone(),
            None => return Ok(()),
        };
        task_file::end_task(&self.state, input.session_id.as_deref(), &task)
    }

    /// Decides about an action, and reports what was decided.
    fn act(&self, task: &mut TaskGuard, input: &Input) -> Result<Output, Failure> {
        let first = task.saved.actions == 0;
        task.saved.actions += 1;
        let call =
            Call::new(input.tool_name.clone(), input.args.clone()).with_id(call_id(task.saved.actions));
        let step = step_of(input, Body::Turn(Turn::new("", vec![call])));
        let decision = task.guard.observe(&step);
        if self.off {
            return Ok(Output::of(Decision::go_on(step.session, 0), first));
        }
        let mut output = Output::of(decision.clone(), first);
        if let Some(update) = &mut output.task_update {
            update.task_id = Some(input.task_id.clone());
        }
        let shown = deloop_detect::clean(&input.task_id, 80);
        if output.level > 0 {
            print_failure(self.emit(&ToolEvent::line(&output, &input.task_id, &input.tool_name)?));
            crate::print::tell(format_args!(
                "[loop-detection] {}: {} similar actions. Task {shown}",
                output.action.to_uppercase(),
                output.run_length,
            ));
        }
        let Some(folder) = &self.memory else { return Ok(output) };
        if first {
            output.known_patterns = known_patterns(folder, &input.tool_name);
            if !output.known_patterns.is_empty() {
                crate::print::tell(format_args!(
                    "[loop-detection] learnings.md records loops of {}: {}. Task {shown}",
                    deloop_detect::clean(&input.tool_name, 40),
                    output.known_patterns.len(),
                ));
            }
        }
        if decision.extra.contains_key(TASK_UPDATE) {
            task.saved.forced += 1;
            let counted = input.session_id.as_deref().map(|session| count_forced(&self.state, session));
            let forced = counted.transpose()?.unwrap_or(task.saved.forced);
            print_failure(notes::write(folder, &input.task_id, &decision, forced));
        }
        Ok(output)
    }

    /// Appends a line to tool-events.jsonl.
    fn emit(&self, line: &[u8]) -> Result<(), Failure> {
        match (&self.tool_events, &self.memory) {
            (Some(path), _) => append_to(path, line),
            (None, Some(folder)) => folder.append("tool-events.jsonl", line),
            (None, None) => append_to(&self.state.join("tool-events.jsonl"), line),
        }
    }
}

impl TaskGuard {
    fn save(&mut self, session: &str) -> Result<(), Failure> {
        let checkpoint = self.guard.checkpoint(&session.into());
        self.saved.checkpoint = checkpoint.map_err(|e| Failure::new(e.to_string()))?;
        self.file.write(&self.saved)
    }
}

fn session_of(input: &Input) -> &str {
    input.session_id.as_deref().unwrap_or(&input.task_id)
}

fn call_id(number: u64) -> String {
    format!("action {number}")
}

fn step_of(input: &Input, body: Body) -> Step {
    let mut step = Step::new(session_of(input), body);
    step.task = Some(input.task_id.clone());
    step.ts = Some(time_of(input));
    step
}

fn time_of(input: &Input) -> Millis {
    input.timestamp.map_or_else(now, Millis)
}

fn result_of(input: &Input) -> ToolResult {
    let failed = (!input.error.is_null()).then_some(false);
    let output = if input.output.is_null() { &input.error } else { &input.output };
    let result = ToolResult::new(output.clone());
    match input.success.or(input.ok).or(failed) {
        Some(ok) => result.with_ok(ok),
        None => result,
    }
}

/// Returns the profile with the run reported from its first action: the hook's output includes the length at every
/// action. The rungs of the ladder stay the same.
fn reporting_every_run(mut profile: Profile) -> Profile {
    let registry = Registry::default();
    for watch in profile.watches.iter_mut().filter(|watch| watch.detector.name() == output::COUNTER) {
        let mut params: Value = watch.params.clone();
        params["at"] = 1.into();
        let tuned = registry.get(output::COUNTER).and_then(|detector| detector.tune(params).ok());
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

fn append_to(path: &Path, line: &[u8]) -> Result<(), Failure> {
    let told = |e: std::io::Error| Failure::new(format!("{}: {e}", path.display()));
    if safe_file::is_stream(path) {
        return safe_file::append_named(path).and_then(|mut file| file.write_all(line)).map_err(told);
    }
    let target = Target::chosen(path, Make::Folders);
    target.and_then(|target| target.append()).and_then(|mut file| file.write_all(line)).map_err(told)
}
