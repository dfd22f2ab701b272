use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use deloop_types::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::{SqliteStore, record_tables, signed};
use crate::StoreError;
use crate::records::{AddedOnce, EVENTS_KEPT, EventCursor, MARKS_KEPT, RecordName, SharedRecords, expiry};

/// Expired records are deleted this often, in milliseconds.
const SWEEP: u64 = 60_000;

/// Holds shared records in the file of a [`SqliteStore`], for one server.
///
/// A change on the thread that has a batch of the store open becomes part of the batch: it is undone if the batch fails.
/// Changes on other threads wait until the batch ends.
pub struct SqliteRecords {
    store: Arc<SqliteStore>,
    swept: AtomicI64,
    /// How often this process published, so that a thread that waits sees that there is something new.
    published: Mutex<u64>,
    is_published: Condvar,
}

impl SqliteRecords {
    /// Creates the tables if they don't exist.
    ///
    /// # Errors
    /// When the file can't be read or written.
    pub fn new(store: Arc<SqliteStore>) -> Result<Self, StoreError> {
        if !store.see(record_tables::are_current)? {
            store.change(record_tables::create)?;
        } else if let Some((found, known)) = store.see(record_tables::later)? {
            return Err(StoreError::database(
                store.path(),
                format!(
                    "a later release wrote this file (records {found}, this release reads {known}): update deloop"
                ),
            ));
        }
        let (swept, published) = (AtomicI64::new(0), Mutex::new(0));
        Ok(Self { store, swept, published, is_published: Condvar::new() })
    }

    fn change<R>(
        &self,
        now: Millis,
        work: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        let sweeps = self.swept.load(Ordering::Relaxed).abs_diff(now.0) >= SWEEP;
        let done = self.store.change(|connection| {
            if sweeps {
                let sql = "DELETE FROM shared_records WHERE expires_ms <= ?1";
                connection.prepare_cached(sql)?.execute([now.0])?;
            }
            work(connection)
        })?;
        if sweeps {
            self.swept.store(now.0, Ordering::Relaxed);
        }
        Ok(done)
    }

    fn delete(&self, kind: &str, name: RecordName<'_>) -> Result<(), StoreError> {
        self.store.change(|connection| {
            let sql = "DELETE FROM shared_records WHERE kind = ?1 AND record_group = ?2 AND name = ?3";
            connection.prepare_cached(sql)?.execute([kind, name.group, name.name]).map(drop)
        })
    }

    fn events_after(&self, after: i64, most: usize) -> Result<Vec<(i64, String)>, StoreError> {
        self.store.see(|connection| {
            let sql = "SELECT id, text FROM shared_events WHERE id > ?1 ORDER BY id LIMIT ?2";
            let mut select = connection.prepare_cached(sql)?;
            let rows =
                select.query_map([after, signed(most as u64)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }
}

/// Returns the id of a record that hasn't expired, and its text.
fn find(
    connection: &Connection,
    kind: &str,
    name: RecordName<'_>,
    now: Millis,
) -> rusqlite::Result<Option<(i64, String)>> {
    connection
        .prepare_cached(
            "SELECT id, text FROM shared_records
             WHERE kind = ?1 AND record_group = ?2 AND name = ?3 AND expires_ms > ?4",
        )?
        .query_row(params![kind, name.group, name.name, now.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Writes a record and returns its id. One that has expired starts anew.
fn write(
    connection: &Connection,
    kind: &str,
    name: RecordName<'_>,
    text: &str,
    until: i64,
    now: Millis,
) -> rusqlite::Result<i64> {
    if let Some((id, _)) = find(connection, kind, name, now)? {
        let sql = "UPDATE shared_records SET expires_ms = ?2, text = ?3 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![id, until, text])?;
        return Ok(id);
    }
    connection
        .prepare_cached("DELETE FROM shared_records WHERE kind = ?1 AND record_group = ?2 AND name = ?3")?
        .execute([kind, name.group, name.name])?;
    connection
        .prepare_cached(
            "INSERT INTO shared_records(kind, record_group, name, expires_ms, text) VALUES(?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![kind, name.group, name.name, until, text])?;
    Ok(connection.last_insert_rowid())
}

fn totals_of(connection: &Connection, table: i64) -> rusqlite::Result<Vec<(String, i64)>> {
    let sql = "SELECT field, amount FROM shared_amounts WHERE record = ?1 ORDER BY field";
    let mut select = connection.prepare_cached(sql)?;
    select.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn texts_of(connection: &Connection, list: i64) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT text FROM shared_texts WHERE record = ?1 ORDER BY id";
    connection.prepare_cached(sql)?.query_map([list], |row| row.get(0))?.collect()
}

fn total_of(connection: &Connection, table: i64, field: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT amount FROM shared_amounts WHERE record = ?1 AND field = ?2";
    let total = connection.prepare_cached(sql)?.query_row(params![table, field], |row| row.get(0));
    Ok(total.optional()?.unwrap_or(0))
}

fn add(
    connection: &Connection,
    table: RecordName<'_>,
    amounts: &[(&str, i64)],
    until: i64,
    now: Millis,
) -> rusqlite::Result<Vec<i64>> {
    let table = write(connection, "table", table, "", until, now)?;
    for (field, amount) in amounts {
        // SQLite would turn a sum that is too large into an inexact one.
        let total = total_of(connection, table, field)?.saturating_add(*amount);
        let sql = "INSERT OR REPLACE INTO shared_amounts VALUES(?1, ?2, ?3)";
        connection.prepare_cached(sql)?.execute(params![table, field, total])?;
    }
    amounts.iter().map(|(field, _)| total_of(connection, table, field)).collect()
}

impl SharedRecords for SqliteRecords {
    fn claim(&self, name: RecordName<'_>, ttl: Duration, now: Millis) -> Result<bool, StoreError> {
        self.change(now, |connection| {
            let is_free = find(connection, "claim", name, now)?.is_none();
            if is_free {
                write(connection, "claim", name, "", expiry(ttl, now), now)?;
            }
            Ok(is_free)
        })
    }

    fn release(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.delete("claim", name)
    }

    fn add(
        &self,
        table: RecordName<'_>,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<Vec<i64>, StoreError> {
        self.change(now, |connection| add(connection, table, amounts, expiry(ttl, now), now))
    }

    fn add_once(
        &self,
        table: RecordName<'_>,
        mark: &str,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<AddedOnce, StoreError> {
        // The length keeps a table and a mark apart from another table whose name ends where the mark starts.
        let mark = format!("{}:{}{mark}", table.name.len(), table.name);
        let mark = RecordName::new(table.group, &mark);
        self.change(now, |connection| {
            let is_new = find(connection, "mark", mark, now)?.is_none();
            if is_new {
                write(connection, "mark", mark, "", expiry(ttl.min(MARKS_KEPT), now), now)?;
                let totals = add(connection, table, amounts, expiry(ttl, now), now)?;
                return Ok(AddedOnce { is_new, totals });
            }
            let table = find(connection, "table", table, now)?;
            let total = |field| table.as_ref().map_or(Ok(0), |(id, _)| total_of(connection, *id, field));
            let totals = amounts.iter().map(|(field, _)| total(field)).collect::<Result<_, _>>()?;
            Ok(AddedOnce { is_new, totals })
        })
    }

    fn totals(&self, table: RecordName<'_>, now: Millis) -> Result<Vec<(String, i64)>, StoreError> {
        self.store.see(|connection| match find(connection, "table", table, now)? {
            Some((id, _)) => totals_of(connection, id),
            None => Ok(Vec::new()),
        })
    }

    fn forget(&self, table: RecordName<'_>) -> Result<(), StoreError> {
        self.delete("table", table)
    }

    fn push(
        &self,
        list: RecordName<'_>,
        text: &str,
        most: usize,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.change(now, |connection| {
            let list = write(connection, "list", list, "", expiry(ttl, now), now)?;
            let sql = "INSERT INTO shared_texts(record, text) VALUES(?1, ?2)";
            connection.prepare_cached(sql)?.execute(params![list, text])?;
            connection
                .prepare_cached(
                    "DELETE FROM shared_texts WHERE record = ?1 AND id <=
                     (SELECT id FROM shared_texts WHERE record = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                )?
                .execute([list, signed(most.max(1) as u64)])
                .map(drop)
        })
    }

    fn take(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        // Most lists are empty most of the time, and looking doesn't wait for those who write.
        if self.store.see(|connection| find(connection, "list", list, now))?.is_none() {
            return Ok(Vec::new());
        }
        self.change(now, |connection| {
            let Some((id, _)) = find(connection, "list", list, now)? else { return Ok(Vec::new()) };
            let texts = texts_of(connection, id)?;
            connection.prepare_cached("DELETE FROM shared_records WHERE id = ?1")?.execute([id])?;
            Ok(texts)
        })
    }

    fn list(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        self.store.see(|connection| match find(connection, "list", list, now)? {
            Some((id, _)) => texts_of(connection, id),
            None => Ok(Vec::new()),
        })
    }

    fn put(&self, name: RecordName<'_>, text: &str, ttl: Duration, now: Millis) -> Result<(), StoreError> {
        self.change(now, |connection| write(connection, "text", name, text, expiry(ttl, now), now).map(drop))
    }

    fn get(&self, name: RecordName<'_>, now: Millis) -> Result<Option<String>, StoreError> {
        let found = self.store.see(|connection| find(connection, "text", name, now))?;
        Ok(found.map(|(_, text)| text))
    }

    fn remove(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.delete("text", name)
    }

    fn scan(
        &self,
        group: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        self.store.see(|connection| {
            // Both conditions are answered by the index. `after` may come before the prefix.
            let mut select = connection.prepare_cached(
                "SELECT name FROM shared_records WHERE kind = 'text' AND record_group = ?1 AND name >= ?2
                 AND (?3 IS NULL OR name > ?3) AND expires_ms > ?4 ORDER BY name",
            )?;
            let from = after.filter(|after| *after > prefix).unwrap_or(prefix);
            let mut rows = select.query(params![group, from, after, now.0])?;
            let mut names = Vec::new();
            while names.len() < limit
                && let Some(row) = rows.next()?
            {
                let name: String = row.get(0)?;
                if !name.starts_with(prefix) {
                    break;
                }
                names.push(name);
            }
            Ok(names)
        })
    }

    fn publish(&self, text: &str) -> Result<(), StoreError> {
        self.store.change(|connection| {
            connection.prepare_cached("INSERT INTO shared_events(text) VALUES(?1)")?.execute([text])?;
            let dropped = connection.last_insert_rowid() - signed(EVENTS_KEPT as u64);
            connection.prepare_cached("DELETE FROM shared_events WHERE id <= ?1")?.execute([dropped])
        })?;
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.is_published.notify_all();
        Ok(())
    }

    fn follow(
        &self,
        after: Option<EventCursor>,
        most: usize,
        wait: Duration,
    ) -> Result<(EventCursor, Vec<String>), StoreError> {
        let cursor = |id: i64| EventCursor { major: u64::try_from(id).unwrap_or(0), minor: 0 };
        let Some(after) = after else {
            let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'shared_events'";
            let latest = self.store.see(|connection| connection.query_row(sql, [], |row| row.get(0)))?;
            return Ok((cursor(latest), Vec::new()));
        };
        let before = *self.published.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = self.events_after(signed(after.major), most)?;
        if events.is_empty() && !wait.is_zero() {
            let published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.is_published.wait_timeout_while(published, wait, |now| *now == before);
            drop(waited);
            events = self.events_after(signed(after.major), most)?;
        }
        let last = events.last().map_or(after, |(id, _)| cursor(*id));
        Ok((last, events.into_iter().map(|(_, text)| text).collect()))
    }
}
