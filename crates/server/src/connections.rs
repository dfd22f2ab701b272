//! Which connections are open, and which of them make room for others: a silent one never takes the place of one that works.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::access::{HeadDeadline, network};
use crate::requester::Requester;

/// How many connections without a served request there is always room for, so that a new one can always say what it wants.
const RESERVE: usize = 256;
/// How many open files a server needs besides connections.
#[cfg(unix)]
const OTHER_FILES: u64 = 256;
/// The fewest connections that a server works with, whatever the limit on open files is.
#[cfg(unix)]
const FEWEST: usize = 64;

/// How many connections a server keeps open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections that a request with a key was served on. The one that is idle longest makes room for another.
    pub connections: usize,
    /// Connections of one address without such a request. The oldest makes room for another.
    pub per_address: usize,
    /// Connections of one key. The one that is idle longest makes room for another.
    pub per_key: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connections: 8_192, per_address: 4_096, per_key: 4_096 }
    }
}

impl ConnectionLimits {
    /// Raises the process's limit on open files as far as it must and may. Returns what is left of these limits, and what
    /// to tell people if that is less.
    #[cfg(unix)]
    pub(crate) fn within_open_files(self) -> (Self, Option<String>) {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let needed = (self.connections + RESERVE) as u64 + OTHER_FILES;
        let now = getrlimit(Resource::Nofile);
        let allowed = now.maximum.map_or(needed, |most| most.min(needed));
        let mut files = now.current.unwrap_or(u64::MAX);
        if files < allowed
            && setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: now.maximum }).is_ok()
        {
            files = allowed;
        }
        if files >= needed {
            return (self, None);
        }
        let left = usize::try_from(files.saturating_sub(RESERVE as u64 + OTHER_FILES)).unwrap_or(usize::MAX);
        let connections = left.max(FEWEST);
        let note = format!(
            "this process may open {files} files, so it keeps {connections} connections instead of {}; raise the limit \
             (`ulimit -n`, or LimitNOFILE in systemd)",
            self.connections
        );
        (Self { connections, ..self }, Some(note))
    }

    #[cfg(not(unix))]
    pub(crate) fn within_open_files(self) -> (Self, Option<String>) {
        (self, None)
    }
}

/// Why a request can't be served: its connection would be one too many, and all others are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionLimit {
    /// Of all connections.
    Server(usize),
    /// Of the connections of the request's key.
    Key(usize),
}

/// The open connections of a server.
pub(crate) struct ConnectionTable {
    limits: ConnectionLimits,
    open: Mutex<OpenTable>,
    closed: [AtomicU64; 3],
}

/// Why a connection had to make room.
#[derive(Clone, Copy)]
enum ClosedFor {
    Limit,
    Address,
    Key,
}

#[derive(Default)]
struct OpenTable {
    next: u64,
    /// Connections without a served request, oldest first.
    new: BTreeMap<u64, Arc<ConnectionSlot>>,
    /// The same by address.
    of_address: HashMap<IpAddr, BTreeSet<u64>>,
    served: HashMap<u64, Arc<ConnectionSlot>>,
    of_key: HashMap<String, usize>,
}

struct ConnectionSlot {
    id: u64,
    address: IpAddr,
    deadline: Arc<HeadDeadline>,
    close: Notify,
    /// The key of its last request; empty for one without keys. `None` before its first.
    key: Mutex<Option<String>>,
}

/// An open connection, until it is dropped.
pub(crate) struct OpenConnection {
    table: Arc<ConnectionTable>,
    slot: Arc<ConnectionSlot>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConnectionTable {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, open: Mutex::default(), closed: Default::default() }
    }

    /// Adds a connection that was accepted. If there are too many, another one makes room.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr, deadline: Arc<HeadDeadline>) -> OpenConnection {
        let address = network(address);
        let mut open = lock(&self.open);
        let of_address =
            open.of_address.get(&address).filter(|ids| ids.len() >= self.limits.per_address.max(1));
        if let Some(oldest) = of_address.and_then(|ids| ids.first().copied()) {
            self.close(&mut open, oldest, ClosedFor::Address);
        }
        if open.new.len() + open.served.len() >= self.limits.connections + RESERVE {
            self.make_room_in(&mut open);
        }
        let id = open.next;
        open.next += 1;
        let slot = ConnectionSlot { id, address, deadline, close: Notify::new(), key: Mutex::default() };
        let slot = Arc::new(slot);
        open.new.insert(id, Arc::clone(&slot));
        open.of_address.entry(address).or_default().insert(id);
        drop(open);
        OpenConnection { table: Arc::clone(self), slot }
    }

    /// Closes the connection that is needed least, because the system has no files left.
    pub(crate) fn make_room(&self) {
        self.make_room_in(&mut lock(&self.open));
    }

    fn make_room_in(&self, open: &mut OpenTable) {
        let oldest = open.new.first_key_value().map(|(id, _)| *id);
        if let Some(id) = oldest.or_else(|| open.longest_idle(None)) {
            self.close(open, id, ClosedFor::Limit);
        }
    }

    fn close(&self, open: &mut OpenTable, id: u64, why: ClosedFor) {
        if let Some(slot) = open.remove(id) {
            slot.close.notify_one();
            self.closed[why as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns counts in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let (new, served) = {
            let open = lock(&self.open);
            (open.new.len(), open.served.len())
        };
        let mut out = format!(
            "# HELP deloop_connections Open connections: those with a served request, and those without.\n\
             # TYPE deloop_connections gauge\n\
             deloop_connections{{state=\"served\"}} {served}\ndeloop_connections{{state=\"new\"}} {new}\n\
             # HELP deloop_connections_limit Connections with a served request that the server keeps.\n\
             # TYPE deloop_connections_limit gauge\ndeloop_connections_limit {}\n\
             # HELP deloop_connections_closed_total Connections that made room for others, by the limit.\n\
             # TYPE deloop_connections_closed_total counter\n",
            self.limits.connections
        );
        for (count, limit) in self.closed.iter().zip(["connections", "address", "key"]) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(out, "deloop_connections_closed_total{{limit=\"{limit}\"}} {count}");
        }
        out
    }
}

impl OpenTable {
    /// Returns the served connection that has been waiting for a request longest, of one key or of all.
    fn longest_idle(&self, key: Option<&str>) -> Option<u64> {
        let slots = self.served.values().filter(|slot| key.is_none() || lock(&slot.key).as_deref() == key);
        let idle = slots.filter_map(|slot| Some((slot.deadline.idle_since()?, slot.id)));
        idle.min().map(|(_, id)| id)
    }

    fn remove(&mut self, id: u64) -> Option<Arc<ConnectionSlot>> {
        if let Some(slot) = self.new.remove(&id) {
            self.forget_address(&slot);
            return Some(slot);
        }
        let slot = self.served.remove(&id)?;
        self.count_key(lock(&slot.key).as_deref(), None);
        Some(slot)
    }

    fn forget_address(&mut self, slot: &ConnectionSlot) {
        if let Some(ids) = self.of_address.get_mut(&slot.address) {
            ids.remove(&slot.id);
            if ids.is_empty() {
                self.of_address.remove(&slot.address);
            }
        }
    }

    /// Counts a connection for another key.
    fn count_key(&mut self, from: Option<&str>, to: Option<&str>) {
        if let Some(from) = from
            && let Some(count) = self.of_key.get_mut(from)
        {
            *count -= 1;
            if *count == 0 {
                self.of_key.remove(from);
            }
        }
        if let Some(to) = to {
            *self.of_key.entry(to.to_owned()).or_default() += 1;
        }
    }
}

impl OpenConnection {
    /// Notes that a request of this sender is about to be served. From then on, no connection without one takes its place.
    ///
    /// # Errors
    /// When the sender or the server has as many connections as it may, and none of them is idle.
    pub(crate) fn serve(&self, requester: &Requester) -> Result<(), ConnectionLimit> {
        let key = requester.key_id().unwrap_or_default();
        if lock(&self.slot.key).as_deref() == Some(key) {
            return Ok(());
        }
        let ConnectionTable { limits, open, .. } = &*self.table;
        let mut open = lock(open);
        let open = &mut *open;
        let (id, limit) = (self.slot.id, limits.per_key.max(1));
        let is_new = open.new.contains_key(&id);
        if !is_new && !open.served.contains_key(&id) {
            // It is being closed.
            return Ok(());
        }
        if !key.is_empty() && open.of_key.get(key).is_some_and(|count| *count >= limit) {
            let idle = open.longest_idle(Some(key)).ok_or(ConnectionLimit::Key(limit))?;
            self.table.close(open, idle, ClosedFor::Key);
        }
        if is_new && open.served.len() >= limits.connections.max(1) {
            let idle = open.longest_idle(None).ok_or(ConnectionLimit::Server(limits.connections))?;
            self.table.close(open, idle, ClosedFor::Limit);
        }
        let before = lock(&self.slot.key).replace(key.to_owned());
        open.count_key(before.as_deref(), Some(key));
        if is_new && open.new.remove(&id).is_some() {
            open.forget_address(&self.slot);
            open.served.insert(id, Arc::clone(&self.slot));
        }
        Ok(())
    }

    /// Waits until it must make room for another one.
    pub(crate) async fn closed(&self) {
        self.slot.close.notified().await;
    }

    pub(crate) fn deadline(&self) -> &Arc<HeadDeadline> {
        &self.slot.deadline
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        lock(&self.table.open).remove(self.slot.id);
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
