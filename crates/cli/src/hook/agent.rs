//! The hook of an agent. Whatever fails in it, the agent continues: no output, exit code 0, a line in the log.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::LazyLock;

use deloop_engine::{Engine, Options};
use deloop_formats::hooks::{HookAgent, HookEvent, HookKind, Reply, hook_agent};
use deloop_live::{EmbeddingSource, EventContext, Live, OpenTranscript, SqliteJournal};
use deloop_policy::{Fail, Price};
use deloop_types::{Action, Decision, Event, Mode, Usage};

use super::{behavioral, transcript_wait};
use crate::args::{AgentHook, RuleArgs};
use crate::config::{self, Config, SwarmSettings};
use crate::embedding::{self, EmbeddingRequests, HookEmbeddings};
use crate::exit::{self, Failure};
use crate::notes;
use crate::project;
use crate::safe_file::{self, Links};
use crate::server_link::ServerLink;
use crate::state::{State, now};

/// Maximum size of an event, in bytes.
const LONGEST: u64 = deloop_types::limits::EVENT as u64;
/// Set by `deloop run` for the agent it starts: the run is unattended and deloop may end it.
pub(crate) const RUN: &str = "DELOOP_RUN";
/// Names the session that started this one. It is told when this one loops.
const CONTROLLER: &str = "DELOOP_CONTROLLER";
/// Set together with it: the mode of that run.
pub(crate) const RUN_MODE: &str = "DELOOP_RUN_MODE";
/// Set together with it when the run is a retry: the id of the first attempt. The message itself is in the journal.
pub(crate) const RUN_HANDOFF: &str = "DELOOP_RUN_HANDOFF";

pub(crate) fn run(hook: &AgentHook, out: &mut dyn Write) -> Result<u8, Failure> {
    if config::is_off() {
        return Ok(exit::OK);
    }
    let Some(agent) = hook_agent(&hook.agent) else { return Ok(exit::OK) };
    std::panic::set_hook(Box::new(|_| {}));
    let reply = catch_unwind(AssertUnwindSafe(|| answer(agent, hook)))
        .unwrap_or_else(|panic| Err(Failure::new(format!("a bug in deloop: {}", words(&*panic)))));
    let HookAnswer { reply, requests } = reply.unwrap_or_else(|failure| {
        let mut answer = HookAnswer::default();
        match (State::here(), failure) {
            (Ok(state), Failure::Message(why)) => state.log(&hook.agent, &why),
            // There is no log: whoever tries the hook by hand sees why it does nothing.
            (Err(_), Failure::Message(why)) => {
                answer.reply.stderr = format!("deloop: {}\n", crate::print::log_line(&why, 300));
            }
            (_, Failure::ClosedPipe) => {}
        }
        answer
    });
    // An agent that doesn't read the reply has already continued.
    let _ = out.write_all(reply.stdout.as_bytes()).and_then(|()| out.flush());
    let _ = crate::print::stderr().write_all(reply.stderr.as_bytes());
    embedding::start(&requests, &hook.args.rules);
    Ok(reply.exit_code)
}

/// Reads the configuration for agents' hooks.
pub(crate) fn load(rules: &RuleArgs) -> Config {
    let mut config = config::load_and_remember(rules);
    if run_id().is_some() {
        config.options = Options::new(run_mode(), false);
    }
    config.options = config.options.with_limits_held();
    config
}

/// The reply to an event, and what to compute after it.
#[derive(Default)]
struct HookAnswer {
    reply: Reply,
    requests: EmbeddingRequests,
}

fn answer(agent: &'static dyn HookAgent, hook: &AgentHook) -> Result<HookAnswer, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LONGEST).read_to_end(&mut bytes)?;
    let event = agent.decode(&bytes).map_err(|e| Failure::new(e.0))?;
    let mut config = load(&hook.args.rules);
    let link = ServerLink::of_hook(&mut config, hook.args.server.as_deref());
    let notice = config.notice();
    let price = price_with(config.prices().unwrap_or_default());
    let (mut options, fail) = (config.options, config.fail);
    let run = run_id();
    options.attended |= event.attended.unwrap_or(false) && is_interactive() && run.is_none();
    transcript_wait::for_words(agent, &event, &config.profile);
    let state = State::here()?;
    let engine = Engine::new(config.profile.clone(), options);
    let link = link.map(|link| link.with_options(options));
    let handled = state.open().and_then(|journal| {
        let embeddings = HookEmbeddings::open(&config, &journal);
        let is_main = event.subagent.is_none() && event.kind != HookKind::Other;
        let handoff = run.as_deref().filter(|_| is_main);
        let handoff = handoff.and_then(|run| handoff_for(&journal, run, &event.session));
        let mut context = live_context(options, run.as_deref(), &config.swarm, notice.as_deref(), &price);
        context.embeddings = embeddings.as_ref().map(|source| source as &dyn EmbeddingSource);
        context.handoff = handoff.as_ref().map(|handoff| handoff.message.as_str());
        context.loop_calls =
            handoff.as_ref().map(|handoff| handoff.loop_calls.as_slice()).unwrap_or_default();
        let folder = event.cwd.as_deref().map(Path::new);
        let project = folder.and_then(project::id_of).or_else(project::id_here);
        context.project_id = project.as_deref();
        if let Some(link) = &link {
            link.recall(&journal);
            context.remote = Some(link);
        }
        let live = Live { engine: &engine, store: journal.store(), journal: &journal, context };
        let handled = live.hook_event(agent, event.clone());
        for note in journal.store().take_notes() {
            state.log(&hook.agent, &note);
        }
        if let Some(link) = &link {
            link.record(&hook.agent, &journal, &state);
        }
        let handled = handled.map_err(|e| Failure::new(e.to_string()))?;
        Ok((handled, embeddings.map(HookEmbeddings::into_requests).unwrap_or_default()))
    });
    match handled {
        Err(Failure::Message(why)) if fail == Fail::Closed => {
            state.log(&hook.agent, &why);
            Ok(HookAnswer { reply: closed(agent, &event, &why), ..HookAnswer::default() })
        }
        Ok((handled, requests)) => {
            if let Some(notice) = notice.filter(|_| handled.is_news) {
                state.log(&hook.agent, &notice);
            }
            let written = [append(&config, &handled.events), note(&config, &state, &handled.task_ends)];
            for failure in written.into_iter().filter_map(Result::err) {
                if let Failure::Message(why) = failure {
                    state.log(&hook.agent, &why);
                }
            }
            Ok(HookAnswer { reply: handled.reply, requests })
        }
        Err(failure) => Err(failure),
    }
}

/// Appends events to the file that the configuration names.
fn append(config: &Config, events: &[Event]) -> Result<(), Failure> {
    let Some((folder, file)) = &config.events else { return Ok(()) };
    let mut lines = Vec::new();
    for event in events {
        serde_json::to_writer(&mut lines, event)?;
        lines.push(b'\n');
    }
    if lines.is_empty() { Ok(()) } else { folder.append(file, &lines) }
}

/// Notes the ends of tasks in the memory folder, if the configuration names one. The session stands for its task.
fn note(config: &Config, state: &State, ends: &[Decision]) -> Result<(), Failure> {
    let Some(folder) = &config.memory else { return Ok(()) };
    for decision in ends {
        let session = decision.session.as_str();
        let times = behavioral::count_forced(state.folder(), session)?;
        notes::write(folder, session, decision, times)?;
    }
    Ok(())
}

/// Returns the context of a live session.
pub(crate) fn live_context<'a>(
    options: Options,
    run: Option<&'a str>,
    swarm: &'a SwarmSettings,
    notice: Option<&'a str>,
    price: &'a dyn Fn(&mut Usage),
) -> EventContext<'a> {
    static CONTROLLER_NAME: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(CONTROLLER).ok());
    let open: OpenTranscript = |path| {
        let file = safe_file::open(path, Links::Follow)?;
        Ok((file.metadata()?.len(), Box::new(file)))
    };
    EventContext {
        options,
        now: now(),
        run,
        handoff: None,
        loop_calls: &[],
        swarm: swarm.name.as_deref(),
        subagent_swarms: swarm.subagents,
        controller: CONTROLLER_NAME.as_deref().filter(|name| !name.is_empty()),
        project: None,
        project_id: None,
        project_of: project::of_folder,
        embeddings: None,
        remote: None,
        notice,
        price,
        open,
    }
}

/// Returns the hand-off for a session of a retried run. Without it the agent goes on all the same.
pub(crate) fn handoff_for(journal: &SqliteJournal, run: &str, session: &str) -> Option<GivenHandoff> {
    let first = std::env::var(RUN_HANDOFF).ok()?;
    let message = journal.handoff_for(run, &first, session).ok().flatten()?;
    // Without them, nobody can tell whether the session leaves the loop.
    let loop_calls = journal.loop_calls_before(run).unwrap_or_default();
    Some(GivenHandoff { message, loop_calls })
}

/// What a new attempt is told, and the calls that the one before it repeated.
pub(crate) struct GivenHandoff {
    pub(crate) message: String,
    pub(crate) loop_calls: Vec<String>,
}

/// Returns what fills in the cost of a request. The price table is opened only when needed, because most events have no
/// usage.
pub(crate) fn price_with(own: BTreeMap<String, Price>) -> impl Fn(&mut Usage) {
    let prices = LazyLock::new(move || crate::prices::in_use(own));
    move |usage| prices.complete(usage)
}

/// Returns the reply with `fail = "closed"`: when deloop fails, the agent is stopped.
fn closed(agent: &dyn HookAgent, event: &HookEvent, why: &str) -> Reply {
    let message =
        format!("[deloop] deloop failed ({why}) and is configured to stop the agent when that happens.");
    let mut decision = Decision::go_on(event.session.as_str().into(), 0);
    decision.action = Action::Stop;
    decision.message = Some(message);
    decision.status = Some("deloop failed".to_owned());
    agent.encode(event, &decision).reply
}

/// Returns the `deloop run` that started the agent.
pub(crate) fn run_id() -> Option<String> {
    std::env::var(RUN).ok().filter(|run| !run.is_empty())
}

/// Returns the mode of `deloop run --mode`; enforce by default.
fn run_mode() -> Mode {
    match std::env::var(RUN_MODE).as_deref() {
        Ok("shadow") => Mode::Shadow,
        Ok("nudge") => Mode::Nudge,
        _ => Mode::Enforce,
    }
}

/// Claude Code reports in the environment how it was started. Unless that was a terminal, there is no one to ask.
fn is_interactive() -> bool {
    match std::env::var("CLAUDE_CODE_ENTRYPOINT") {
        Ok(entry) => !entry.starts_with("sdk"),
        Err(_) => true,
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}
