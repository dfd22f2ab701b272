//! The cases: what the model does, what the hooks do, and what must then be true.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::agents::Agent;
use super::hooks::Hooks;
use super::model::FakeModel;
use super::model::script::{Act, Script};
use super::persistence;
use super::person::Person;
use super::place::{self, Place};
use super::sandbox::{self, Isolation, Launch};
use super::seen::Seen;
use super::server::RunServer;
use super::setup::Agents;
use super::stand_in::Want;
use super::{documents, healthy, recovery, retry, server_visit, stall};

/// One column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// No hooks: the loop runs to its end.
    Baseline,
    /// The agent is told.
    Nudge,
    /// A call is refused and does not run.
    Block,
    /// The run ends before the loop does.
    Stop,
    /// A session in which nothing is wrong passes untouched.
    Healthy,
    /// A person paused deloop before the run: nothing is done.
    Paused,
    /// A person allowed the call before the run: it is ignored.
    Allowed,
    /// A person calls the first nudge wrong while the run goes on: nothing more is done about it.
    Wrong,
    /// The program of the hook is gone: the agent goes on.
    Missing,
    /// The hook dies of a signal: the agent goes on.
    Killed,
    /// The hook does not answer in time: the agent goes on.
    Hanging,
    /// The hook cannot write its state: the agent goes on.
    ReadOnly,
    /// `deloop run` starts the agent again after a stop, and the new session is told why.
    Retry,
    /// Another hook keeps the agent from ending its turn, and deloop isn't there: it goes on as long as that hook says.
    Persistent,
    /// The same with deloop: the run ends.
    Persistence,
    /// The model never answers: `deloop run` ends the run.
    SilentModel,
    /// A tool never returns: `deloop run` ends the run, with what the tool started.
    EndlessCall,
    /// `deloop run` starts an agent that ignored two nudges again, with another model.
    Recover,
    /// Repeated turns are taken out of what the model is sent.
    Rollback,
    /// A `deloop serve` decides: its ladder messages the model and ends the run.
    Server,
    /// An operator writes to the agent through a `deloop serve` while it works.
    Message,
    /// The `deloop serve` is killed while the agent works: this machine decides.
    ServerGone,
    /// The behavioral document's example.
    Behavioral,
    /// The signature document's example.
    Signature,
    /// The doom-loop document's example.
    DoomLoop,
    /// The turn-similarity document's example.
    TurnSimilarity,
    /// The turn-hash document's example.
    TurnHash,
}

/// What came of a case.
#[derive(Debug)]
pub(super) enum Verdict {
    Passed(String),
    Failed(String),
    /// The agent has no way to do it.
    Unsupported(&'static str),
    Skipped(String),
}

pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// Identical calls when nothing is expected to end them.
const LOOP: usize = 6;
/// Calls when deloop shall block or stop: more than any ladder needs, also when an agent loses an output under load.
const LONG_LOOP: usize = 30;
/// Identical calls with a broken hook; each may cost its timeout, twice.
const BROKEN_LOOP: usize = 2;

impl Case {
    /// Every case, in the order of the table.
    pub(super) const ALL: [Self; 27] = [
        Self::Baseline,
        Self::Nudge,
        Self::Block,
        Self::Stop,
        Self::Healthy,
        Self::Paused,
        Self::Allowed,
        Self::Wrong,
        Self::Missing,
        Self::Killed,
        Self::Hanging,
        Self::ReadOnly,
        Self::Retry,
        Self::Persistent,
        Self::Persistence,
        Self::SilentModel,
        Self::EndlessCall,
        Self::Recover,
        Self::Rollback,
        Self::Server,
        Self::Message,
        Self::ServerGone,
        Self::Behavioral,
        Self::Signature,
        Self::DoomLoop,
        Self::TurnSimilarity,
        Self::TurnHash,
    ];

    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Nudge => "nudge",
            Self::Block => "block",
            Self::Stop => "stop",
            Self::Healthy => "healthy",
            Self::Paused => "paused",
            Self::Allowed => "allowed",
            Self::Wrong => "wrong",
            Self::Missing => "missing",
            Self::Killed => "killed",
            Self::Hanging => "hanging",
            Self::ReadOnly => "read-only",
            Self::Retry => "retry",
            Self::Persistent => "persistent",
            Self::Persistence => "persistence",
            Self::SilentModel => "silent-model",
            Self::EndlessCall => "endless-call",
            Self::Recover => "recover",
            Self::Rollback => "rollback",
            Self::Server => "server",
            Self::Message => "message",
            Self::ServerGone => "server-gone",
            Self::Behavioral => "behavioral",
            Self::Signature => "signature",
            Self::DoomLoop => "doom-loop",
            Self::TurnSimilarity => "turn-similarity",
            Self::TurnHash => "turn-hash",
        }
    }

    /// The profile that is configured, if it is not the default: that of the document.
    pub(super) fn profile(self) -> Option<&'static str> {
        use Case::{Behavioral, DoomLoop, Signature, TurnHash, TurnSimilarity};
        matches!(self, Behavioral | Signature | DoomLoop | TurnSimilarity | TurnHash).then(|| self.name())
    }

    /// Whether it takes long because somebody waits for something that never comes.
    pub(super) fn waits(self) -> bool {
        matches!(self, Self::Hanging | Self::SilentModel | Self::EndlessCall)
    }

    /// Whether a `deloop serve` decides.
    pub(super) fn has_server(self) -> bool {
        matches!(self, Self::Server | Self::Message | Self::ServerGone)
    }

    fn want(self) -> Option<Want> {
        match self {
            Self::Baseline | Self::Persistent => None,
            Self::Nudge | Self::Message | Self::ServerGone => Some(Want::Nudge),
            Self::Stop | Self::Retry | Self::Recover | Self::Server | Self::Persistence => Some(Want::Stop),
            Self::Behavioral | Self::Signature | Self::DoomLoop | Self::TurnSimilarity | Self::TurnHash => {
                Some(Want::Stop)
            }
            Self::Healthy | Self::SilentModel | Self::EndlessCall => Some(Want::Quiet),
            // With a hook that works these would refuse calls, so that a fault that was not there shows.
            Self::Block | Self::Rollback | Self::Paused | Self::Allowed | Self::Wrong => Some(Want::Block),
            Self::Missing | Self::Killed | Self::Hanging | Self::ReadOnly => Some(Want::Block),
        }
    }

    pub(super) fn calls(self) -> usize {
        match self {
            Self::Rollback => 8,
            Self::Block | Self::Stop | Self::Paused | Self::Allowed | Self::Wrong | Self::Server => LONG_LOOP,
            Self::Hanging => BROKEN_LOOP,
            _ => LOOP,
        }
    }

    fn script(self, agent: &dyn Agent, place: &Place) -> Script {
        match self {
            Self::Healthy => return healthy::script(&place.work),
            Self::Persistent | Self::Persistence => return Script::Turns(Vec::new()),
            Self::Message | Self::ServerGone => return server_visit::script(self),
            Self::SilentModel | Self::EndlessCall => return stall::script(self),
            _ if self.profile().is_some() => return documents::script(self),
            _ => {}
        }
        let acts = agent.stuck_on().iter().map(|command| Act::Shell(command.to_string())).collect();
        if matches!(self, Self::Retry | Self::Recover) {
            return retry::script(acts);
        }
        Script::Loop { acts, max: self.calls() }
    }
}

/// Runs one case of one agent in a new folder under `runs`.
pub(super) fn run(case: Case, agent: &dyn Agent, agents: &Agents, hooks: &dyn Hooks, runs: &Path) -> Verdict {
    if let Some(why) = agent.cannot(case) {
        return Verdict::Unsupported(why);
    }
    let persists = matches!(case, Case::Persistent | Case::Persistence);
    if persists && agent.end_hook().is_none() {
        return Verdict::Unsupported("no hook can keep it from ending its turn");
    }
    if case == Case::Rollback && (!agent.folds_turns() || hooks.speaks_at().is_some()) {
        return Verdict::Unsupported("nothing here can change what the model was sent before");
    }
    let commands = matches!(case, Case::Paused | Case::Allowed | Case::Wrong | Case::Persistence)
        || matches!(case, Case::Retry | Case::Recover | Case::SilentModel | Case::EndlessCall);
    if hooks.speaks_at().is_some() && (commands || case.has_server() || case.profile().is_some()) {
        return Verdict::Unsupported("a stand-in has no commands and no profiles");
    }
    if case == Case::ReadOnly && sandbox::isolation() == Isolation::None {
        return Verdict::Skipped("needs a mount namespace".to_owned());
    }
    match attempt(case, agent, agents, hooks, runs) {
        Ok(said) => Verdict::Passed(said),
        Err(why) => Verdict::Failed(why),
    }
}

fn attempt(
    case: Case,
    agent: &dyn Agent,
    agents: &Agents,
    hooks: &dyn Hooks,
    runs: &Path,
) -> Result<String, String> {
    let broken = |e: std::io::Error| format!("the harness itself: {e}");
    let place = Place::new(runs.join(agent.name()).join(case.name())).map_err(broken)?;
    let model = FakeModel::start(case.script(agent, &place)).map_err(broken)?;
    let start = agent.start(&place, model.port()).map_err(broken)?;
    if let Some(want) = case.want() {
        hooks.install(agent, &place, want, case.profile())?;
    }
    if let Some(hook) = agent.end_hook().filter(|_| matches!(case, Case::Persistent | Case::Persistence)) {
        persistence::install(&hook, &place).map_err(broken)?;
    }
    damage(case, &place).map_err(broken)?;
    let mut server = RunServer::beside(case, agent, &place)?;
    let mut environment = vec![
        ("HOME".to_owned(), place.home.clone().into()),
        ("PATH".to_owned(), agents.path(&[&place.bin])),
        ("E2E_COUNTER".to_owned(), place.counter().into()),
        ("LANG".to_owned(), "C.UTF-8".into()),
        ("TERM".to_owned(), "dumb".into()),
    ];
    environment.extend(start.environment.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
    let program = agents.program(agent.package().as_ref());
    let further = case.profile().and_then(|_| agent.further(&start.arguments));
    let mut words = launcher(case, agent, hooks, &place, server.as_ref());
    let mut launch = Launch {
        program: if words.is_empty() { program.clone() } else { place.deloop() },
        arguments: start.arguments,
        environment,
        read_only: (case == Case::ReadOnly).then(|| place.state()),
        limit: LIMIT,
    };
    if !words.is_empty() {
        words.push(program.to_string_lossy().into_owned());
        launch.arguments.splice(0..0, words);
    }
    let person = Person::new(case, &place)?;
    let ended = sandbox::run(&launch, &place.work, &place.root).map_err(broken)?;
    let said_wrong = person.leave();
    let before = model.record().session.len();
    let later = match further {
        Some(arguments) => {
            (launch.program, launch.arguments) = (program, arguments);
            let logs = place.root.join("later");
            std::fs::create_dir_all(&logs).map_err(broken)?;
            Some((sandbox::run(&launch, &place.work, &logs).map_err(broken)?, before))
        }
        None => None,
    };
    let record = model.record();
    let requests: String = record.all.iter().map(|request| format!("{request}\n")).collect();
    place::write(&place.root.join("requests.jsonl"), &requests).map_err(broken)?;
    let seen = Seen {
        ended: &ended,
        later,
        record: &record,
        place: &place,
        speaks_at: hooks.speaks_at(),
        remembers: agent.remembers(),
        hears_late: agent.hears_late(),
        by_signal: agent.ends_by_signal_only(),
    };
    seen.expect(case != Case::Wrong || said_wrong, "there was no nudge to call wrong")?;
    let said = match &mut server {
        Some(server) => server.judge(case, &seen)?,
        None => seen.judge(case)?,
    };
    Ok(format!(
        "{said}, exit {}, {:.1} s",
        ended.code.map_or("-".to_owned(), |code| code.to_string()),
        ended.took.as_secs_f32()
    ))
}

/// What goes before the agent's own command line, without the agent's program.
fn launcher(
    case: Case,
    agent: &dyn Agent,
    hooks: &dyn Hooks,
    place: &Place,
    server: Option<&RunServer>,
) -> Vec<String> {
    match case {
        Case::Retry => return retry::launcher(place),
        Case::Recover => return recovery::launcher(agent, place),
        Case::SilentModel | Case::EndlessCall => return stall::launcher(place),
        _ => {}
    }
    if case == Case::Persistence {
        return Vec::new();
    }
    let words = case.want().map_or(&[][..], |want| hooks.launcher(agent, want));
    let mut words: Vec<String> = words.iter().map(ToString::to_string).collect();
    if let Some(server) = server.filter(|_| !words.is_empty()) {
        words.splice(1..1, ["--server".to_owned(), server.url().to_owned()]);
    }
    words
}

/// Breaks the hook as the case asks for.
fn damage(case: Case, place: &Place) -> std::io::Result<()> {
    match case {
        Case::Missing => fs::remove_file(place.deloop()),
        Case::Killed => place::write_program(&place.deloop(), "#!/bin/sh\nkill -9 $$\n"),
        Case::Hanging => place::write_program(&place.deloop(), "#!/bin/sh\nexec sleep 600\n"),
        Case::ReadOnly => {
            if place.state().exists() {
                fs::remove_dir_all(place.state())?;
            }
            fs::create_dir_all(place.state())
        }
        _ => Ok(()),
    }
}
