//! What happened last in a `deloop run`, and that nothing has happened since.

use deloop_detect::short_hash;
use deloop_store::StoreError;
use deloop_types::{Action, Decision, Finding, Millis};
use rusqlite::OptionalExtension;

use super::SqliteJournal;
use crate::recent_calls;
use crate::running_calls::RunningCall;
use crate::session_state::SessionState;
use crate::{DecisionOrigin, SessionSource};

/// The status of a run that was ended because nothing happened.
pub const STALLED: &str = "STALLED";
/// The rung under which a stall is recorded, and the name in its finding.
const STALL: &str = "stall";
/// Where a stall is carried out.
const AT: &str = "deloop run";

/// The last known moment of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunActivity {
    /// The session of the last event, and its agent.
    pub source: SessionSource,
    /// The calls that have no result, those of the most recently active agent last.
    pub running: Vec<RunningCall>,
    /// The index of the last known call.
    step: u64,
    /// The last calls, as JSON.
    recent_calls: String,
}

impl SqliteJournal {
    /// Returns when a session of a `deloop run` last called deloop; `None` before the first call.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn last_event_of_run(&self, run: &str) -> Result<Option<Millis>, StoreError> {
        self.see(|connection| {
            let sql = "SELECT max(updated_ms) FROM session_state
                       WHERE session IN (SELECT session FROM sources WHERE run = ?1)";
            let last: Option<i64> = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
            Ok(last.map(Millis))
        })
    }

    /// Returns what happened last in a `deloop run`; `None` if it never called deloop.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn activity_of_run(&self, run: &str) -> Result<Option<RunActivity>, StoreError> {
        let sql = "SELECT session, state FROM session_state
                   WHERE session IN (SELECT session FROM sources WHERE run = ?1) ORDER BY updated_ms DESC LIMIT 1";
        let last: Option<(String, String)> = self.see(|connection| {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            connection.prepare_cached(sql)?.query_row([run], read).optional()
        })?;
        let Some((session, text)) = last else { return Ok(None) };
        let Some(source) = self.source(&session)? else { return Ok(None) };
        let state = SessionState::read(&text).unwrap_or_default();
        let calls = state.main_calls();
        Ok(Some(RunActivity {
            source,
            running: state.running(),
            step: calls.last().map_or(0, |call| call.step),
            recent_calls: recent_calls::json(calls),
        }))
    }

    /// Records that a `deloop run` is ended because nothing happened. `summary` says for how long, and what was going on.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn record_stall(
        &self,
        run: &str,
        activity: &RunActivity,
        summary: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let session = &activity.source.session;
        let mut finding = Finding::new(STALL, 1);
        finding.since = activity.step;
        finding.tool = activity.running.last().map(|call| call.tool.clone());
        summary.clone_into(&mut finding.summary);
        let id = format!("d{:010x}", short_hash(format!("{session}\0{STALL}\0{run}").as_bytes()) >> 24);
        let mut decision = Decision::go_on(session.as_str().into(), activity.step);
        decision.action = Action::Stop;
        decision.level = 1;
        decision.rung = Some(STALL.to_owned());
        decision.status = Some(STALLED.to_owned());
        decision.findings = vec![finding];
        decision.id = Some(id.clone());
        let origin = DecisionOrigin {
            recent_calls: &activity.recent_calls,
            ..DecisionOrigin::new(&activity.source.agent, now, Some(run))
        };
        self.insert(&decision, &origin)?;
        self.set("delivered", &id, AT)
    }
}
