use deloop_detect::{Swarm, SwarmCall, SwarmCount, SwarmParts, SwarmWorker};

use super::scripts::{SESSION_VERSION, TALLY, eval};
use super::{RedisStore, millis};
use crate::StoreError;
use crate::stored_swarm::check_swarm_version;

/// How long a call that was tallied is recognized when it is tallied again, in milliseconds.
const SEEN: u64 = 60_000;

/// The calls of one turn, to be added to a swarm.
#[derive(Clone, Copy)]
pub struct SwarmTurn<'a> {
    /// The swarm.
    pub swarm: &'a str,
    /// Who made the calls.
    pub worker: SwarmWorker<'a>,
    /// The calls.
    pub calls: &'a [SwarmCall<'a>],
    /// The version of the worker's session, if it was read. It costs a round trip otherwise.
    pub version: Option<&'a str>,
    /// How many turns of the session were tallied since it had this version.
    pub turn: usize,
}

impl RedisStore {
    /// Adds the calls of turns to their swarms, in one round trip, and returns the counts of each turn. A call with an id
    /// that is tallied again within a minute, because its step was sent again, counts once.
    pub fn tally_many(&self, turns: &[SwarmTurn<'_>]) -> Vec<Result<Vec<SwarmCount>, StoreError>> {
        let until = self.until();
        let is_known = |turn: &SwarmTurn<'_>| turn.version.is_some_and(|version| !version.is_empty());
        let unlisted: Vec<&str> = turns
            .iter()
            .map(|turn| turn.swarm)
            .filter(|swarm| !self.listed.is_recent(&self.keys.first('w', swarm)))
            .collect();
        let mut commands: Vec<_> = self.list_command('w', &unlisted).into_iter().collect();
        let lists = commands.len();
        for turn in turns.iter().filter(|turn| !is_known(turn)) {
            let session = turn.worker.session;
            commands.push(eval(SESSION_VERSION, &[self.keys.session(session), self.keys.deleted(session)]));
        }
        let mut read = self.link.run_all::<redis::Value>(commands, until).into_iter();
        if read.by_ref().take(lists).all(|listed| listed.is_ok()) {
            self.listed.note(unlisted.iter().map(|swarm| self.keys.first('w', swarm)));
        }
        let mut commands = Vec::with_capacity(turns.len());
        let mut failed: Vec<Option<StoreError>> = Vec::with_capacity(turns.len());
        for turn in turns {
            let version = match turn.version.filter(|_| is_known(turn)) {
                Some(version) => Ok(version.to_owned()),
                None => read.next().map_or_else(
                    || Ok(String::new()),
                    |value| redis::from_redis_value(value?).map_err(StoreError::decode),
                ),
            };
            match version.and_then(|version| self.tally_command(turn, &version)) {
                Ok(command) => {
                    commands.push(command);
                    failed.push(None);
                }
                Err(error) => failed.push(Some(error)),
            }
        }
        let mut counted = self.link.run_all::<Vec<u64>>(commands, until).into_iter();
        let outcome = |failed: Option<StoreError>| match failed {
            Some(error) => Err(error),
            None => counted.next().unwrap_or_else(|| Ok(Vec::new())).map(|counts| counts_of(&counts)),
        };
        failed.into_iter().map(outcome).collect()
    }

    fn tally_command(&self, turn: &SwarmTurn<'_>, version: &str) -> Result<redis::Cmd, StoreError> {
        let mut command = self.tally_with(turn.swarm, turn.worker, "calls");
        for (at, call) in turn.calls.iter().enumerate() {
            // A step that is sent again because its update failed finds the same version. Ids alone don't identify
            // calls: some agents number the calls of each turn anew.
            let mark = match &call.call.id {
                Some(id) => {
                    let id = deloop_detect::short_hash(id.as_bytes());
                    let worker = turn.worker.id();
                    format!("{worker:016x}{version}:{}:{at}:{id:016x}{:016x}", turn.turn, call.signature)
                }
                None => self.unique.next(),
            };
            let short = serde_json::to_string(&call.short()).map_err(StoreError::encode)?;
            command.arg(mark).arg(format!("{:016x}", call.target)).arg(format!("{:016x}", call.signature));
            command.arg(short);
        }
        Ok(command)
    }

    pub(super) fn tally_with(&self, swarm: &str, worker: SwarmWorker<'_>, task: &str) -> redis::Cmd {
        let mut command = eval(TALLY, &self.keys.swarm(swarm));
        command.arg(task).arg(millis(self.options.swarm_ttl)).arg(self.seen());
        command.arg(Swarm::LEAST).arg(Swarm::PER_WORKER).arg(Swarm::MOST_WORKERS).arg(Swarm::LISTED);
        command.arg(format!("{:016x}", worker.id())).arg(worker.name()).arg(Swarm::VERSION);
        command
    }

    pub(super) fn seen(&self) -> u64 {
        millis(self.options.swarm_ttl).min(SEEN)
    }
}

fn counts_of(counts: &[u64]) -> Vec<SwarmCount> {
    let count = |count: &[u64]| match *count {
        [calls, workers, in_vain, in_vain_workers] => SwarmCount { calls, workers, in_vain, in_vain_workers },
        _ => SwarmCount::default(),
    };
    counts.chunks(4).map(count).collect()
}

/// The fields of a swarm by name and value, its calls, its calls in vain, and the fingerprints that are shown.
pub(super) type StoredParts = (Vec<String>, Vec<String>, Vec<String>, Vec<String>);

/// Assembles a swarm from the answer of `READ_SWARM`; `None` when there is no swarm.
///
/// # Errors
/// When a later release wrote it, or its parts don't fit.
pub(super) fn assemble((fields, calls, in_vain, shown): StoredParts) -> Result<Option<Swarm>, StoreError> {
    if fields.is_empty() {
        return Ok(None);
    }
    if let Some(version) = fields.chunks_exact(2).find(|field| field[0] == "version") {
        check_swarm_version(version[1].parse().unwrap_or(u32::MAX))?;
    }
    let mut parts = SwarmParts {
        calls: calls.iter().filter_map(|call| fingerprint_and_slot(call)).collect(),
        in_vain: in_vain.iter().filter_map(|call| fingerprint_and_slot(call)).collect(),
        ..SwarmParts::default()
    };
    for field in fields.chunks_exact(2) {
        let Some((kind, name)) = field[0].split_at_checked(1) else { continue };
        let worker = field[1].split_at_checked(16);
        if let ("s", Ok(slot), Some((id, worker))) = (kind, name.parse::<usize>(), worker)
            && slot < Swarm::LEAST.max(Swarm::PER_WORKER * Swarm::MOST_WORKERS) * 2
        {
            parts.workers.resize(parts.workers.len().max(slot + 1), (0, String::new()));
            parts.workers[slot] = (u64::from_str_radix(id, 16).unwrap_or(0), worker.to_owned());
        }
    }
    for about in &shown {
        let name = format!("x{about}");
        let short = fields.chunks_exact(2).find(|field| field[0] == name);
        let short = short.and_then(|field| serde_json::from_str(&field[1]).ok());
        parts.listed.extend(u64::from_str_radix(about, 16).ok().zip(short));
    }
    let swarm = Swarm::from_parts(parts);
    swarm.map(Some).ok_or_else(|| StoreError::decode("the calls of a swarm don't fit its workers"))
}

fn fingerprint_and_slot(call: &str) -> Option<(u64, u32)> {
    let (about, slot) = call.split_at_checked(16)?;
    Some((u64::from_str_radix(about, 16).ok()?, slot.parse().ok()?))
}
