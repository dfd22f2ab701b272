//! `deloop stream`: Steps in, Decisions out, in step.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use deloop_engine::{Checkpoint, Engine, Guard, Observed, Options, SwarmCheckpoint};
use deloop_formats::{InputLine, LONGEST, Lines};
use deloop_live::{EmbeddingSource, Live, SqliteJournal};
use deloop_policy::{Profile, TASK_UPDATE, name_task};
use deloop_types::{Body, Decision, Event, Role, SessionId, Step, Usage};
use serde::{Deserialize, Serialize};

use crate::args::StreamArgs;
use crate::config::{self, Config, SwarmSettings};
use crate::embedding::StreamEmbeddings;
use crate::events_file::EventsFile;
use crate::exit::{self, Failure};
use crate::hook;
use crate::notes::Notes;
use crate::print;
use crate::project;
use crate::safe_file::{self, Links};
use crate::server_link::{ServerLink, ServerSettings};
use crate::state::State;
use crate::stream_sessions::StreamSessions;

/// A larger checkpoint wasn't written by deloop.
const LONGEST_CHECKPOINT: u64 = 1 << 30;
/// Maximum length of a reported error, in characters.
const LONGEST_ERROR: usize = 400;

/// Where a harness can put a message for its agent.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Deliver {
    /// As a user message
    User,
    /// Appended to the result of a tool call
    Tool,
    /// As a system message
    System,
    /// As a developer message
    Developer,
}

impl Deliver {
    fn role(self) -> Role {
        match self {
            Self::User => Role::User,
            Self::Tool => Role::Tool,
            Self::System => Role::System,
            Self::Developer => Role::Developer,
        }
    }
}

/// The answer to a line that isn't a Step.
#[derive(Serialize)]
struct Malformed<'a> {
    error: &'a str,
    line: u64,
}

pub(crate) fn run(args: &StreamArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (config, link) = match &args.agent {
        Some(agent) => {
            let mut config = hook::load(&args.rules);
            let link = ServerLink::of_hook(&mut config, args.server.as_deref());
            if let (Some(notice), Ok(state)) = (config.notice(), State::here()) {
                state.log(agent, &notice);
            }
            (config, link)
        }
        None => {
            let config = config::load(&args.rules)?;
            // A stream is asked for by name, so the configuration of hooks doesn't apply to it.
            let settings = match &args.server {
                Some(url) => ServerSettings::of(&config.server, Some(url))?,
                None => None,
            };
            let link = settings.map(|settings| ServerLink::new(&settings, config.options)).transpose()?;
            (config, link)
        }
    };
    // A mistake in the prices must not leave an agent without its guard.
    let own_prices = match &args.agent {
        Some(_) => config.prices().unwrap_or_default(),
        None => config.prices()?,
    };
    let embeddings = match (StreamEmbeddings::open(&config), &args.agent) {
        (Ok(embeddings), _) => embeddings,
        // Without embeddings, an agent is still guarded: turns are compared by words.
        (Err(failure), Some(agent)) => {
            log(agent, &failure);
            None
        }
        (Err(failure), None) => return Err(failure),
    };
    let Config { profile, options, memory, off, swarm, .. } = config;
    let options = match args.deliver.as_slice() {
        [] => options,
        roles => options.with_roles(roles.iter().map(|role| role.role()).collect()),
    };
    let options = if args.rollback { options.with_rollback() } else { options };
    let ends_tasks = profile.watches.iter().flat_map(|w| &w.ladder.rungs).any(|rung| rung.task_update);
    let price = Box::new(hook::price_with(own_prices));
    let (agent, sessions) = match (args.agent.as_deref(), link) {
        (Some(name), link) => {
            let agent = AgentStream::open(name, &profile, options, swarm, link);
            (agent, StreamSessions::open(None, profile, options)?)
        }
        (None, Some(link)) => (None, StreamSessions::served(link, profile, options)),
        (None, None) => (None, StreamSessions::open(args.store.as_deref(), profile, options)?),
    };
    if let (Some(path), Some(guard)) = (args.checkpoint.as_deref().filter(|p| p.exists()), sessions.local()) {
        restore(guard, path)?;
    }
    let input: Box<dyn Read> = match &args.file {
        None => Box::new(std::io::stdin().lock()),
        Some(path) if path.as_os_str() == "-" => Box::new(std::io::stdin().lock()),
        Some(path) => Box::new(
            safe_file::open_named(path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?,
        ),
    };
    let mut stream = Stream {
        sessions,
        events: args.events.as_deref().map(EventsFile::append).transpose()?,
        notes: memory.map(Notes::new),
        ends_tasks,
        agent,
        price,
        embeddings,
        off,
        malformed: 0,
    };
    stream.pump(input, out)?;
    if let (Some(path), Some(guard)) = (&args.checkpoint, stream.sessions.local()) {
        save(guard, path)?;
    }
    Ok(if stream.malformed > 0 { exit::COULD_NOT_RUN } else { exit::OK })
}

/// Fills in what a request cost.
type RequestPrice = Box<dyn Fn(&mut Usage)>;

struct Stream {
    sessions: StreamSessions,
    events: Option<EventsFile>,
    notes: Option<Notes>,
    /// Whether the profile ends tasks, and so reads the notes about earlier ones.
    ends_tasks: bool,
    /// The running sessions of the agent, with `--agent`.
    agent: Option<AgentStream>,
    price: RequestPrice,
    embeddings: Option<StreamEmbeddings>,
    off: bool,
    malformed: u64,
}

impl Stream {
    fn pump(&mut self, input: Box<dyn Read>, out: &mut dyn Write) -> Result<(), Failure> {
        let mut lines = Lines::new(input);
        let mut number = 0;
        while let Some(line) = lines.next_line()? {
            number += 1;
            let step = match line {
                InputLine::Text(text) if text.trim_ascii().is_empty() => continue,
                InputLine::Text(text) => deloop_formats::read_step(text),
                InputLine::TooLong => Err(format!("the line is longer than {} MiB", LONGEST >> 20)),
            };
            match step {
                Ok(step) => self.answer(step, out)?,
                Err(error) => {
                    self.malformed += 1;
                    // The error may quote the line.
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

    /// Decides about a step: in the agent's session if there is one and its database works, else where the stream keeps
    /// its sessions.
    fn decide(&mut self, step: &mut Step) -> (Decision, Vec<Event>) {
        if let Body::Usage(usage) = &mut step.body {
            (self.price)(usage);
        }
        if let Some(agent) = self.agent.as_ref().filter(|_| !self.off) {
            match agent.step(step.clone(), self.embeddings.as_ref().map(|source| source as _)) {
                Ok(decided) => return decided,
                Err(why) => {
                    agent.log(&why);
                    self.agent = None;
                }
            }
        }
        let Some(embeddings) = &mut self.embeddings else {
            let Observed { decision, events, .. } = self.sessions.observe(step);
            return (decision, events);
        };
        let late = embeddings.arrived(step).map(|step| self.sessions.observe(&step));
        let awaited = embeddings.begin(step);
        let Observed { mut decision, mut events, .. } = self.sessions.observe(step);
        embeddings.wait(step, awaited.map(|awaited| awaited.at(decision.step)));
        if let Some(late) = late {
            events.splice(..0, late.events);
            if late.decision.action > decision.action {
                decision = late.decision;
            }
        }
        (decision, events)
    }

    fn answer(&mut self, mut step: Step, out: &mut dyn Write) -> Result<(), Failure> {
        let (mut decision, mut found) = self.decide(&mut step);
        if let Some(task) = &step.task {
            name_task(task, &mut decision, &mut found);
        }
        if self.off {
            let silent = Decision::go_on(decision.session, decision.step);
            return Ok(serde_json::to_writer(out, &silent)?);
        }
        if let Some(events) = &mut self.events {
            events.write(&found)?;
        }
        if let (Some(notes), Some(_)) = (&self.notes, decision.extra.get(TASK_UPDATE)) {
            let task = step.task.as_deref().unwrap_or(step.session.as_str());
            // A failure to write a note must not end the guard.
            if let Err(Failure::Message(why)) = notes.force_done(task, &decision) {
                print::tell(format_args!("deloop: can't write the note: {why}"));
            }
        }
        if let Some(notes) = self.notes.as_ref().filter(|_| self.ends_tasks) {
            let known = notes.known_at_start(&step);
            if !known.is_empty() {
                decision.extra.insert("known_patterns".to_owned(), known.into());
            }
        }
        if step.body == Body::End
            && let Some(notes) = &mut self.notes
        {
            notes.forget(step.session.as_str());
        }
        Ok(serde_json::to_writer(out, &decision)?)
    }
}

/// The running sessions of an agent that sends Steps, in the database that hooks share, so that `deloop pause`,
/// `allow` and `wrong` apply to them.
struct AgentStream {
    name: String,
    engine: Engine,
    journal: SqliteJournal,
    options: Options,
    run: Option<String>,
    /// The folder that the agent works in, and what identifies its project.
    project: Option<String>,
    project_id: Option<String>,
    swarm: SwarmSettings,
    /// The server that decides, if there is one.
    link: Option<ServerLink>,
}

impl AgentStream {
    /// Opens the database. If that fails, the reason is logged and the agent is guarded in memory.
    fn open(
        name: &str,
        profile: &Profile,
        options: Options,
        swarm: SwarmSettings,
        link: Option<ServerLink>,
    ) -> Option<Self> {
        let journal = State::here().and_then(|state| state.open());
        let journal = journal.map_err(|failure| log(name, &failure)).ok()?;
        Some(Self {
            name: name.to_owned(),
            engine: Engine::new(profile.clone(), options),
            journal,
            options,
            run: hook::run_id(),
            project: std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned()),
            project_id: project::id_here(),
            swarm,
            link,
        })
    }

    fn step(
        &self,
        step: Step,
        embeddings: Option<&dyn EmbeddingSource>,
    ) -> Result<(Decision, Vec<Event>), Failure> {
        let run = self.run.as_deref();
        let handoff = run.filter(|_| step.agent.is_none());
        let handoff = handoff.and_then(|run| hook::handoff_for(&self.journal, run, step.session.as_str()));
        let mut context = hook::live_context(self.options, run, &self.swarm, None, &|_| {});
        context.handoff = handoff.as_ref().map(|handoff| handoff.message.as_str());
        context.loop_calls =
            handoff.as_ref().map(|handoff| handoff.loop_calls.as_slice()).unwrap_or_default();
        context.project = self.project.as_deref();
        context.project_id = self.project_id.as_deref();
        context.embeddings = embeddings;
        if let Some(link) = &self.link {
            link.recall(&self.journal);
            context.remote = Some(link);
        }
        let live =
            Live { engine: &self.engine, store: self.journal.store(), journal: &self.journal, context };
        let decided = live.step(&self.name, step);
        if let (Some(link), Ok(state)) = (&self.link, State::here()) {
            link.record(&self.name, &self.journal, &state);
        }
        decided.map_err(|e| Failure::new(e.to_string()))
    }

    fn log(&self, why: &Failure) {
        log(&self.name, why);
    }
}

fn log(agent: &str, failure: &Failure) {
    if let (Ok(state), Failure::Message(why)) = (State::here(), failure) {
        state.log(agent, why);
    }
}

/// Every session and swarm of a guard, by name.
#[derive(Default, Serialize, Deserialize)]
struct SavedGuard {
    sessions: BTreeMap<String, Checkpoint>,
    swarms: BTreeMap<String, SwarmCheckpoint>,
}

fn restore(guard: &Guard, path: &Path) -> Result<(), Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let text = safe_file::read(path, LONGEST_CHECKPOINT, Links::Follow).map_err(|e| told(&e))?;
    let saved: SavedGuard =
        serde_json::from_slice(&text).map_err(|e| told(&format!("not a checkpoint: {e}")))?;
    for (session, checkpoint) in saved.sessions {
        guard.restore(&session.into(), checkpoint).map_err(|e| told(&e))?;
    }
    for (swarm, checkpoint) in saved.swarms {
        guard.restore_swarm(&swarm, checkpoint).map_err(|e| told(&e))?;
    }
    Ok(())
}

fn save(guard: &Guard, path: &Path) -> Result<(), Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let mut saved = SavedGuard::default();
    for session in guard.sessions() {
        let session: SessionId = session;
        if let Some(checkpoint) = guard.checkpoint(&session).map_err(|e| told(&e))? {
            saved.sessions.insert(session.to_string(), checkpoint);
        }
    }
    for swarm in guard.swarms() {
        let checkpoint = guard.checkpoint_swarm(&swarm, |_| false).map_err(|e| told(&e))?;
        saved.swarms.insert(swarm, checkpoint);
    }
    let text = serde_json::to_vec(&saved)?;
    safe_file::replace_named(path, &text).map_err(|e| told(&e))
}
