//! The hand-off file: what a person needs to continue after a stopped run.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use deloop_formats::hooks::installable;
use deloop_live::{DecisionFilter, RecordedDecision, SessionSource, SqliteJournal};
use deloop_types::{Body, Millis};

use super::attempt::is_stall;
use super::child::Push;
use crate::exit::Failure;
use crate::live::explain::{ended, read};
use crate::live::words::{line, time};
use crate::redaction::Redaction;
use crate::safe_file::{Expected, Make, Permission, Target};
use crate::sessions::load;
use crate::state::State;
use deloop_live::RecentCall;

/// A longer transcript isn't searched for the agent's last message.
const LONGEST: u64 = 64 << 20;

/// A finished run.
pub(super) struct HandoffRun<'a> {
    pub(super) id: &'a str,
    pub(super) command: &'a [OsString],
    pub(super) started: Millis,
    pub(super) ended: Millis,
    pub(super) end: End,
}

/// How the agent ended.
pub(super) struct End {
    /// The agent's own exit code.
    pub(super) status: u8,
    /// The signal that ended it, if it didn't exit by itself.
    pub(super) pushed: Option<Push>,
}

/// Writes the file and returns its path.
pub(super) fn write(
    run: &HandoffRun<'_>,
    stop: &RecordedDecision,
    store: &SqliteJournal,
    state: &State,
    file: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let told = |e: deloop_store::StoreError| Failure::new(e.to_string());
    let sources = store.sources_of_run(run.id).map_err(told)?;
    let filter = DecisionFilter { run: Some(run.id), ..DecisionFilter::default() };
    let mut decisions = store.decisions(&filter, 20).map_err(told)?;
    decisions.reverse();
    let text = text(run, stop, &sources, &decisions);
    match file {
        Some(path) => {
            Target::chosen(path, Make::Folders)
                .and_then(|target| target.replace(text.as_bytes(), Permission::Private, Expected::Any))
                .map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
            Ok(path.to_owned())
        }
        None => state.write(&format!("handoff-{}.md", run.id), text.as_bytes()),
    }
}

fn text(
    run: &HandoffRun<'_>,
    stop: &RecordedDecision,
    sources: &[SessionSource],
    decisions: &[RecordedDecision],
) -> String {
    let redaction = Redaction::new(false);
    let mut out = String::new();
    // Writing to a string can't fail.
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = out.write_fmt(text);
    };
    let command: Vec<String> = run.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let how = match run.end.pushed {
        None => format!("the agent exited after the stop, with code {}", run.end.status),
        Some(Push::Interrupt) => "deloop interrupted the agent".to_owned(),
        Some(Push::Terminate) => {
            "deloop terminated the agent because it didn't exit when interrupted".to_owned()
        }
        Some(Push::Kill) => "deloop killed the agent because it didn't exit when terminated".to_owned(),
    };
    let stalled = is_stall(stop);
    let did = match (stalled, stop.action.as_str()) {
        (true, _) => "ended this run",
        (false, "stop") => "stopped this run",
        _ => "ended this attempt and starts another",
    };
    put(format_args!("# deloop {did}\n\n"));
    put(format_args!("- command: `{}`\n", code(&redaction.line(&command.join(" "), 300))));
    put(format_args!("- from {} to {}; {how}\n", time(run.started), time(run.ended)));
    put(format_args!("- the task is not finished\n"));

    let summary = redaction.line(stop.summary.as_deref().unwrap_or("it repeats itself"), 300);
    let status = stop.status.as_deref().map(|s| format!(" ({s})")).unwrap_or_default();
    put(format_args!(
        "\n## Where it {}{status}\n\n{}. Run `deloop explain {}` for details.\n",
        if stalled { "stalled" } else { "looped" },
        md(&upper(&summary)),
        stop.id
    ));

    let recent_calls: Vec<RecentCall> = read(stop.recent_calls.as_deref());
    if !recent_calls.is_empty() {
        put(format_args!("\n## Last calls\n\n"));
        for recent in &recent_calls {
            let came = if recent.output.is_some() { ended(recent.came) } else { "no result" };
            put(format_args!("- `{}`: {came}\n", code(&redaction.line(&recent.call, 120))));
        }
    }
    put(format_args!("\n## What deloop did\n\n"));
    for row in decisions {
        put(format_args!("- {}\n", md(&line(row, &redaction))));
    }
    let source = sources.iter().find(|s| s.session == stop.session);
    if let Some(said) =
        source.and_then(|s| s.transcript.as_deref()).and_then(|t| last_words(t, &stop.session))
    {
        put(format_args!("\n## Last message of the agent\n\n"));
        for line in redaction.text(&said, 4000).lines() {
            put(format_args!("> {line}\n"));
        }
    }
    out + &next_steps(stop, source)
}

/// Returns what a person can do now.
fn next_steps(stop: &RecordedDecision, source: Option<&SessionSource>) -> String {
    let session = deloop_detect::clean(&stop.session, 100);
    let first = match installable(&stop.agent).filter(|agent| !agent.wiring.resume.is_empty()) {
        Some(agent) => {
            let resume = agent.wiring.resume.replace("{session}", &session);
            format!("resume the session with `{resume}`, and tell the agent what to do differently")
        }
        None => format!("the session was `{session}` in {}", stop.agent),
    };
    let transcript = source.and_then(|source| source.transcript.as_deref());
    let whole = transcript.map(|transcript| {
        format!("see the whole session: `deloop show {}`", code(&deloop_detect::clean(transcript, 400)))
    });
    let otherwise = match is_stall(stop) {
        true => "if it was still working, start again with a longer limit, such as `--stall 6h`".to_owned(),
        false => format!("if this wasn't a loop, run `deloop wrong {} --was legit` and start again", stop.id),
    };
    let steps = [Some(first), whole, Some(otherwise)].into_iter().flatten();
    steps.fold("\n## Next steps\n\n".to_owned(), |text, step| text + "- " + &step + "\n")
}

/// Returns the last text of the session in its transcript.
fn last_words(path: &str, session: &str) -> Option<String> {
    let path = Path::new(path);
    if std::fs::metadata(path).ok()?.len() > LONGEST {
        return None;
    }
    let steps = load(path, session).ok()?;
    steps.iter().rev().find_map(|step| match &step.body {
        Body::Turn(turn) if step.agent.is_none() => turn.said().map(str::to_owned),
        _ => None,
    })
}

/// Returns text that begins with a capital letter.
fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Returns text that can't end its backticks.
fn code(text: &str) -> String {
    text.replace('`', "'")
}

/// Returns text without markup.
fn md(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_<>[]#|".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
