use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deloop_types::Millis;
use redis::Cmd;

use super::keys::RedisKeys;
use super::link::RedisLink;
use super::record_scripts::{ADD, CLAIM, GET, PUBLISH, PUSH, PUT, REMOVE, SCAN, TAKE};
use super::scripts::eval;
use super::unique::UniqueTexts;
use super::{RedisStore, millis};
use crate::StoreError;
use crate::records::{AddedOnce, Addition, EVENTS_KEPT, EventCursor, MARKS_KEPT, RecordName, SharedRecords};

/// How long the log of events is kept after the last one.
const LOG_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the texts of a list that was taken are kept, in milliseconds, in case the answer got lost.
const TAKEN_TTL: u64 = 600_000;
/// How many lists are remembered whose texts may have been taken without an answer.
const LOST_TAKES: usize = 10_000;
/// How often a thread that waits for events looks for them.
const POLL: Duration = Duration::from_millis(50);

/// Holds shared records in Redis, for many servers.
///
/// All records of a group share a hash tag, and so a slot of a Redis Cluster; the log of events has one of its own. Every
/// operation is one command. Every key has a time to live.
pub struct RedisRecords {
    link: Arc<RedisLink>,
    keys: RedisKeys,
    unique: Arc<UniqueTexts>,
    deadline: Duration,
    /// Where the texts of a list are if the answer to the command that took them got lost.
    lost_takes: Arc<Mutex<HashMap<String, String>>>,
}

impl RedisStore {
    /// Returns the records that all stores with the same prefix share, over the connections of this one.
    #[must_use]
    pub fn records(&self) -> RedisRecords {
        RedisRecords {
            link: Arc::clone(&self.link),
            keys: RedisKeys::new(&self.options.prefix),
            unique: Arc::clone(&self.unique),
            deadline: self.deadline,
            lost_takes: Arc::clone(&self.lost_takes),
        }
    }
}

impl RedisRecords {
    fn run<T: redis::FromRedisValue>(&self, command: Cmd) -> Result<T, StoreError> {
        self.link.run(command, Instant::now() + self.deadline)
    }

    /// Returns how long it must be remembered that a command ran, in milliseconds: until it is no longer sent again.
    fn resent(&self) -> u64 {
        millis(self.deadline * 2) + 5000
    }

    fn add_command(&self, addition: &Addition<'_>) -> Cmd {
        let table = self.keys.record('a', addition.table);
        let (mark, marked) = match addition.mark {
            Some(mark) => (format!("{table}:m:{mark}"), millis(addition.ttl.min(MARKS_KEPT))),
            None => (format!("{table}:u:{}", self.unique.next()), self.resent()),
        };
        let mut command = eval(ADD, &[table, mark]);
        command.arg(self.unique.next()).arg(marked).arg(millis(addition.ttl));
        for (field, amount) in addition.amounts {
            command.arg(field).arg(amount);
        }
        command
    }

    fn lost_takes(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.lost_takes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text_command(&self, script: &str, name: RecordName<'_>) -> Cmd {
        let mut command = eval(script, &self.keys.texts(name.group));
        command.arg(name.name);
        command
    }

    fn events_after(
        &self,
        after: EventCursor,
        most: usize,
    ) -> Result<Vec<(EventCursor, String)>, StoreError> {
        let next = match after.minor.checked_add(1) {
            Some(minor) => EventCursor { minor, ..after },
            None => EventCursor { major: after.major.saturating_add(1), minor: 0 },
        };
        let mut read = redis::cmd("XRANGE");
        read.arg(self.keys.events()).arg(next.to_string()).arg("+").arg("COUNT").arg(most);
        self.read_events(read)
    }

    fn read_events(&self, command: Cmd) -> Result<Vec<(EventCursor, String)>, StoreError> {
        let events: Vec<(String, Vec<Vec<u8>>)> = self.run(command)?;
        let event = |(id, mut fields): (String, Vec<Vec<u8>>)| {
            Ok((id.parse()?, text(fields.pop().unwrap_or_default())))
        };
        events.into_iter().map(event).collect()
    }
}

fn added(answer: Vec<i64>) -> AddedOnce {
    let mut answer = answer.into_iter();
    AddedOnce { is_new: answer.next() == Some(1), totals: answer.collect() }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn texts(all: Vec<Vec<u8>>) -> Vec<String> {
    all.into_iter().map(text).collect()
}

impl SharedRecords for RedisRecords {
    fn claim(&self, name: RecordName<'_>, ttl: Duration, _now: Millis) -> Result<bool, StoreError> {
        let mut command = eval(CLAIM, &[self.keys.record('c', name)]);
        command.arg(self.unique.next()).arg(millis(ttl));
        self.run(command)
    }

    fn release(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(self.keys.record('c', name));
        self.run(delete)
    }

    fn add(
        &self,
        table: RecordName<'_>,
        amounts: &[(&str, i64)],
        ttl: Duration,
        _now: Millis,
    ) -> Result<Vec<i64>, StoreError> {
        let answer = self.run(self.add_command(&Addition { table, mark: None, amounts, ttl }))?;
        Ok(added(answer).totals)
    }

    fn add_once(
        &self,
        table: RecordName<'_>,
        mark: &str,
        amounts: &[(&str, i64)],
        ttl: Duration,
        _now: Millis,
    ) -> Result<AddedOnce, StoreError> {
        self.run(self.add_command(&Addition { table, mark: Some(mark), amounts, ttl })).map(added)
    }

    fn add_many(&self, additions: &[Addition<'_>], _now: Millis) -> Vec<Result<AddedOnce, StoreError>> {
        let commands = additions.iter().map(|addition| self.add_command(addition)).collect();
        let answers = self.link.run_all(commands, Instant::now() + self.deadline);
        answers.into_iter().map(|answer| answer.map(added)).collect()
    }

    fn totals(&self, table: RecordName<'_>, _now: Millis) -> Result<Vec<(String, i64)>, StoreError> {
        let mut read = redis::cmd("HGETALL");
        read.arg(self.keys.record('a', table));
        let fields: Vec<(Vec<u8>, i64)> = self.run(read)?;
        let mut totals: Vec<_> = fields.into_iter().map(|(field, total)| (text(field), total)).collect();
        totals.sort();
        Ok(totals)
    }

    fn forget(&self, table: RecordName<'_>) -> Result<(), StoreError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(self.keys.record('a', table));
        self.run(delete)
    }

    fn push(
        &self,
        list: RecordName<'_>,
        text: &str,
        most: usize,
        ttl: Duration,
        _now: Millis,
    ) -> Result<(), StoreError> {
        let list = self.keys.record('l', list);
        let mark = format!("{list}:u:{}", self.unique.next());
        let mut command = eval(PUSH, &[list, mark]);
        command.arg(self.resent()).arg(text).arg(most.clamp(1, 1 << 30)).arg(millis(ttl));
        self.run(command)
    }

    fn take(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        self.take_many(&[list], now).pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    fn take_many(&self, lists: &[RecordName<'_>], _now: Millis) -> Vec<Result<Vec<String>, StoreError>> {
        let takes: Vec<[String; 2]> = lists
            .iter()
            .map(|list| {
                let list = self.keys.record('l', *list);
                let lost = self.lost_takes().remove(&list);
                let taken = lost.unwrap_or_else(|| format!("{list}:u:{}", self.unique.next()));
                [list, taken]
            })
            .collect();
        let command = |keys: &[String; 2]| {
            let mut command = eval(TAKE, keys);
            command.arg(TAKEN_TTL);
            command
        };
        let answers = self.link.run_all(takes.iter().map(command).collect(), Instant::now() + self.deadline);
        let mut lost = self.lost_takes();
        for ([list, taken], answer) in takes.into_iter().zip(&answers) {
            if answer.is_err() && lost.len() < LOST_TAKES {
                lost.insert(list, taken);
            }
        }
        answers.into_iter().map(|answer| answer.map(texts)).collect()
    }

    fn list(&self, list: RecordName<'_>, _now: Millis) -> Result<Vec<String>, StoreError> {
        let mut read = redis::cmd("LRANGE");
        read.arg(self.keys.record('l', list)).arg(0).arg(-1);
        self.run(read).map(texts)
    }

    fn put(&self, name: RecordName<'_>, text: &str, ttl: Duration, _now: Millis) -> Result<(), StoreError> {
        let mut command = self.text_command(PUT, name);
        command.arg(text).arg(millis(ttl));
        self.run(command)
    }

    fn get(&self, name: RecordName<'_>, _now: Millis) -> Result<Option<String>, StoreError> {
        let found: Option<Vec<u8>> = self.run(self.text_command(GET, name))?;
        Ok(found.map(text))
    }

    fn remove(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.run(self.text_command(REMOVE, name))
    }

    fn scan(
        &self,
        group: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        _now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let from = match after {
            Some(after) if after >= prefix => format!("({after}"),
            _ => format!("[{prefix}"),
        };
        let mut command = eval(SCAN, &self.keys.texts(group));
        command.arg(prefix).arg(from).arg(limit);
        self.run(command).map(texts)
    }

    fn publish(&self, text: &str) -> Result<(), StoreError> {
        let log = self.keys.events();
        let mark = format!("{log}:u:{}", self.unique.next());
        let mut command = eval(PUBLISH, &[log, mark]);
        command.arg(self.resent()).arg(text).arg(EVENTS_KEPT).arg(millis(LOG_TTL));
        self.run(command)
    }

    fn follow(
        &self,
        after: Option<EventCursor>,
        most: usize,
        wait: Duration,
    ) -> Result<(EventCursor, Vec<String>), StoreError> {
        let Some(after) = after else {
            let mut latest = redis::cmd("XREVRANGE");
            latest.arg(self.keys.events()).arg("+").arg("-").arg("COUNT").arg(1);
            let latest = self.read_events(latest)?;
            return Ok((latest.first().map_or(EventCursor::START, |(at, _)| *at), Vec::new()));
        };
        let start = Instant::now();
        loop {
            let events = self.events_after(after, most)?;
            let left = wait.saturating_sub(start.elapsed());
            if !events.is_empty() || left.is_zero() {
                let last = events.last().map_or(after, |(at, _)| *at);
                return Ok((last, events.into_iter().map(|(_, text)| text).collect()));
            }
            std::thread::sleep(left.min(POLL));
        }
    }
}
