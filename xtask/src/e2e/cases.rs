//! The cases: what the model does, what the hooks do, and what must then be true.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::agents::Agent;
use super::healthy;
use super::hooks::Hooks;
use super::model::script::{Act, CLOSING, Script};
use super::model::{FakeModel, Record};
use super::person::Person;
use super::place::{self, Place};
use super::sandbox::{self, Ended, Isolation, Launch};
use super::setup::Agents;
use super::stand_in::Want;

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

const LIMIT: Duration = Duration::from_secs(120);
/// Identical calls when nothing is expected to end them.
const LOOP: usize = 6;
/// Calls when deloop shall block or stop: more than any ladder needs, also when an agent loses an output under load.
const LONG_LOOP: usize = 30;
/// One of these is on the screen after deloop ended a run.
const SAID: [&str; 3] = ["deloop stopped the run", "[deloop] Stopped", "deloop is stopping the run"];
/// Identical calls with a broken hook; each may cost its timeout, twice.
const BROKEN_LOOP: usize = 2;

impl Case {
    /// Every case, in the order of the table.
    pub(super) const ALL: [Self; 12] = [
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
        }
    }

    fn want(self) -> Option<Want> {
        match self {
            Self::Baseline => None,
            Self::Nudge => Some(Want::Nudge),
            Self::Stop => Some(Want::Stop),
            Self::Healthy => Some(Want::Quiet),
            // With a hook that works these would refuse calls, so that a fault that was not there shows.
            Self::Block | Self::Paused | Self::Allowed | Self::Wrong => Some(Want::Block),
            Self::Missing | Self::Killed | Self::Hanging | Self::ReadOnly => Some(Want::Block),
        }
    }

    fn calls(self) -> usize {
        match self {
            Self::Block | Self::Stop | Self::Paused | Self::Allowed | Self::Wrong => LONG_LOOP,
            Self::Hanging => BROKEN_LOOP,
            Self::Baseline | Self::Nudge | Self::Healthy | Self::Missing | Self::Killed | Self::ReadOnly => {
                LOOP
            }
        }
    }

    fn script(self, agent: &dyn Agent, place: &Place) -> Script {
        if self == Self::Healthy {
            return healthy::script(&place.work);
        }
        let acts = agent.stuck_on().iter().map(|command| Act::Shell(command.to_string())).collect();
        Script::Loop { acts, max: self.calls() }
    }
}

/// What is known after a run.
struct Seen<'a> {
    ended: &'a Ended,
    record: &'a Record,
    place: &'a Place,
    /// See [`Hooks::speaks_at`].
    speaks_at: Option<usize>,
    /// See [`Agent::remembers`].
    remembers: bool,
}

/// Runs one case of one agent in a new folder under `runs`.
pub(super) fn run(case: Case, agent: &dyn Agent, agents: &Agents, hooks: &dyn Hooks, runs: &Path) -> Verdict {
    if let Some(why) = agent.cannot(case) {
        return Verdict::Unsupported(why);
    }
    if hooks.speaks_at().is_some() && matches!(case, Case::Paused | Case::Allowed | Case::Wrong) {
        return Verdict::Unsupported("a stand-in has no commands for people");
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
        hooks.install(agent, &place, want)?;
    }
    damage(case, &place).map_err(broken)?;
    let mut environment = vec![
        ("HOME".to_owned(), place.home.clone().into()),
        ("PATH".to_owned(), agents.path(&[&place.bin])),
        ("E2E_COUNTER".to_owned(), place.counter().into()),
        ("LANG".to_owned(), "C.UTF-8".into()),
        ("TERM".to_owned(), "dumb".into()),
    ];
    environment.extend(start.environment.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
    let mut program = agents.program(&agent.package());
    let mut arguments = start.arguments;
    let launcher = case.want().map_or(&[][..], |want| hooks.launcher(agent, want));
    if !launcher.is_empty() {
        arguments.insert(0, program.to_string_lossy().into_owned());
        arguments.splice(0..0, launcher.iter().map(|word| word.to_string()));
        program = place.deloop();
    }
    let launch = Launch {
        program,
        arguments,
        environment,
        read_only: (case == Case::ReadOnly).then(|| place.state()),
        limit: LIMIT,
    };
    let person = Person::new(case, &place)?;
    let ended = sandbox::run(&launch, &place.work, &place.root).map_err(broken)?;
    let said_wrong = person.leave();
    let record = model.record();
    let requests: String = record.all.iter().map(|request| format!("{request}\n")).collect();
    place::write(&place.root.join("requests.jsonl"), &requests).map_err(broken)?;
    let seen = Seen {
        ended: &ended,
        record: &record,
        place: &place,
        speaks_at: hooks.speaks_at(),
        remembers: agent.remembers(),
    };
    seen.expect(case != Case::Wrong || said_wrong, "there was no nudge to call wrong")?;
    let said = seen.judge(case)?;
    Ok(format!(
        "{said}, exit {}, {:.1} s",
        ended.code.map_or("-".to_owned(), |code| code.to_string()),
        ended.took.as_secs_f32()
    ))
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

impl Seen<'_> {
    fn judge(&self, case: Case) -> Result<String, String> {
        if self.ended.timed_out {
            return Err(format!("still running after {} s; {}", LIMIT.as_secs(), self.figures()));
        }
        match case {
            Case::Baseline | Case::Missing | Case::Killed | Case::Hanging => {
                self.expect(self.told_at().is_none(), "the model read a text of deloop")?;
                self.went_on(case.calls())
            }
            Case::ReadOnly if self.remembers => {
                self.expect(self.requests() == case.calls() + 1, "the model was not asked once a call")?;
                self.expect(self.ended.code == Some(0), "the exit code is not 0")?;
                Ok(format!(
                    "{} of {} calls ran, and deloop remembers without its folder",
                    self.ran(),
                    case.calls()
                ))
            }
            Case::ReadOnly => self.went_on(case.calls()),
            Case::Nudge => self.was_told(case.calls()),
            Case::Block => self.was_refused(),
            Case::Stop => self.was_stopped(case.calls()),
            Case::Healthy => self.was_untouched(),
            Case::Paused | Case::Allowed => {
                self.expect(self.told_at().is_none(), "the model read a text of deloop")?;
                self.went_on(case.calls())
            }
            Case::Wrong => {
                self.expect(self.told_at().is_some(), "the model read no nudge")?;
                self.went_on(case.calls())
            }
        }
    }

    fn went_on(&self, calls: usize) -> Result<String, String> {
        self.expect(self.ran() == calls, "not every call ran")?;
        self.expect(self.requests() == calls + 1, "the model was not asked once a call")?;
        self.expect(self.ended.code == Some(0), "the exit code is not 0")?;
        Ok(format!("{calls} of {calls} calls ran"))
    }

    fn was_told(&self, calls: usize) -> Result<String, String> {
        let Some(told) = self.told_at() else {
            return Err(format!("nobody told the model; {}", self.figures()));
        };
        let expected = self.speaks_at.is_none_or(|call| told == call);
        self.expect(expected, &format!("told in request {told}, not in the next"))?;
        self.expect(self.ran() == calls, "a nudge kept calls from running")?;
        Ok(format!("told after call {told}"))
    }

    fn was_refused(&self) -> Result<String, String> {
        let asked: usize = self.record.session.iter().map(|asked| asked.calls).sum();
        let ran = self.ran();
        self.expect(ran < asked, "no call was refused")?;
        self.expect(self.told_at().is_some(), "the model does not know why")?;
        self.expect(self.speaks_at.is_none_or(|call| ran == call - 1), "the wrong calls were refused")?;
        Ok(format!("{ran} of {asked} calls ran"))
    }

    fn was_stopped(&self, calls: usize) -> Result<String, String> {
        self.expect(self.ran() > 0, "it never began")?;
        self.expect(self.requests() <= calls, "the model was asked to the end")?;
        self.expect(
            self.speaks_at.is_none_or(|call| self.requests() == call),
            "it did not stop at that call",
        )?;
        let said = self.speaks_at.is_some() || SAID.iter().any(|said| self.ended.output.contains(said));
        self.expect(said, "nobody who watches learns that deloop ended it")?;
        Ok(format!("ended after {} of {calls} calls", self.requests()))
    }

    fn was_untouched(&self) -> Result<String, String> {
        self.expect(self.told_at().is_none(), "the model read a text of deloop")?;
        self.expect(self.ended.code == Some(0), "the exit code is not 0")?;
        healthy::check(self.place).map_err(|what| format!("{what}; {}", self.figures()))?;
        self.expect(self.ended.output.contains(CLOSING), "the last word of the model is missing")?;
        Ok(format!("{} turns", self.requests()))
    }

    /// How often the command really ran.
    fn ran(&self) -> usize {
        self.place.ran("check")
    }

    fn requests(&self) -> usize {
        self.record.session.len()
    }

    /// The first request of the session that holds a text of deloop, from 0.
    fn told_at(&self) -> Option<usize> {
        self.record.session.iter().position(|asked| asked.body.to_string().contains("[deloop]"))
    }

    fn expect(&self, holds: bool, complaint: &str) -> Result<(), String> {
        if holds { Ok(()) } else { Err(format!("{complaint}; {}", self.figures())) }
    }

    fn figures(&self) -> String {
        format!(
            "{} calls ran, {} requests, exit {:?}, told at {:?}; see {}",
            self.ran(),
            self.requests(),
            self.ended.code,
            self.told_at(),
            self.place.root.display()
        )
    }
}
