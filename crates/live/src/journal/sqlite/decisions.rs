//! The decisions, whether they were carried out, and their outcomes.

use deloop_types::{Action, Decision, Millis};
use rusqlite::{Row, params};

use deloop_store::StoreError;

use super::{SqliteJournal, signed};
use crate::{DecisionFilter, DecisionOrigin, RecordedDecision};

const COLUMNS: &str = "id, session, agent, subagent, step, ts, action, would, level, detector, summary, message, \
                       status, delivered, wrong, rung, findings, recent_calls, run, held, outcome, episode, side";

impl RecordedDecision {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            agent: row.get(2)?,
            subagent: row.get(3)?,
            step: number(row.get(4)?),
            ts: Millis(row.get(5)?),
            action: row.get(6)?,
            would: row.get(7)?,
            level: number(row.get(8)?),
            detector: row.get(9)?,
            summary: row.get(10)?,
            message: row.get(11)?,
            status: row.get(12)?,
            delivered: row.get(13)?,
            wrong: row.get(14)?,
            rung: row.get(15)?,
            findings: row.get(16)?,
            recent_calls: row.get(17)?,
            run: row.get(18)?,
            held: row.get(19)?,
            outcome: row.get(20)?,
            episode: row.get::<_, Option<i64>>(21)?.map(number),
            side: row.get(22)?,
        })
    }
}

/// Serializes findings as in a Decision, the one that decided with `"decided": true`.
fn findings_json(decision: &Decision) -> Result<String, StoreError> {
    let deciding = decision.deciding();
    let mut list = Vec::with_capacity(decision.findings.len());
    for finding in &decision.findings {
        let mut json = serde_json::to_value(finding).map_err(StoreError::encode)?;
        if deciding == Some(finding) {
            json["decided"] = true.into();
        }
        list.push(json);
    }
    Ok(serde_json::Value::Array(list).to_string())
}

impl SqliteJournal {
    pub(super) fn insert(&self, decision: &Decision, at: &DecisionOrigin<'_>) -> Result<(), StoreError> {
        let full = decision.uncapped();
        let Some(id) = full.id.as_deref().filter(|_| full.action > Action::Continue) else { return Ok(()) };
        let finding = decision.main_finding();
        let findings = findings_json(decision)?;
        let would = match at.held {
            Some(_) => Some(full.action),
            None => decision.would.as_ref().map(|would| would.action),
        };
        self.change(|connection| {
            // A session that ended and started again counts its steps from 0, so its decisions get the same ids again.
            connection
                .prepare_cached("DELETE FROM decisions WHERE id = ?1 AND step = ?2")?
                .execute(params![id, signed(decision.step)])?;
            connection
                .prepare_cached(&format!(
                    "INSERT OR IGNORE INTO decisions({COLUMNS})
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, NULL, 0, ?14, ?15, ?16, ?17, ?18, NULL, ?19, ?20)"
                ))?
                .execute(params![
                    id,
                    decision.session.as_str(),
                    at.agent,
                    at.subagent,
                    signed(decision.step),
                    at.now.0,
                    if at.held.is_some() { Action::Continue } else { decision.action }.as_str(),
                    would.map(Action::as_str),
                    full.level,
                    finding.map(|f| f.detector.as_str()),
                    finding.map(|f| f.summary.as_str()),
                    decision.message.as_deref(),
                    decision.status.as_deref(),
                    full.rung.as_deref(),
                    findings,
                    at.recent_calls,
                    at.run,
                    at.held,
                    at.episode.map(signed),
                    at.side,
                ])?;
            Ok(())
        })
    }

    /// Sets a column of a decision.
    pub(super) fn set(&self, column: &str, id: &str, value: &str) -> Result<(), StoreError> {
        let sql = format!("UPDATE decisions SET {column} = ?2 WHERE id = ?1");
        self.change(|connection| connection.execute(&sql, [id, value]).map(drop))
    }

    /// Returns the latest decisions, newest first.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn decisions(
        &self,
        filter: &DecisionFilter<'_>,
        most: usize,
    ) -> Result<Vec<RecordedDecision>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare(&format!(
                "SELECT {COLUMNS} FROM decisions
                 WHERE (?1 IS NULL OR substr(session, 1, length(?1)) = ?1) AND (?2 IS NULL OR agent = ?2)
                 AND (?3 IS NULL OR run = ?3) AND (?4 IS NULL OR ts >= ?4)
                 ORDER BY ts DESC, step DESC LIMIT ?5"
            ))?;
            let DecisionFilter { session, agent, run, since } = filter;
            let rows = select.query_map(
                params![session, agent, run, since.map(|s| s.0), signed(most as u64)],
                RecordedDecision::read,
            )?;
            rows.collect()
        })
    }

    /// Returns the decisions whose ids start with this prefix, at most `most`.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn decisions_named(&self, prefix: &str, most: usize) -> Result<Vec<RecordedDecision>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare(&format!(
                "SELECT {COLUMNS} FROM decisions WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2"
            ))?;
            let rows = select.query_map(params![prefix, signed(most as u64)], RecordedDecision::read)?;
            rows.collect()
        })
    }

    /// Returns the first stop of a `deloop run`, not counting those of subagents.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn stop_of_run(&self, run: &str) -> Result<Option<RecordedDecision>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM decisions WHERE run = ?1 AND action = 'stop' AND subagent IS NULL
                 ORDER BY ts LIMIT 1"
            ))?;
            let mut rows = select.query_map([run], RecordedDecision::read)?;
            rows.next().transpose()
        })
    }

    /// Returns the first decision of a `deloop run` to block a call although two nudges about a loop were delivered in the
    /// same session, not counting those of subagents.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn ignored_nudges_of_run(&self, run: &str) -> Result<Option<RecordedDecision>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM decisions AS blocked
                 WHERE run = ?1 AND action = 'block' AND subagent IS NULL AND 2 <= (
                     SELECT count(*) FROM decisions AS nudge
                     WHERE nudge.run = ?1 AND nudge.session = blocked.session AND nudge.subagent IS NULL
                     AND nudge.action = 'nudge' AND nudge.detector IS NOT NULL AND nudge.delivered IS NOT NULL
                     AND nudge.ts <= blocked.ts)
                 ORDER BY ts, step LIMIT 1"
            ))?;
            let mut rows = select.query_map([run], RecordedDecision::read)?;
            rows.next().transpose()
        })
    }

    /// Marks a decision as wrong, or as right after all. Returns `false` when there is no decision with this id.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn mark_wrong(&self, id: &str, wrong: bool) -> Result<bool, StoreError> {
        self.change(|connection| {
            let sql = "UPDATE decisions SET wrong = ?2 WHERE id = ?1";
            Ok(connection.execute(sql, params![id, wrong])? > 0)
        })
    }
}
