//! The connections to Redis. Threads of their own hold them, so that a caller never waits longer than it wants, whatever a
//! connection is waiting for: an answer, a host that drops packets, or the lookup of a name.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use deloop_detect::Swarm;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value};

use super::address::RedisAddress;
use super::nodes::{Answer, KnownTopology, RedisNodes, left};
use crate::{RedisOptions, StoreError};

/// Codes of errors that pass: the server is full, its disk is, or a script of somebody else keeps it busy.
const PASSING: [&str; 4] = ["OOM", "MISCONF", "BUSY", "NOREPLICAS"];

/// The code with which `swarm.lua` refuses what a later release wrote.
const LATER: &str = "LATER";

/// Sends commands to a server or a cluster.
pub(super) struct RedisLink {
    requests: Sender<RedisRequest>,
    server: String,
}

struct RedisRequest {
    commands: Vec<Cmd>,
    /// Whether every node is asked, not the one that has the keys.
    everywhere: bool,
    until: Instant,
    answer: Sender<Vec<Answer>>,
}

impl RedisLink {
    /// Starts the threads. Each connects when it has a command to send.
    pub(super) fn open(url: &str, options: &RedisOptions) -> Result<Self, StoreError> {
        let address = Arc::new(RedisAddress::parse(url, options)?);
        let server = address.shown();
        let known = Arc::new(Mutex::new(KnownTopology::default()));
        let (requests, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..options.connections.max(1) {
            let nodes = RedisNodes {
                address: Arc::clone(&address),
                known: Arc::clone(&known),
                wait_replicas: options.wait_replicas,
                connections: HashMap::new(),
                learned: 0,
            };
            let waiting = Arc::clone(&waiting);
            let thread = std::thread::Builder::new().name("deloop-redis".to_owned());
            thread.spawn(move || serve(nodes, &waiting)).map_err(|e| StoreError::unavailable(&server, e))?;
        }
        Ok(Self { requests, server })
    }

    /// Runs a command. Every command must be one that can be sent twice: if a connection breaks, the server may have
    /// carried out the command before it is sent again.
    pub(super) fn run<T: FromRedisValue>(&self, command: Cmd, until: Instant) -> Result<T, StoreError> {
        self.run_all(vec![command], until).pop().unwrap_or_else(|| Err(self.late()))
    }

    /// Runs commands, all of them in one round trip per node, and returns an answer for each. In what order the nodes of
    /// a cluster carry them out isn't known.
    pub(super) fn run_all<T: FromRedisValue>(
        &self,
        commands: Vec<Cmd>,
        until: Instant,
    ) -> Vec<Result<T, StoreError>> {
        let count = commands.len();
        if count == 0 {
            return Vec::new();
        }
        let (answer, answered) = channel();
        let answers = self.requests.send(RedisRequest { commands, everywhere: false, until, answer }).ok();
        let answers = answers.and_then(|()| answered.recv_timeout(left(until).unwrap_or_default()).ok());
        let Some(answers) = answers else { return (0..count).map(|_| Err(self.late())).collect() };
        let read =
            |value: Value| T::from_redis_value(value).map_err(|e| StoreError::refused(&self.server, e));
        answers.into_iter().map(|answer| answer.map_err(|error| self.failed(error)).and_then(read)).collect()
    }

    /// Asks every node, and returns their answers.
    pub(super) fn ask_all(&self, command: Cmd, until: Instant) -> Result<Vec<Value>, StoreError> {
        let (answer, answered) = channel();
        let request = RedisRequest { commands: vec![command], everywhere: true, until, answer };
        let answers = self.requests.send(request).ok();
        let answers = answers.and_then(|()| answered.recv_timeout(left(until).unwrap_or_default()).ok());
        let answers = answers.ok_or_else(|| self.late())?;
        answers.into_iter().map(|answer| answer.map_err(|error| self.failed(error))).collect()
    }

    fn late(&self) -> StoreError {
        StoreError::unavailable(&self.server, "no answer within the deadline")
    }

    fn failed(&self, error: RedisError) -> StoreError {
        if error.code() == Some(LATER) {
            let found = error.detail().and_then(|version| version.trim().parse().ok()).unwrap_or(u32::MAX);
            return StoreError::Later { found, known: Swarm::VERSION };
        }
        let refused = match error.kind() {
            ErrorKind::Server(kind) => !matches!(
                kind,
                ServerErrorKind::BusyLoading
                    | ServerErrorKind::Moved
                    | ServerErrorKind::Ask
                    | ServerErrorKind::TryAgain
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::ReadOnly
            ),
            ErrorKind::Io => false,
            _ => true,
        };
        let passes = error.code().is_some_and(|code| PASSING.contains(&code))
            || error.detail().is_some_and(|detail| detail.contains("max number of clients"));
        if refused && !passes {
            return StoreError::refused(&self.server, error);
        }
        StoreError::unavailable(&self.server, error)
    }
}

fn serve(mut nodes: RedisNodes, waiting: &Mutex<Receiver<RedisRequest>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        let answers = match request.everywhere {
            true => nodes.run_everywhere(&request.commands, request.until),
            false => nodes.run(&request.commands, request.until),
        };
        let _ = request.answer.send(answers);
    }
}
