//! The connections of one thread to the nodes, and which node gets which command.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, ErrorKind, RedisError, ServerErrorKind, Value};

use super::address::RedisAddress;
use super::slots::{NodeAddress, SlotMap, slot_of};

/// How often a command is sent at most.
const ATTEMPTS: u32 = 4;

pub(super) type Answer = Result<Value, RedisError>;

/// What all threads know about the servers.
#[derive(Default)]
pub(super) struct KnownTopology {
    current: Option<Arc<Topology>>,
    /// The nodes of the cluster when it was last seen.
    nodes: Vec<NodeAddress>,
    /// The node that failed last.
    suspect: Option<NodeAddress>,
}

enum Topology {
    Single(NodeAddress),
    Cluster(SlotMap),
}

pub(super) struct RedisNodes {
    pub(super) address: Arc<RedisAddress>,
    pub(super) known: Arc<Mutex<KnownTopology>>,
    pub(super) wait_replicas: u32,
    pub(super) connections: HashMap<NodeAddress, Connection>,
    pub(super) learned: usize,
}

/// Commands that were sent to a node and weren't answered yet.
struct SentCommands {
    node: NodeAddress,
    commands: Vec<usize>,
    connection: Connection,
    reused: bool,
    waits: bool,
}

/// Whether a command that failed is sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resend {
    No,
    Now,
    Later,
}

struct CommandOutcome {
    command: usize,
    answer: Answer,
    retry: Resend,
}

impl RedisNodes {
    /// Sends commands and returns their answers. Those for one node travel together, as one round trip.
    pub(super) fn run(&mut self, commands: &[Cmd], until: Instant) -> Vec<Answer> {
        let mut answers: Vec<Answer> = commands.iter().map(|_| Err(timed_out())).collect();
        let mut open: Vec<usize> = (0..commands.len()).collect();
        for attempt in 0..ATTEMPTS {
            let topology = match self.topology(until) {
                Ok(topology) => topology,
                Err(error) => {
                    open.iter().for_each(|at| answers[*at] = Err(error.clone()));
                    break;
                }
            };
            let mut wait = false;
            let mut again = Vec::new();
            for outcome in self.round(&topology, commands, &open, until) {
                if outcome.retry != Resend::No {
                    again.push(outcome.command);
                    wait |= outcome.retry == Resend::Later;
                }
                answers[outcome.command] = outcome.answer;
            }
            again.sort_unstable();
            open = again;
            let Some(left) = left(until).filter(|_| !open.is_empty()) else { break };
            if wait {
                std::thread::sleep(left.min(Duration::from_millis(10 << attempt)));
            }
        }
        answers
    }

    /// Sends commands to each node, and returns all answers.
    pub(super) fn run_everywhere(&mut self, commands: &[Cmd], until: Instant) -> Vec<Answer> {
        let nodes = match self.topology(until).as_deref() {
            Ok(Topology::Single(node)) => vec![node.clone()],
            Ok(Topology::Cluster(slots)) => slots.nodes(),
            Err(_) => return vec![Err(timed_out())],
        };
        let mut answers = Vec::new();
        for node in nodes {
            for command in commands {
                let answer = self.ask(&node, command, until);
                answers.push(answer);
            }
        }
        answers
    }

    /// Sends one command to this node.
    fn ask(&mut self, node: &NodeAddress, command: &Cmd, until: Instant) -> Answer {
        let mut connection = self.connect(node, until)?;
        connection.send_packed_command(&command.get_packed_command())?;
        let answer = receive_one(&mut connection, until);
        if answer.as_ref().err().is_none_or(is_answer) {
            self.connections.insert(node.clone(), connection);
        }
        answer
    }

    fn round(
        &mut self,
        topology: &Arc<Topology>,
        commands: &[Cmd],
        open: &[usize],
        until: Instant,
    ) -> Vec<CommandOutcome> {
        let mut outcomes = Vec::with_capacity(open.len());
        let mut groups: Vec<(Option<&NodeAddress>, Vec<usize>)> = Vec::new();
        for at in open {
            let node = match topology.as_ref() {
                Topology::Single(node) => Some(node),
                Topology::Cluster(slots) => slots.node(slot_of(&commands[*at])),
            };
            match groups.iter_mut().find(|(group, _)| *group == node) {
                Some((_, group)) => group.push(*at),
                None => groups.push((node, vec![*at])),
            }
        }
        let mut sent = Vec::with_capacity(groups.len());
        for (node, group) in groups {
            let Some(node) = node else {
                let none = RedisError::from(io::Error::other("no node of the cluster answers for this key"));
                self.fail(topology, &group, &none, false, &mut outcomes);
                continue;
            };
            let reused = self.connections.contains_key(node);
            match self.send(node, commands, &group, until) {
                Ok((connection, waits)) => {
                    sent.push(SentCommands {
                        node: node.clone(),
                        commands: group,
                        connection,
                        reused,
                        waits,
                    });
                }
                Err(error) => {
                    self.known().suspect = Some(node.clone());
                    self.fail(topology, &group, &error, reused, &mut outcomes);
                }
            }
        }
        for sent in sent {
            self.receive(topology, commands, sent, until, &mut outcomes);
        }
        outcomes
    }

    /// Notes that commands couldn't be sent or answered.
    fn fail(
        &self,
        topology: &Arc<Topology>,
        group: &[usize],
        error: &RedisError,
        reused: bool,
        outcomes: &mut Vec<CommandOutcome>,
    ) {
        let retry = self.retry(topology, error, reused);
        outcomes.extend(group.iter().map(|at| CommandOutcome {
            command: *at,
            answer: Err(error.clone()),
            retry,
        }));
    }

    fn send(
        &mut self,
        node: &NodeAddress,
        commands: &[Cmd],
        group: &[usize],
        until: Instant,
    ) -> Result<(Connection, bool), RedisError> {
        let mut connection = self.connect(node, until)?;
        let mut bytes = Vec::new();
        for at in group {
            commands[*at].write_packed_command(&mut bytes);
        }
        let waits = self.wait_replicas > 0 && group.iter().any(|at| is_write(&commands[*at]));
        if waits {
            let half = left(until).unwrap_or_default().as_millis() / 2;
            let half = u64::try_from(half).unwrap_or(u64::MAX).max(1);
            redis::cmd("WAIT").arg(self.wait_replicas).arg(half).write_packed_command(&mut bytes);
        }
        connection.send_packed_command(&bytes)?;
        Ok((connection, waits))
    }

    /// Takes the connection to a node, or makes one, and sets how long it may take.
    fn connect(&mut self, node: &NodeAddress, until: Instant) -> Result<Connection, RedisError> {
        let connection = match self.connections.remove(node) {
            Some(connection) => connection,
            None => {
                let time = left(until).ok_or_else(timed_out)?;
                self.address.client(node)?.get_connection_with_timeout(time)?
            }
        };
        let time = Some(left(until).ok_or_else(timed_out)?);
        connection.set_read_timeout(time)?;
        connection.set_write_timeout(time)?;
        Ok(connection)
    }

    /// Reads the answers. A connection that failed is dropped: a late answer would be taken for the answer to the next
    /// command.
    fn receive(
        &mut self,
        topology: &Arc<Topology>,
        commands: &[Cmd],
        sent: SentCommands,
        until: Instant,
        outcomes: &mut Vec<CommandOutcome>,
    ) {
        let SentCommands { node, commands: group, mut connection, reused, waits } = sent;
        let first = outcomes.len();
        for (n, at) in group.iter().enumerate() {
            let answer = receive_one(&mut connection, until);
            if let Err(error) = &answer
                && !is_answer(error)
            {
                self.known().suspect = Some(node);
                return self.fail(topology, &group[n..], error, reused, outcomes);
            }
            let retry = match &answer {
                Ok(_) => Resend::No,
                Err(error) => self.retry(topology, error, reused),
            };
            outcomes.push(CommandOutcome { command: *at, answer, retry });
        }
        if waits {
            let confirmed = receive_one(&mut connection, until);
            let enough = |n: i64| n >= i64::from(self.wait_replicas);
            if !matches!(confirmed, Ok(Value::Int(n)) if enough(n)) {
                let few = RedisError::from(io::Error::other("too few replicas confirmed the change"));
                for outcome in &mut outcomes[first..] {
                    if outcome.answer.is_ok() && is_write(&commands[outcome.command]) {
                        outcome.answer = Err(few.clone());
                    }
                }
            }
            if confirmed.as_ref().err().is_some_and(|error| !is_answer(error)) {
                return;
            }
        }
        let usable = |outcome: &CommandOutcome| outcome.answer.as_ref().err().is_none_or(|e| !is_stale(e));
        if outcomes[first..].iter().all(usable) {
            self.connections.insert(node, connection);
        }
        for outcome in &mut outcomes[first..] {
            if let Some(answer) = self.redirected(&commands[outcome.command], &outcome.answer, until) {
                (outcome.answer, outcome.retry) = (answer, Resend::No);
            }
        }
    }

    /// Asks the node that a slot is being moved to.
    fn redirected(&mut self, command: &Cmd, answer: &Answer, until: Instant) -> Option<Answer> {
        let error = answer.as_ref().err().filter(|e| e.kind() == ErrorKind::Server(ServerErrorKind::Ask))?;
        let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
        let node = (host.to_owned(), port.parse().ok()?);
        let mut ask = || {
            let mut connection = self.connect(&node, until)?;
            let mut bytes = redis::cmd("ASKING").get_packed_command();
            command.write_packed_command(&mut bytes);
            connection.send_packed_command(&bytes)?;
            receive_one(&mut connection, until)?;
            let answer = receive_one(&mut connection, until)?;
            self.connections.insert(node.clone(), connection);
            Ok(answer)
        };
        Some(ask())
    }

    fn retry(&self, topology: &Arc<Topology>, error: &RedisError, reused: bool) -> Resend {
        use ServerErrorKind::{ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
        let in_cluster = matches!(topology.as_ref(), Topology::Cluster(_));
        let retry = match error.kind() {
            ErrorKind::Server(Moved) => Resend::Now,
            ErrorKind::Server(TryAgain) if in_cluster => return Resend::Later,
            ErrorKind::Server(ClusterDown | MasterDown | ReadOnly) if in_cluster => Resend::Later,
            ErrorKind::Io if error.is_timeout() => Resend::No,
            ErrorKind::Io if reused => Resend::Now,
            ErrorKind::Io if in_cluster => Resend::Later,
            ErrorKind::Io if self.address.seeds().nth(1).is_some() => Resend::Now,
            ErrorKind::Io => Resend::No,
            _ => return Resend::No,
        };
        let mut known = self.known();
        if known.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, topology)) {
            known.current = None;
        }
        retry
    }

    fn known(&self) -> MutexGuard<'_, KnownTopology> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns which node answers for what; asks the nodes one after the other if that isn't known.
    fn topology(&mut self, until: Instant) -> Result<Arc<Topology>, RedisError> {
        let (mut nodes, suspect) = {
            let known = self.known();
            if let Some(current) = &known.current {
                return Ok(Arc::clone(current));
            }
            (known.nodes.clone(), known.suspect.clone())
        };
        // A node that hangs must not be the first one asked each time.
        self.learned += 1;
        let turn = self.learned % nodes.len().max(1);
        nodes.rotate_left(turn);
        let named: Vec<_> = self.address.seeds().filter(|seed| !nodes.contains(seed)).collect();
        nodes.extend(named);
        nodes.sort_by_key(|node| Some(node) == suspect.as_ref());
        let mut failed = timed_out();
        for (n, node) in nodes.iter().enumerate() {
            let Some(left) = left(until) else { break };
            let is_last = n + 1 == nodes.len();
            match self.learn(node, if is_last { until } else { until - left / 2 }) {
                Ok(topology) => {
                    let topology = Arc::new(topology);
                    let mut known = self.known();
                    if let Topology::Cluster(slots) = topology.as_ref() {
                        known.nodes = slots.nodes();
                    }
                    known.current = Some(Arc::clone(&topology));
                    return Ok(topology);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Asks a node whether it is part of a cluster, and of which.
    fn learn(&mut self, node: &NodeAddress, until: Instant) -> Result<Topology, RedisError> {
        let reused = self.connections.contains_key(node);
        let mut connection = self.connect(node, until)?;
        let mut command = redis::cmd("CLUSTER");
        let sent = connection.send_packed_command(&command.arg("SLOTS").get_packed_command());
        let topology = match sent.and_then(|()| receive_one(&mut connection, until)) {
            Ok(answer) => Topology::Cluster(SlotMap::of(&answer, node)),
            // A server without a cluster, without the command, or whose users may not ask.
            Err(error) if is_answer(&error) && error.to_string().to_lowercase().contains("cluster") => {
                Topology::Single(node.clone())
            }
            // The server was restarted since the connection was last used.
            Err(error) if reused && !is_answer(&error) && !error.is_timeout() => {
                return self.learn(node, until);
            }
            Err(error) => return Err(error),
        };
        self.connections.insert(node.clone(), connection);
        Ok(topology)
    }
}

fn receive_one(connection: &mut Connection, until: Instant) -> Answer {
    connection.set_read_timeout(Some(left(until).ok_or_else(timed_out)?))?;
    connection.recv_response().and_then(Value::extract_error)
}

/// Returns whether a server sent the error. If not, the connection is broken.
fn is_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// Returns whether another connection may work better: to the node that now has the name of this one.
fn is_stale(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

/// Returns whether a command may change something.
fn is_write(command: &Cmd) -> bool {
    matches!(command.args_iter().next(), Some(redis::Arg::Simple(b"EVAL" | b"DEL")))
}

/// Returns the time left, if any.
pub(super) fn left(until: Instant) -> Option<Duration> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

fn timed_out() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}
