//! The connections to a Redis server. Threads of their own hold them, so that a caller never waits longer than it wants,
//! whatever a connection is waiting for: an answer, a host that drops packets, or the lookup of a name.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::{
    Client, Cmd, Connection, ConnectionLike, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value,
};

use crate::StoreError;

/// Codes of errors that pass: the server is full, its disk is, or a script of somebody else keeps it busy.
const PASSING: [&str; 4] = ["OOM", "MISCONF", "BUSY", "NOREPLICAS"];

/// Sends commands to a server.
pub(super) struct RedisLink {
    requests: Sender<RedisRequest>,
    server: String,
}

struct RedisRequest {
    command: Cmd,
    until: Instant,
    answer: Sender<Result<Value, RedisError>>,
}

impl RedisLink {
    /// Starts the threads. Each connects when it has a command to send.
    pub(super) fn open(url: &str, connections: usize) -> Result<Self, StoreError> {
        let client = Client::open(url).map_err(StoreError::address)?;
        let server = client.get_connection_info().addr().to_string();
        let (requests, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..connections.max(1) {
            let (client, waiting) = (client.clone(), Arc::clone(&waiting));
            let thread = std::thread::Builder::new().name("deloop-redis".to_owned());
            thread
                .spawn(move || serve(&client, &waiting))
                .map_err(|e| StoreError::unavailable(&server, e))?;
        }
        Ok(Self { requests, server })
    }

    /// Runs a command. Every command must be one that can be sent twice: if a connection breaks, the server may have
    /// carried out the command before it is sent again.
    pub(super) fn run<T: FromRedisValue>(&self, command: Cmd, until: Instant) -> Result<T, StoreError> {
        let (answer, answered) = channel();
        let late = || StoreError::unavailable(&self.server, "no answer within the deadline");
        self.requests.send(RedisRequest { command, until, answer }).map_err(|_| late())?;
        let value = answered.recv_timeout(left(until).unwrap_or_default()).map_err(|_| late())?;
        let value = value.map_err(|error| self.failed(error))?;
        T::from_redis_value(value).map_err(|error| StoreError::refused(&self.server, error))
    }

    fn failed(&self, error: RedisError) -> StoreError {
        let refused = match error.kind() {
            ErrorKind::Server(kind) => !matches!(
                kind,
                ServerErrorKind::BusyLoading
                    | ServerErrorKind::TryAgain
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::ReadOnly
            ),
            ErrorKind::Io => false,
            _ => true,
        };
        if refused && !error.code().is_some_and(|code| PASSING.contains(&code)) {
            return StoreError::refused(&self.server, error);
        }
        StoreError::unavailable(&self.server, error)
    }
}

/// Returns the time left, if any.
fn left(until: Instant) -> Option<Duration> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

fn serve(client: &Client, waiting: &Mutex<Receiver<RedisRequest>>) {
    let mut connection = None;
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        let reused = connection.is_some();
        let mut answer = attempt(client, &mut connection, &request);
        if let Err(error) = &answer
            && reused
            && connection.is_none()
            && !error.is_timeout()
        {
            // The server was restarted since the connection was last used.
            answer = attempt(client, &mut connection, &request);
        }
        let _ = request.answer.send(answer);
    }
}

/// Sends a command, over a new connection if there is none. A connection that failed is dropped: a late answer would be
/// taken for the answer to the next command.
fn attempt(
    client: &Client,
    connection: &mut Option<Connection>,
    request: &RedisRequest,
) -> Result<Value, RedisError> {
    let left = || left(request.until).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::TimedOut));
    let mut used = match connection.take() {
        Some(used) => used,
        None => client.get_connection_with_timeout(left()?)?,
    };
    let time = Some(left()?);
    used.set_read_timeout(time)?;
    used.set_write_timeout(time)?;
    let answer = used.req_command(&request.command).and_then(Value::extract_error);
    let works = |error: &RedisError| matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    if answer.as_ref().err().is_none_or(works) {
        *connection = Some(used);
    }
    answer
}
