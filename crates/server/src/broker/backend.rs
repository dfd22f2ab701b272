//! Where sessions and swarms are: in a file of this server, or in Redis for several servers.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deloop_engine::Session;
use deloop_formats::read_step;
use deloop_store::{Bounds, Codec, RedisStore, SqliteStore, StoreError};
use deloop_types::Millis;

use super::SentStep;
use super::eviction_watch::EvictionWatch;
use super::judge::{Judge, JudgedStep};
use super::local::LocalStore;
use super::recovery::ReplayedStep;
use super::remote::RemoteView;
use super::state_notices::StateNotices;
use super::step_log::{self, LoggedStep, entries};
use super::view::ProjectView;
use crate::money::{BudgetLimits, Money};
use crate::project::Project;
use crate::readiness::ReadyReason;
use crate::shared::{ServerNotice, TellFn};

/// How much a file keeps. A session takes a few KiB.
const BOUNDS: Bounds = Bounds {
    sessions: 1_000_000,
    idle: 7 * 24 * 3_600_000,
    swarms: 1_000,
    projects: 10_000,
    decisions: 0,
    bytes: 16 << 30,
};

/// Holds sessions and swarms.
#[expect(clippy::large_enum_variant, reason = "a process has one of them")]
pub(crate) enum Backend {
    Local(LocalStore),
    Remote { store: RedisStore, money: Money, notices: Arc<StateNotices>, watch: EvictionWatch },
}

impl Backend {
    /// Opens a file; creates it if it doesn't exist. Steps that were answered but aren't in the file are decided about
    /// again, and returned.
    pub(super) fn open_file(
        file: &Path,
        budgets: BudgetLimits,
        judge: &Judge,
        now: Millis,
        tell: TellFn,
    ) -> Result<(Arc<SqliteStore>, Self, Vec<ReplayedStep>), StoreError> {
        let mut replayed = Vec::new();
        let replay = |store: &LocalStore, log: &[u8]| replayed = replay(store, judge, log);
        let store = LocalStore::open(file, BOUNDS, budgets, now, tell, replay)?;
        Ok((Arc::clone(store.sqlite()), Self::Local(store), replayed))
    }

    /// Returns a view of a project for one request. With Redis, all that it does together waits no longer than the
    /// deadline.
    pub(super) fn view<'a>(&'a self, project: &'a Project, now: Millis) -> ProjectView<'a> {
        match self {
            Self::Local(store) => ProjectView::Local(store.view(project, now)),
            Self::Remote { store, notices, .. } => {
                let store = store.scoped(project.as_str());
                ProjectView::Remote(RemoteView::new(store, Arc::clone(notices), now))
            }
        }
    }

    /// Decides about the steps of a project, in order, and stores what follows from them.
    pub(super) fn decide(
        &self,
        judge: &Judge,
        project: &Project,
        steps: &[SentStep<'_>],
        now: Millis,
        tell: &TellFn,
    ) -> Result<Vec<JudgedStep>, StoreError> {
        let view = self.view(project, now);
        let decide = |view: &ProjectView<'_>| {
            let mut decided = Vec::with_capacity(steps.len());
            for sent in steps {
                decided.push(judge.decide(view, &sent.step, now)?);
            }
            Ok::<_, StoreError>(decided)
        };
        let sessions = || steps.iter().map(|sent| &sent.step.session);
        match self {
            Self::Local(store) => {
                let turn = if judge.is_alone(steps) { store.turn_of(sessions()) } else { store.turn() };
                view.preload(&judge.engine, sessions())?;
                let place = judge.owner.logged(project.as_str());
                let entries = steps.iter().map(|sent| LoggedStep {
                    version: step_log::VERSION,
                    now,
                    terms: judge.terms(),
                    project: &place,
                    json: sent.json,
                });
                store.append(entries)?;
                let mut decided = decide(&view)?;
                judge.charge(store.money(), project, steps, &mut decided, now);
                drop(turn);
                if let Err(error) = store.keep_up(&judge.engine, now) {
                    // The steps are in the log, so the next write may be the one that succeeds.
                    tell(ServerNotice::Failed(error.to_string()));
                }
                Ok(decided)
            }
            Self::Remote { money, .. } => {
                view.preload(&judge.engine, sessions())?;
                let mut decided = decide(&view)?;
                if let ProjectView::Remote(view) = &view {
                    again(judge, view, steps, &mut decided, now)?;
                }
                judge.charge(money, project, steps, &mut decided, now);
                Ok(decided)
            }
        }
    }

    /// Makes a change that isn't a step. It is stored when this returns; if it fails, nothing is changed.
    pub(super) fn change<R, E: From<StoreError>>(
        &self,
        codec: &dyn Codec<Session>,
        project: &Project,
        now: Millis,
        work: impl Fn(&ProjectView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        match self {
            Self::Local(store) => {
                let turn = store.write_turn();
                store.write_back_in(&turn, codec, now)?;
                let done = work(&self.view(project, now));
                let stored = done.and_then(|done| {
                    store.write_back_in(&turn, codec, now)?;
                    Ok(done)
                });
                if stored.is_err() {
                    store.undo(&turn);
                }
                stored
            }
            Self::Remote { .. } => loop {
                let view = self.view(project, now);
                let done = work(&view)?;
                let ProjectView::Remote(view) = view else { return Ok(done) };
                if view.commit(codec)?.is_empty() {
                    return Ok(done);
                }
            },
        }
    }

    /// Writes everything that is only in memory or in the log to the file. Redis has everything already.
    pub(super) fn write_back(&self, codec: &dyn Codec<Session>, now: Millis) -> Result<(), StoreError> {
        match self {
            Self::Local(store) => store.write_back(codec, now),
            Self::Remote { .. } => Ok(()),
        }
    }

    /// Writes to the file if there is much to write.
    pub(super) fn write_back_if_due(
        &self,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        match self {
            Self::Local(store) => store.write_back_if_due(codec, now),
            Self::Remote { .. } => Ok(()),
        }
    }

    /// Asks Redis from time to time whether it drops keys.
    pub(super) fn watch_eviction(&self, now: Millis) {
        if let Self::Remote { store, watch, .. } = self {
            watch.look(store, now);
        }
    }

    /// Returns why the server isn't as it should be, if Redis drops keys.
    pub(super) fn eviction(&self) -> Option<ReadyReason> {
        match self {
            Self::Local(_) => None,
            Self::Remote { watch, .. } => watch.reason(),
        }
    }

    /// Returns what people should know of stored states.
    pub(super) fn notices(&self) -> &StateNotices {
        match self {
            Self::Local(store) => &store.notices,
            Self::Remote { notices, .. } => notices,
        }
    }

    /// Returns what sessions spend.
    pub(super) fn money(&self) -> &Money {
        match self {
            Self::Local(store) => store.money(),
            Self::Remote { money, .. } => money,
        }
    }

    /// Returns the number of stored sessions, of all projects; `None` where that isn't known.
    pub(super) fn session_count(&self) -> Result<Option<u64>, StoreError> {
        match self {
            Self::Local(store) => store.session_count().map(Some),
            Self::Remote { .. } => Ok(None),
        }
    }
}

/// Stores the sessions of a view. Steps of sessions that another server changed in between are decided about again.
fn again(
    judge: &Judge,
    view: &RemoteView,
    steps: &[SentStep<'_>],
    decided: &mut [JudgedStep],
    now: Millis,
) -> Result<(), StoreError> {
    let mut open = view.commit(&judge.engine)?;
    while let Some((session, view)) = open.pop() {
        let view = ProjectView::Remote(view);
        for (sent, decided) in steps.iter().zip(&mut *decided).filter(|(s, _)| s.step.session == session) {
            *decided = judge.decide(&view, &sent.step, now)?;
        }
        if let ProjectView::Remote(view) = view {
            open.extend(view.commit(&judge.engine)?);
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    Ok(())
}

/// Decides again about the steps that were answered but aren't in the file.
fn replay(store: &LocalStore, judge: &Judge, log: &[u8]) -> Vec<ReplayedStep> {
    let (mut replayed, mut lost) = (Vec::new(), 0);
    for logged in entries(log) {
        let (project, judge) = judge.of_logged(&logged);
        let (Ok(project), Ok(mut step)) = (Project::parse(project), read_step(logged.json)) else {
            lost += 1;
            continue;
        };
        let over_usd = judge.complete(&mut step, logged.now);
        let view = ProjectView::Local(store.view(&project, logged.now));
        // A step that made the process panic must not do so at every start.
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let mut judged = [judge.decide(&view, &step, logged.now)?];
            let sent = [SentStep { over_usd, ..SentStep::new(step.clone(), logged.json) }];
            judge.charge(store.money(), &project, &sent, &mut judged, logged.now);
            let [judged] = judged;
            Ok::<_, StoreError>(judged)
        }));
        match decided {
            Ok(Ok(judged)) => replayed.push(ReplayedStep { project, step, judged, now: logged.now }),
            _ => lost += 1,
        }
    }
    if lost > 0 {
        store.notices.lost_log(format!("{lost} steps in the log of steps couldn't be decided about again"));
    }
    send_again(store, judge, &replayed);
    replayed
}

/// Puts back the messages that went out with the last answer to each session, which the agent may not have got.
fn send_again(store: &LocalStore, judge: &Judge, replayed: &[ReplayedStep]) {
    let mut seen = HashSet::new();
    for ReplayedStep { project, step, judged, now } in replayed.iter().rev() {
        if !seen.insert((project.as_str(), &step.session)) {
            continue;
        }
        let (view, last) = (ProjectView::Local(store.view(project, *now)), judged.decision.step);
        let went_out = view.see(&judge.engine, &step.session, |state| state.extras.went_out_with(last));
        if matches!(went_out, Ok(Some(true))) {
            // The session is in memory, so this can't fail.
            let _ = view.change(&judge.engine, &step.session, |state| state.extras.confirm(last, false));
        }
    }
}
