//! Where sessions and swarms are: in a file of this server, or in Redis for several servers.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deloop_engine::Session;
use deloop_formats::read_step;
use deloop_store::{Bounds, Codec, RedisStore, SqliteStore, StoreError};
use deloop_types::{Millis, SessionId};

use super::SentStep;
use super::eviction_watch::EvictionWatch;
use super::judge::{Judge, JudgedStep};
use super::key_limits::{KeyLimit, limit_new_agents, refused};
use super::local::{BEHIND, LocalStore};
use super::recovery::ReplayedStep;
use super::remote::RemoteView;
use super::slices::Slices;
use super::state_notices::StateNotices;
use super::step_log::{self, LoggedStep, entries};
use super::view::ProjectView;
use crate::money::{BudgetLimits, Money};
use crate::project::Project;
use crate::readiness::ReadyReason;
use crate::requester::Requester;
use crate::shared::TellFn;

/// How much a file keeps. A session takes a few KiB.
const BOUNDS: Bounds = Bounds {
    sessions: 1_000_000,
    idle: 7 * 24 * 3_600_000,
    swarms: 10_000,
    projects: 10_000,
    decisions: 0,
    bytes: 16 << 30,
};

/// A request with many steps waits for a write to the database earlier than others: they wait because of such requests.
const LONG_REQUEST_BEHIND: u64 = 2;

/// Says in a [`LoggedStep`] that the step was judged without its swarm.
const WITHOUT_SWARM: u8 = 1 << 5;

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
        requester: &Requester,
        steps: &mut [SentStep<'_>],
        now: Millis,
    ) -> Result<Vec<JudgedStep>, StoreError> {
        let Requester { project, allowance, .. } = requester;
        let view = self.view(project, now);
        match self {
            Self::Local(store) => {
                let _turn = if judge.is_alone(steps) { store.turn_of(sessions(steps)) } else { store.turn() };
                view.preload(&judge.engine, sessions(steps))?;
                limit_new_agents(judge, &view, allowance.as_deref(), steps, now)?;
                let place = judge.owner.logged(project.as_str());
                store.append(logged(judge, &place, steps, now))?;
                let mut decided = decide(judge, &view, steps, now)?;
                judge.charge(store.money(), project, steps, &mut decided, now);
                Ok(decided)
            }
            Self::Remote { money, .. } => {
                view.preload(&judge.engine, sessions(steps))?;
                limit_new_agents(judge, &view, allowance.as_deref(), steps, now)?;
                let mut decided = decide(judge, &view, steps, now)?;
                if let ProjectView::Remote(view) = &view {
                    again(judge, view, steps, &mut decided, now)?;
                }
                judge.charge(money, project, steps, &mut decided, now);
                Ok(decided)
            }
        }
    }

    /// Returns steps in slices that are decided about one after the other, and whether there are several. In Redis, requests
    /// don't wait for each other.
    pub(super) fn slices<'s, 'j>(&self, steps: &'s mut [SentStep<'j>]) -> (Slices<'s, 'j>, bool) {
        match self {
            Self::Local(_) => Slices::of(steps),
            Self::Remote { .. } => Slices::whole(steps),
        }
    }

    /// Waits until the file has most changes, if it is far behind.
    pub(super) fn keep_up(
        &self,
        codec: &dyn Codec<Session>,
        is_long: bool,
        now: Millis,
    ) -> Result<(), StoreError> {
        match self {
            Self::Local(store) => {
                store.keep_up(codec, if is_long { LONG_REQUEST_BEHIND } else { BEHIND }, now)
            }
            Self::Remote { .. } => Ok(()),
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

fn sessions<'s>(steps: &'s [SentStep<'_>]) -> impl Iterator<Item = &'s SessionId> {
    steps.iter().map(|sent| &sent.step.session)
}

fn decide(
    judge: &Judge,
    view: &ProjectView<'_>,
    steps: &[SentStep<'_>],
    now: Millis,
) -> Result<Vec<JudgedStep>, StoreError> {
    let decide = |sent: &SentStep<'_>| {
        if sent.is_refused() { Ok(refused(&sent.step)) } else { judge.decide(view, &sent.step, now) }
    };
    steps.iter().map(decide).collect()
}

/// Returns the entries of steps in the log.
fn logged<'s>(
    judge: &Judge,
    place: &'s str,
    steps: &'s [SentStep<'_>],
    now: Millis,
) -> impl Iterator<Item = LoggedStep<'s>> {
    let (terms, version) = (judge.terms(), step_log::VERSION);
    steps.iter().filter(|sent| !sent.is_refused()).map(move |sent| {
        let swarm = if sent.limit == Some(KeyLimit::Swarms) { WITHOUT_SWARM } else { 0 };
        LoggedStep { version, now, terms: terms | swarm, project: place, json: sent.json }
    })
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
        step.swarm.take_if(|_| logged.terms & WITHOUT_SWARM != 0);
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
