//! Embeddings for `deloop stream`, which runs as long as its agent.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_detect::Fingerprint;
use deloop_embed::Embedder;
use deloop_live::{AwaitedEmbedding, EmbeddingSource};
use deloop_types::{Body, SessionId, Step};

use super::provider::{Provider, prepared};
use crate::config::Config;
use crate::exit::Failure;

/// Number of embeddings kept for turns that wait for them.
const READY: usize = 256;
/// Number of texts that wait for the endpoint. Later ones are dropped.
const WAITING: usize = 64;
/// Number of turns that wait for their embedding.
const TURNS: usize = 4096;

/// The latest embeddings, by text.
type ReadyEmbeddings = Mutex<VecDeque<(Fingerprint, Vec<f32>)>>;

/// Computes embeddings in this process.
pub(crate) struct StreamEmbeddings {
    ready: Arc<ReadyEmbeddings>,
    worker: EmbeddingWorker,
    /// The latest turn of each agent, if its embedding isn't known yet.
    awaited: HashMap<(SessionId, Option<String>), AwaitedEmbedding>,
}

enum EmbeddingWorker {
    Here(Box<dyn Embedder>),
    Thread(SyncSender<String>),
}

impl StreamEmbeddings {
    /// Returns `None` if the profile doesn't compare embeddings, or the configuration names no model.
    pub(crate) fn open(config: &Config) -> Result<Option<Self>, Failure> {
        if !config.profile.compares_embeddings() {
            return Ok(None);
        }
        let Some(provider) = Provider::of(&config.embeddings)? else { return Ok(None) };
        let embedder = provider.load()?;
        let ready = Arc::default();
        let worker = match provider.is_local() {
            true => EmbeddingWorker::Here(embedder),
            false => EmbeddingWorker::Thread(thread(embedder, Arc::clone(&ready))),
        };
        Ok(Some(Self { ready, worker, awaited: HashMap::new() }))
    }

    /// Returns the step that adds the embedding of the agent's latest turn, if it has become ready.
    pub(crate) fn arrived(&mut self, step: &Step) -> Option<Step> {
        let key = (step.session.clone(), step.agent.clone());
        let arrived = self.awaited.get(&key)?.arrived(&step.session, step.agent.as_deref(), self)?;
        self.awaited.remove(&key);
        Some(arrived)
    }

    /// Adds the embedding of a turn, if it is ready.
    pub(crate) fn begin(&self, step: &mut Step) -> Option<AwaitedEmbedding> {
        AwaitedEmbedding::begin(step, self)
    }

    /// Waits for the embedding of a turn, if it has none. Earlier turns of the agent are no longer waited for.
    pub(crate) fn wait(&mut self, step: &Step, awaited: Option<AwaitedEmbedding>) {
        let key = (step.session.clone(), step.agent.clone());
        match (&step.body, awaited) {
            (Body::Turn(_), Some(awaited)) if self.awaited.len() < TURNS => {
                self.awaited.insert(key, awaited);
            }
            (Body::Turn(_), _) => drop(self.awaited.remove(&key)),
            (Body::End, _) => self.awaited.retain(|(session, _), _| *session != step.session),
            _ => {}
        }
    }
}

impl EmbeddingSource for StreamEmbeddings {
    fn ready(&self, text: Fingerprint) -> Option<Vec<f32>> {
        lock(&self.ready).iter().find(|(known, _)| *known == text).map(|(_, vector)| vector.clone())
    }

    fn request(&self, text: &str) {
        match &self.worker {
            EmbeddingWorker::Here(embedder) => compute(embedder.as_ref(), text, &self.ready),
            // If the endpoint is slower than the agent, some turns are compared by words.
            EmbeddingWorker::Thread(sender) => drop(sender.try_send(text.to_owned())),
        }
    }
}

/// Starts a thread that computes embeddings one by one.
fn thread(embedder: Box<dyn Embedder>, ready: Arc<ReadyEmbeddings>) -> SyncSender<String> {
    let (sender, texts) = sync_channel::<String>(WAITING);
    std::thread::spawn(move || {
        for text in texts {
            compute(embedder.as_ref(), &text, &ready);
        }
    });
    sender
}

/// Computes an embedding. A failure leaves the turn to be compared by words.
fn compute(embedder: &dyn Embedder, text: &str, ready: &ReadyEmbeddings) {
    let key = Fingerprint::of_bytes(text.as_bytes());
    let Some(vector) = embedder.embed(&[&prepared(text)]).ok().and_then(|mut all| all.pop()) else { return };
    let mut ready = lock(ready);
    if ready.len() >= READY {
        ready.pop_front();
    }
    ready.push_back((key, vector));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
