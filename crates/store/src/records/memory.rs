use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deloop_types::Millis;

use super::{AddedOnce, EVENTS_KEPT, EventCursor, MARKS_KEPT, RecordName, SharedRecords, expiry};
use crate::StoreError;

/// Holds shared records in this process. For tests: it doesn't limit their number.
#[derive(Default)]
pub struct MemoryRecords {
    records: Mutex<RecordMaps>,
    published: Condvar,
}

type Key = (String, String);

#[derive(Default)]
struct RecordMaps {
    claims: Expiring<()>,
    tables: Expiring<BTreeMap<String, i64>>,
    marks: BTreeMap<(Key, String), i64>,
    lists: Expiring<VecDeque<String>>,
    texts: Expiring<String>,
    events: VecDeque<String>,
    events_dropped: u64,
}

/// Records by name, each with the time when it is dropped.
struct Expiring<V>(BTreeMap<Key, (i64, V)>);

impl<V> Default for Expiring<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> Expiring<V> {
    fn get(&self, name: RecordName<'_>, now: Millis) -> Option<&V> {
        self.0.get(&key(name)).filter(|(until, _)| *until > now.0).map(|(_, value)| value)
    }

    fn remove(&mut self, name: RecordName<'_>, now: Millis) -> Option<V> {
        self.0.remove(&key(name)).filter(|(until, _)| *until > now.0).map(|(_, value)| value)
    }

    fn put(&mut self, name: RecordName<'_>, value: V, ttl: Duration, now: Millis) {
        self.0.insert(key(name), (expiry(ttl, now), value));
    }
}

fn key(name: RecordName<'_>) -> Key {
    (name.group.to_owned(), name.name.to_owned())
}

impl MemoryRecords {
    fn lock(&self) -> MutexGuard<'_, RecordMaps> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordMaps {
    fn add(
        &mut self,
        table: RecordName<'_>,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Vec<i64> {
        let mut totals = self.tables.remove(table, now).unwrap_or_default();
        for (field, amount) in amounts {
            let total = totals.entry((*field).to_owned()).or_default();
            *total = total.saturating_add(*amount);
        }
        let found = amounts.iter().map(|(field, _)| totals[*field]).collect();
        self.tables.put(table, totals, ttl, now);
        found
    }

    fn latest_event(&self) -> EventCursor {
        EventCursor { major: self.events_dropped + self.events.len() as u64, minor: 0 }
    }
}

impl SharedRecords for MemoryRecords {
    fn claim(&self, name: RecordName<'_>, ttl: Duration, now: Millis) -> Result<bool, StoreError> {
        let mut records = self.lock();
        let is_free = records.claims.get(name, now).is_none();
        if is_free {
            records.claims.put(name, (), ttl, now);
        }
        Ok(is_free)
    }

    fn release(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.lock().claims.0.remove(&key(name));
        Ok(())
    }

    fn add(
        &self,
        table: RecordName<'_>,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<Vec<i64>, StoreError> {
        Ok(self.lock().add(table, amounts, ttl, now))
    }

    fn add_once(
        &self,
        table: RecordName<'_>,
        mark: &str,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<AddedOnce, StoreError> {
        let mut records = self.lock();
        let mark = (key(table), mark.to_owned());
        let is_new = records.marks.get(&mark).is_none_or(|until| *until <= now.0);
        if is_new {
            records.marks.insert(mark, expiry(ttl.min(MARKS_KEPT), now));
            return Ok(AddedOnce { is_new, totals: records.add(table, amounts, ttl, now) });
        }
        let totals = records.tables.get(table, now);
        let total = |field: &str| totals.and_then(|totals| totals.get(field).copied()).unwrap_or(0);
        Ok(AddedOnce { is_new, totals: amounts.iter().map(|(field, _)| total(field)).collect() })
    }

    fn totals(&self, table: RecordName<'_>, now: Millis) -> Result<Vec<(String, i64)>, StoreError> {
        Ok(self.lock().tables.get(table, now).cloned().unwrap_or_default().into_iter().collect())
    }

    fn forget(&self, table: RecordName<'_>) -> Result<(), StoreError> {
        self.lock().tables.0.remove(&key(table));
        Ok(())
    }

    fn push(
        &self,
        list: RecordName<'_>,
        text: &str,
        most: usize,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut records = self.lock();
        let mut texts = records.lists.remove(list, now).unwrap_or_default();
        texts.push_back(text.to_owned());
        texts.drain(..texts.len().saturating_sub(most.max(1)));
        records.lists.put(list, texts, ttl, now);
        Ok(())
    }

    fn take(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        Ok(self.lock().lists.remove(list, now).unwrap_or_default().into())
    }

    fn list(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        Ok(self.lock().lists.get(list, now).cloned().unwrap_or_default().into())
    }

    fn put(&self, name: RecordName<'_>, text: &str, ttl: Duration, now: Millis) -> Result<(), StoreError> {
        self.lock().texts.put(name, text.to_owned(), ttl, now);
        Ok(())
    }

    fn get(&self, name: RecordName<'_>, now: Millis) -> Result<Option<String>, StoreError> {
        Ok(self.lock().texts.get(name, now).cloned())
    }

    fn remove(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.lock().texts.0.remove(&key(name));
        Ok(())
    }

    fn scan(
        &self,
        group: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let records = self.lock();
        let texts = records.texts.0.range((group.to_owned(), prefix.to_owned())..);
        let names = texts
            .take_while(|((at, name), _)| at == group && name.starts_with(prefix))
            .filter(|((_, name), (until, _))| {
                *until > now.0 && after.is_none_or(|after| name.as_str() > after)
            })
            .map(|((_, name), _)| name.clone());
        Ok(names.take(limit).collect())
    }

    fn publish(&self, text: &str) -> Result<(), StoreError> {
        let mut records = self.lock();
        records.events.push_back(text.to_owned());
        if records.events.len() > EVENTS_KEPT {
            records.events.pop_front();
            records.events_dropped += 1;
        }
        self.published.notify_all();
        Ok(())
    }

    fn follow(
        &self,
        after: Option<EventCursor>,
        most: usize,
        wait: Duration,
    ) -> Result<(EventCursor, Vec<String>), StoreError> {
        let records = self.lock();
        let Some(after) = after else { return Ok((records.latest_event(), Vec::new())) };
        let nothing_new = |records: &mut RecordMaps| records.latest_event() <= after;
        let waited = self.published.wait_timeout_while(records, wait, nothing_new);
        let records = waited.unwrap_or_else(PoisonError::into_inner).0;
        let skipped = after.major.saturating_sub(records.events_dropped);
        let events = records.events.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)).take(most);
        let events: Vec<String> = events.cloned().collect();
        if events.is_empty() {
            return Ok((after, events));
        }
        let major = after.major.max(records.events_dropped) + events.len() as u64;
        Ok((EventCursor { major, minor: 0 }, events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::check_records;

    #[test]
    fn keeps_the_contract_of_records() {
        check_records(&MemoryRecords::default(), &|_| ());
    }
}
