//! Threads that pass events on: one publishes those of this server, the other follows those of all servers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use deloop_store::{EventCursor, SharedRecords};
use serde::Deserialize;
use tokio::sync::broadcast;

use super::ServerEvent;

/// Events of this server that wait to be published. Beyond that they are dropped, so that nothing waits for them.
const WAITING: usize = 10_000;
/// Events that a slow listener may be behind. It misses those beyond that, and is told so.
const BEHIND: usize = 1_024;
/// How many events are read at a time.
const READ: usize = 500;
/// How long a thread waits for the next event before it checks whether the server stops.
const WAIT: Duration = Duration::from_millis(250);
/// How long a thread waits before it tries again.
const PAUSE: Duration = Duration::from_millis(500);

/// An event and its position.
#[derive(Debug, Clone)]
pub(crate) struct PublishedEvent {
    /// Where a listener resumes to get every later event; it may get some twice.
    pub(crate) resume: EventCursor,
    /// The position of the last event that was read together with it.
    pub(crate) read_to: EventCursor,
    pub(crate) text: Arc<str>,
    pub(crate) about: Arc<EventSubject>,
}

/// What an event is about, for filters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventSubject {
    pub(crate) event: String,
    pub(crate) project: String,
    pub(crate) session: Option<String>,
}

impl PublishedEvent {
    /// Returns events that were read together after a position.
    fn read(after: EventCursor, read_to: EventCursor, texts: &[String]) -> impl Iterator<Item = Self> {
        texts.iter().enumerate().map(move |(index, text)| {
            let resume = if index + 1 == texts.len() { read_to } else { after };
            let about = Arc::new(serde_json::from_str(text).unwrap_or_default());
            Self { resume, read_to, text: Arc::from(text.as_str()), about }
        })
    }
}

/// Publishes the events of this server and follows those of all.
pub(crate) struct EventHub {
    records: Arc<dyn SharedRecords>,
    waiting: Mutex<Option<SyncSender<String>>>,
    listeners: broadcast::Sender<PublishedEvent>,
    lost: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl EventHub {
    /// Starts the threads.
    pub(crate) fn start(records: Arc<dyn SharedRecords>) -> std::io::Result<Self> {
        let (waiting, next) = sync_channel(WAITING);
        let (listeners, _) = broadcast::channel(BEHIND);
        let (lost, stopping) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let publisher = {
            let (records, lost) = (Arc::clone(&records), Arc::clone(&lost));
            let thread = std::thread::Builder::new().name("deloop-publish".to_owned());
            thread.spawn(move || publish(&*records, &next, &lost))?
        };
        let follower = {
            let (records, listeners, stopping) =
                (Arc::clone(&records), listeners.clone(), Arc::clone(&stopping));
            let thread = std::thread::Builder::new().name("deloop-follow".to_owned());
            thread.spawn(move || follow(&*records, &listeners, &stopping))?
        };
        let threads = Mutex::new(vec![publisher, follower]);
        Ok(Self { records, waiting: Mutex::new(Some(waiting)), listeners, lost, stopping, threads })
    }

    /// Publishes an event soon. Never waits.
    pub(crate) fn publish(&self, event: ServerEvent) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(TrySendError::Full(_))) =
            waiting.as_ref().map(|waiting| waiting.try_send(event.text()))
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns events as they come, of all projects.
    pub(crate) fn listen(&self) -> broadcast::Receiver<PublishedEvent> {
        self.listeners.subscribe()
    }

    /// Returns the events after a position that are still kept. Blocks.
    pub(crate) fn since(&self, cursor: EventCursor) -> Vec<PublishedEvent> {
        let (mut found, mut at) = (Vec::new(), cursor);
        while let Ok((next, texts)) = self.records.follow(Some(at), READ, Duration::ZERO) {
            if texts.is_empty() {
                break;
            }
            found.extend(PublishedEvent::read(at, next, &texts));
            at = next;
        }
        found
    }

    /// Returns the number of events that couldn't be published.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Publishes what waits and ends the threads.
    pub(crate) fn close(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing left to publish.
            let _ = thread.join();
        }
    }
}

fn publish(records: &dyn SharedRecords, waiting: &Receiver<String>, lost: &AtomicU64) {
    while let Ok(text) = waiting.recv() {
        if records.publish(&text).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn follow(records: &dyn SharedRecords, listeners: &broadcast::Sender<PublishedEvent>, stopping: &AtomicBool) {
    let mut cursor = None;
    while !stopping.load(Ordering::Relaxed) {
        match records.follow(cursor, READ, WAIT) {
            Ok((next, texts)) => {
                for event in PublishedEvent::read(cursor.unwrap_or(next), next, &texts) {
                    // Nobody may listen.
                    let _ = listeners.send(event);
                }
                cursor = Some(next);
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}
