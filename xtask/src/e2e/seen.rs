//! Whether what happened is what the case asks for.

use super::cases::{Case, LIMIT};
use super::model::Record;
use super::model::script::CLOSING;
use super::place::Place;
use super::sandbox::Ended;
use super::{documents, healthy, persistence, recovery, retry, server_visit, stall};

/// One of these is on the screen after deloop ended a run.
const SAID: [&str; 3] = ["deloop stopped the run", "[deloop] Stopped", "deloop is stopping the run"];

/// What is known after a run.
pub(super) struct Seen<'a> {
    pub(super) ended: &'a Ended,
    /// How a further prompt in the same session ended, and how many requests there had been before it.
    pub(super) later: Option<(Ended, usize)>,
    pub(super) record: &'a Record,
    pub(super) place: &'a Place,
    /// See [`Hooks::speaks_at`](super::hooks::Hooks::speaks_at).
    pub(super) speaks_at: Option<usize>,
    /// See [`Agent::remembers`](super::agents::Agent::remembers).
    pub(super) remembers: bool,
    /// See [`Agent::hears_late`](super::agents::Agent::hears_late).
    pub(super) hears_late: bool,
    /// See [`Agent::ends_by_signal_only`](super::agents::Agent::ends_by_signal_only).
    pub(super) by_signal: bool,
}

impl Seen<'_> {
    /// Returns what came of the case, or what is wrong.
    pub(super) fn judge(&self, case: Case) -> Result<String, String> {
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
            Case::Server => {
                let told = self.told_at();
                self.expect(told.is_some_and(|told| told > 0), "the model read no message of the server")?;
                self.was_stopped(case.calls())
            }
            Case::Healthy => self.was_untouched(),
            Case::Paused | Case::Allowed => {
                self.expect(self.told_at().is_none(), "the model read a text of deloop")?;
                self.went_on(case.calls())
            }
            Case::Wrong => {
                self.expect(self.told_at().is_some(), "the model read no nudge")?;
                self.went_on(case.calls())
            }
            Case::Retry => retry::judge(self),
            Case::Persistent | Case::Persistence => persistence::judge(case, self),
            Case::Recover => recovery::judge_fresh(self),
            Case::Rollback => recovery::judge_rollback(self),
            Case::SilentModel | Case::EndlessCall => stall::judge(case, self),
            Case::Message | Case::ServerGone => server_visit::judge(case, self),
            Case::Behavioral | Case::Signature | Case::DoomLoop | Case::TurnSimilarity | Case::TurnHash => {
                documents::judge(case, self)
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

    /// How often the model was asked for a turn.
    pub(super) fn requests(&self) -> usize {
        self.record.session.len()
    }

    /// The first request of the session that holds a text of deloop, from 0.
    fn told_at(&self) -> Option<usize> {
        self.record.session.iter().position(|asked| asked.body.to_string().contains("[deloop]"))
    }

    /// The first request of the session that holds this text, from 0.
    pub(super) fn first_with(&self, text: &str) -> Option<usize> {
        self.record.session.iter().position(|asked| asked.text().contains(text))
    }

    /// Fails unless the model first read this text in this request, which holds the results of as many turns.
    pub(super) fn expect_first(&self, text: &str, request: usize) -> Result<(), String> {
        let found = self.first_with(text);
        let line = text.lines().next().unwrap_or_default();
        self.expect(
            found == Some(request),
            &format!("{line:?} is first in request {found:?}, not in {request}"),
        )
    }

    pub(super) fn expect(&self, holds: bool, complaint: &str) -> Result<(), String> {
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
