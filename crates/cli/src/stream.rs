//! `deloop stream`: Steps in, Decisions out, in step.

use std::io::{Read, Write};
use std::path::Path;

use deloop_engine::Guard;
use deloop_policy::TASK_UPDATE;
use deloop_store::Limits;
use deloop_types::{Body, Decision, SessionId, Step};
use serde::Serialize;

use crate::args::StreamArgs;
use crate::config::{self, Config};
use crate::events_file::EventsFile;
use crate::exit::{self, Failure};
use crate::hook;
use crate::ledger::Ledger;
use crate::lines::{LONGEST, Line, Lines};
use crate::notes::Notes;
use crate::print;
use crate::safe_file::{self, Links};
use crate::state::State;

/// A larger checkpoint is not one that deloop wrote.
const LONGEST_CHECKPOINT: u64 = 1 << 30;
/// So many characters of an error are told.
const LONGEST_ERROR: usize = 400;

/// What a line that is not a Step gets for an answer.
#[derive(Serialize)]
struct Malformed<'a> {
    error: &'a str,
    line: u64,
}

pub(crate) fn run(args: &StreamArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let ledger = args.agent.as_deref().map(Ledger::open);
    let config = match (&ledger, &args.agent) {
        (Some(_), Some(agent)) => {
            let config = hook::load(&args.rules);
            if let (Some(notice), Ok(state)) = (config.notice(), State::here()) {
                state.log(agent, &notice);
            }
            config
        }
        _ => config::load(&args.rules)?,
    };
    let Config { profile, options, memory, off, .. } = config;
    let guard = Guard::with(profile, options, Limits::default());
    if let Some(path) = args.checkpoint.as_deref().filter(|p| p.exists()) {
        restore(&guard, path)?;
    }
    let input: Box<dyn Read> = match &args.file {
        None => Box::new(std::io::stdin().lock()),
        Some(path) if path.as_os_str() == "-" => Box::new(std::io::stdin().lock()),
        Some(path) => Box::new(
            safe_file::open_named(path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?,
        ),
    };
    let mut stream = Stream {
        guard,
        events: args.events.as_deref().map(EventsFile::append).transpose()?,
        notes: memory.map(Notes::new),
        ledger,
        off,
        malformed: 0,
    };
    stream.pump(input, out)?;
    if let Some(path) = &args.checkpoint {
        save(&stream.guard, path)?;
    }
    Ok(if stream.malformed > 0 { exit::COULD_NOT_RUN } else { exit::OK })
}

struct Stream {
    guard: Guard,
    events: Option<EventsFile>,
    notes: Option<Notes>,
    ledger: Option<Ledger>,
    off: bool,
    malformed: u64,
}

impl Stream {
    fn pump(&mut self, input: Box<dyn Read>, out: &mut dyn Write) -> Result<(), Failure> {
        let mut lines = Lines::new(input);
        let mut number = 0;
        while let Some(line) = lines.next()? {
            number += 1;
            let step = match line {
                Line::Text(text) if text.trim_ascii().is_empty() => continue,
                Line::Text(text) => deloop_formats::read_step(text),
                Line::TooLong => Err(format!("the line is longer than {} MiB", LONGEST >> 20)),
            };
            match step {
                Ok(step) => self.answer(&step, out)?,
                Err(error) => {
                    self.malformed += 1;
                    // It may quote what is wrong.
                    let error = print::log_line(&error, LONGEST_ERROR);
                    print::tell(format_args!("deloop: line {number}: {error}"));
                    serde_json::to_writer(&mut *out, &Malformed { error: &error, line: number })?;
                }
            }
            out.write_all(b"\n")?;
            if !lines.has_more() {
                out.flush()?;
                if let Some(events) = &mut self.events {
                    events.flush()?;
                }
            }
        }
        Ok(out.flush()?)
    }

    fn answer(&mut self, step: &Step, out: &mut dyn Write) -> Result<(), Failure> {
        let observed = self.guard.observe_all(step);
        if self.off {
            let silent = Decision::go_on(observed.decision.session, observed.decision.step);
            return Ok(serde_json::to_writer(out, &silent)?);
        }
        if let Some(events) = &mut self.events {
            events.write(&observed.events)?;
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.write(step, &observed.decision);
        }
        if let (Some(notes), Some(_)) = (&self.notes, observed.decision.extra.get(TASK_UPDATE)) {
            let task = step.task.as_deref().unwrap_or(step.session.as_str());
            // A note that cannot be written must not end the guard.
            if let Err(Failure::Told(why)) = notes.force_done(task, &observed.decision) {
                print::tell(format_args!("deloop: no note was written: {why}"));
            }
        }
        if step.body == Body::End
            && let Some(notes) = &mut self.notes
        {
            notes.forget(step.session.as_str());
        }
        Ok(serde_json::to_writer(out, &observed.decision)?)
    }
}

/// Every session of a guard, by id.
type Saved = std::collections::BTreeMap<String, deloop_engine::Checkpoint>;

fn restore(guard: &Guard, path: &Path) -> Result<(), Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let text = safe_file::read(path, LONGEST_CHECKPOINT, Links::Follow).map_err(|e| told(&e))?;
    let saved: Saved = serde_json::from_slice(&text).map_err(|e| told(&format!("not a checkpoint: {e}")))?;
    for (session, checkpoint) in saved {
        guard.restore(&session.into(), checkpoint).map_err(|e| told(&e))?;
    }
    Ok(())
}

fn save(guard: &Guard, path: &Path) -> Result<(), Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let mut saved = Saved::new();
    for session in guard.sessions() {
        let session: SessionId = session;
        if let Some(checkpoint) = guard.checkpoint(&session).map_err(|e| told(&e))? {
            saved.insert(session.to_string(), checkpoint);
        }
    }
    let text = serde_json::to_vec(&saved)?;
    safe_file::replace_named(path, &text).map_err(|e| told(&e))
}
