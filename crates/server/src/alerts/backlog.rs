//! The alerts that haven't arrived yet, in an SQLite file, and the keys of those that were handled.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use deloop_types::Millis;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use super::alert::Alert;

/// How long a request may wait for the file, at most.
const PATIENCE: Duration = Duration::from_millis(250);
/// Maximum number of waiting alerts per route.
pub(super) const ROOM: u32 = 1_000;
/// How long the keys of handled alerts are kept, in milliseconds, and how many per route.
const KEPT: i64 = 7 * 24 * 3_600_000;
const KEPT_KEYS: u32 = 10_000;
/// The schema that this release writes.
const SCHEMA: i64 = 1;

const WAITING: u8 = 0;
const SENT: u8 = 1;
const FAILED: u8 = 2;
const DROPPED: u8 = 3;

/// The file.
pub(super) struct AlertBacklog {
    connection: Mutex<Connection>,
    /// Locked by the process that sends.
    lock_file: File,
    is_sender: OnceLock<()>,
}

/// An alert that waits.
pub(super) struct WaitingAlert {
    seq: i64,
    /// When to send it.
    pub(super) due: Millis,
    pub(super) created: Millis,
    /// How often it failed.
    pub(super) attempts: u32,
    alert: String,
}

impl WaitingAlert {
    /// Returns the alert; `None` if what is stored isn't one.
    pub(super) fn alert(&self) -> Option<Alert> {
        serde_json::from_str(&self.alert).ok()
    }
}

/// What became of an alert for one route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Enqueued {
    /// False if the route already had it.
    pub(super) is_new: bool,
    /// How many others had to go.
    pub(super) dropped: u64,
}

/// What is stored about one route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BacklogReport {
    /// Alerts that wait.
    pub waiting: u64,
    /// Alerts that were sent in the last week.
    pub sent: u64,
    /// Alerts that were given up in the last week.
    pub failed: u64,
    /// Alerts that were dropped in the last week because too many waited.
    pub dropped: u64,
    /// What the latest failed attempt was answered.
    pub last_problem: Option<String>,
}

impl AlertBacklog {
    /// Opens the file; creates it, accessible only to the user, if it doesn't exist.
    pub(super) fn open(file: &Path, now: Millis) -> Result<Self, String> {
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        private_file(file).map_err(|e| failed(&e))?;
        let lock_file = private_file(&file.with_extension("lock")).map_err(|e| failed(&e))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).map_err(|e| failed(&e))?;
        prepare(&connection, now).map_err(|e| failed(&format!("{e}; move the file away to start anew")))?;
        Ok(Self { connection: Mutex::new(connection), lock_file, is_sender: OnceLock::new() })
    }

    /// Returns whether this process sends what waits. When servers share a folder, as they do for a moment in a restart
    /// without a gap, one of them does, and the others take over when it ends.
    pub(super) fn is_sender(&self) -> bool {
        if self.is_sender.get().is_none() && self.lock_file.try_lock().is_ok() {
            // Another thread of this process may have been faster.
            let _ = self.is_sender.set(());
        }
        self.is_sender.get().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an alert for these routes. Where too many wait, the oldest of the lowest level goes.
    pub(super) fn enqueue(
        &self,
        routes: &[&str],
        alert: &Alert,
        now: Millis,
    ) -> rusqlite::Result<Vec<Enqueued>> {
        let text = serde_json::to_string(alert).unwrap_or_default();
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut done = Vec::with_capacity(routes.len());
        for route in routes {
            let level = alert.level as u8;
            let added = transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO alerts (route, id, level, state, created, due, attempts, alert) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5, 0, ?6)",
                )?
                .execute(params![route, alert.id, level, WAITING, now.0, text])?;
            let waiting = count_waiting(&transaction, route)?;
            let over = waiting.saturating_sub(ROOM);
            if over > 0 {
                transaction.execute(
                    "UPDATE alerts SET state = ?3, alert = '' WHERE seq IN (SELECT seq FROM alerts \
                     WHERE route = ?1 AND state = ?2 ORDER BY level, seq LIMIT ?4)",
                    params![route, WAITING, DROPPED, over],
                )?;
            }
            done.push(Enqueued { is_new: added > 0, dropped: over.into() });
        }
        transaction.commit()?;
        Ok(done)
    }

    /// Returns the alert of a route that is due first.
    pub(super) fn first(&self, route: &str) -> rusqlite::Result<Option<WaitingAlert>> {
        self.lock()
            .prepare_cached(
                "SELECT seq, due, created, attempts, alert FROM alerts WHERE route = ?1 AND state = ?2 \
                 ORDER BY due, seq LIMIT 1",
            )?
            .query_row(params![route, WAITING], |row| {
                Ok(WaitingAlert {
                    seq: row.get(0)?,
                    due: Millis(row.get(1)?),
                    created: Millis(row.get(2)?),
                    attempts: row.get(3)?,
                    alert: row.get(4)?,
                })
            })
            .optional()
    }

    /// Returns how many alerts of a route wait.
    pub(super) fn waiting(&self, route: &str) -> rusqlite::Result<u64> {
        count_waiting(&self.lock(), route).map(u64::from)
    }

    /// Records that an alert arrived. Its key is kept.
    pub(super) fn sent(&self, waiting: &WaitingAlert) -> rusqlite::Result<()> {
        self.settle(waiting, SENT, None)
    }

    /// Records that an alert is given up.
    pub(super) fn failed(&self, waiting: &WaitingAlert, why: &str) -> rusqlite::Result<()> {
        self.settle(waiting, FAILED, Some(why))
    }

    /// Records a failed attempt, and when to try again.
    pub(super) fn later(&self, waiting: &WaitingAlert, due: Millis, why: &str) -> rusqlite::Result<()> {
        let sql = "UPDATE alerts SET due = ?2, attempts = attempts + 1, problem = ?3 WHERE seq = ?1";
        self.lock().prepare_cached(sql)?.execute(params![waiting.seq, due.0, why]).map(drop)
    }

    fn settle(&self, waiting: &WaitingAlert, state: u8, why: Option<&str>) -> rusqlite::Result<()> {
        let sql = "UPDATE alerts SET state = ?2, alert = '', problem = ?3 WHERE seq = ?1";
        self.lock().prepare_cached(sql)?.execute(params![waiting.seq, state, why]).map(drop)
    }

    /// Forgets handled alerts that are old, or more than are kept.
    pub(super) fn prune(&self, route: &str, now: Millis) -> rusqlite::Result<()> {
        let connection = self.lock();
        connection.execute(
            "DELETE FROM alerts WHERE route = ?1 AND state <> ?2 AND (created < ?3 OR seq <= (SELECT seq FROM alerts \
             WHERE route = ?1 AND state <> ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?4))",
            params![route, WAITING, now.0.saturating_sub(KEPT), KEPT_KEYS],
        )?;
        Ok(())
    }
}

fn private_file(file: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

fn count_waiting(connection: &Connection, route: &str) -> rusqlite::Result<u32> {
    connection
        .prepare_cached("SELECT count(*) FROM alerts WHERE route = ?1 AND state = ?2")?
        .query_row(params![route, WAITING], |row| row.get(0))
}

fn prepare(connection: &Connection, now: Millis) -> Result<(), String> {
    let failed = |e: rusqlite::Error| e.to_string();
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;").map_err(failed)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if found > SCHEMA {
        return Err("a later release wrote this file: update deloop".to_owned());
    }
    connection
        .execute_batch(
            "BEGIN IMMEDIATE;
             CREATE TABLE IF NOT EXISTS alerts (
                 seq INTEGER PRIMARY KEY, route TEXT NOT NULL, id TEXT NOT NULL, level INTEGER NOT NULL,
                 state INTEGER NOT NULL, created INTEGER NOT NULL, due INTEGER NOT NULL,
                 attempts INTEGER NOT NULL, alert TEXT NOT NULL, problem TEXT, UNIQUE (route, id));
             CREATE INDEX IF NOT EXISTS alerts_due ON alerts (route, state, due);
             PRAGMA user_version = 1;
             COMMIT;",
        )
        .map_err(failed)?;
    // Also those of routes that are no longer configured.
    let old = now.0.saturating_sub(KEPT);
    connection.execute("DELETE FROM alerts WHERE created < ?1", [old]).map(drop).map_err(failed)
}

/// Reads what is stored about each route, without changing the file. Empty if there is none.
///
/// # Errors
/// When the file can't be read.
pub fn backlog_reports(file: &Path) -> Result<BTreeMap<String, BacklogReport>, String> {
    if !file.exists() {
        return Ok(BTreeMap::new());
    }
    let read = || -> rusqlite::Result<BTreeMap<String, BacklogReport>> {
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(PATIENCE)?;
        let mut reports: BTreeMap<String, BacklogReport> = BTreeMap::new();
        let mut counts = connection.prepare("SELECT route, state, count(*) FROM alerts GROUP BY 1, 2")?;
        let rows =
            counts.query_map([], |row| Ok((row.get(0)?, row.get::<_, u8>(1)?, row.get::<_, u32>(2)?)))?;
        for row in rows {
            let (route, state, count) = row?;
            let count = u64::from(count);
            let report = reports.entry(route).or_default();
            match state {
                WAITING => report.waiting = count,
                SENT => report.sent = count,
                FAILED => report.failed = count,
                _ => report.dropped = count,
            }
        }
        let problem =
            "SELECT problem FROM alerts WHERE route = ?1 AND problem IS NOT NULL ORDER BY seq DESC LIMIT 1";
        for (route, report) in &mut reports {
            report.last_problem = connection.query_row(problem, [route], |row| row.get(0)).optional()?;
        }
        Ok(reports)
    };
    read().map_err(|e| format!("{}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;
    use deloop_policy::{AlertKind, AlertLevel};

    fn alert(level: AlertLevel, episode: &str) -> Alert {
        Alert::new(AlertKind::LoopWarning, level, &Project::default(), Millis(0), &[episode])
    }

    fn levels(backlog: &AlertBacklog) -> Vec<(AlertLevel, String)> {
        let connection = backlog.lock();
        let mut all = connection.prepare("SELECT alert FROM alerts WHERE state = 0 ORDER BY seq").unwrap();
        let texts = all.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let read = |text: String| serde_json::from_str::<Alert>(&text).unwrap();
        texts.map(|text| read(text.unwrap())).map(|alert| (alert.level, alert.id)).collect()
    }

    #[test]
    fn a_full_backlog_drops_the_least_urgent_and_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let backlog = AlertBacklog::open(&folder.path().join("alerts.db"), Millis(0)).unwrap();
        let add = |alert: &Alert| backlog.enqueue(&["r"], alert, Millis(0)).unwrap()[0];
        let (old, info) = (alert(AlertLevel::Warning, "old"), alert(AlertLevel::Info, "info"));
        assert_eq!(add(&old), Enqueued { is_new: true, dropped: 0 });
        assert_eq!(add(&info), Enqueued { is_new: true, dropped: 0 });
        assert_eq!(add(&info), Enqueued { is_new: false, dropped: 0 });
        for n in 2..ROOM {
            assert_eq!(add(&alert(AlertLevel::Critical, &n.to_string())).dropped, 0);
        }
        assert_eq!(add(&alert(AlertLevel::Critical, "a")).dropped, 1);
        assert!(!levels(&backlog).contains(&(AlertLevel::Info, info.id.clone())));
        assert!(levels(&backlog).contains(&(AlertLevel::Warning, old.id.clone())));
        assert_eq!(add(&alert(AlertLevel::Critical, "b")).dropped, 1);
        assert!(!levels(&backlog).contains(&(AlertLevel::Warning, old.id.clone())));
        // Another route has room of its own, and a dropped alert doesn't come back.
        assert_eq!(backlog.enqueue(&["other"], &old, Millis(0)).unwrap()[0].dropped, 0);
        assert!(!add(&info).is_new);
        assert_eq!(backlog.waiting("r").unwrap(), u64::from(ROOM));
    }

    #[test]
    fn a_handled_alert_stays_known_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alerts.db");
        let backlog = AlertBacklog::open(&file, Millis(0)).unwrap();
        let one = alert(AlertLevel::Info, "one");
        assert!(backlog.enqueue(&["r"], &one, Millis(0)).unwrap()[0].is_new);
        let waiting = backlog.first("r").unwrap().unwrap();
        assert_eq!(waiting.alert(), Some(one.clone()));
        backlog.sent(&waiting).unwrap();
        assert!(backlog.first("r").unwrap().is_none());
        assert!(!backlog.enqueue(&["r"], &one, Millis(1)).unwrap()[0].is_new);
        backlog.prune("r", Millis(KEPT + 1)).unwrap();
        assert!(backlog.enqueue(&["r"], &one, Millis(KEPT + 1)).unwrap()[0].is_new);
        assert_eq!(backlog_reports(&file).unwrap()["r"].waiting, 1);
    }

    #[test]
    fn what_fails_waits_behind_what_is_due() {
        let folder = tempfile::tempdir().unwrap();
        let backlog = AlertBacklog::open(&folder.path().join("alerts.db"), Millis(0)).unwrap();
        for name in ["one", "two"] {
            backlog.enqueue(&["r"], &alert(AlertLevel::Info, name), Millis(5)).unwrap();
        }
        let first = backlog.first("r").unwrap().unwrap();
        backlog.later(&first, Millis(1_000), "HTTP 500").unwrap();
        let second = backlog.first("r").unwrap().unwrap();
        assert_ne!(first.seq, second.seq);
        backlog.failed(&second, "HTTP 404").unwrap();
        let again = backlog.first("r").unwrap().unwrap();
        assert_eq!(
            (again.seq, again.attempts, again.due, again.created),
            (first.seq, 1, Millis(1_000), Millis(5))
        );
    }
}
