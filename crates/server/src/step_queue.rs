//! Small requests that arrive at the same time are decided about together: with one write to the log of steps, and with code
//! and data that are still in the processor's cache.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::http_error::HttpError;
use crate::shared::{Shared, at_once, panicked};
use crate::steps_request::{StepsReply, StepsRequest};

/// How many requests are decided about together. More arrive at the same time only if a worker has very many connections.
const TOGETHER: usize = 64;

/// The requests of one worker that wait.
#[derive(Default)]
pub(crate) struct StepQueue {
    waiting: Mutex<Vec<WaitingRequest>>,
    arrived: Notify,
    /// Whether the task that decides has been started.
    is_served: AtomicBool,
}

type Replied = Result<StepsReply, HttpError>;

struct WaitingRequest {
    request: StepsRequest,
    reply: oneshot::Sender<Replied>,
}

impl StepQueue {
    /// Decides about the steps of a request, together with others that have arrived.
    pub(crate) async fn decide(self: &Arc<Self>, shared: &Arc<Shared>, request: StepsRequest) -> Replied {
        let (reply, replied) = oneshot::channel();
        let count = self.push(WaitingRequest { request, reply });
        if count >= TOGETHER {
            self.run(shared);
        } else if count == 1 {
            // A task that is woken up runs after those that are ready now, which are the connections whose requests have
            // arrived.
            self.arrived.notify_one();
            if !self.is_served.swap(true, Ordering::Relaxed) {
                tokio::spawn(Arc::clone(self).serve(Arc::clone(shared)));
            }
        }
        replied.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Decides about requests until the worker ends. It isn't part of a request, whose client may go away.
    async fn serve(self: Arc<Self>, shared: Arc<Shared>) {
        loop {
            self.arrived.notified().await;
            // A panic costs the requests that were decided about with it; they are told.
            let _ = catch_unwind(AssertUnwindSafe(|| self.run(&shared)));
        }
    }

    /// Returns how many wait now.
    fn push(&self, request: WaitingRequest) -> usize {
        let mut waiting = self.lock();
        waiting.push(request);
        waiting.len()
    }

    /// Decides about everything that waits.
    fn run(&self, shared: &Arc<Shared>) {
        let mut alike: Vec<WaitingRequest> = Vec::new();
        for waiting in std::mem::take(&mut *self.lock()) {
            if alike.last().is_some_and(|last| !last.request.is_like(&waiting.request)) {
                decide(std::mem::take(&mut alike), shared);
            }
            alike.push(waiting);
        }
        decide(alike, shared);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WaitingRequest>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decides about requests that are [alike](StepsRequest::is_like). Redis is waited for on a thread of its own.
fn decide(requests: Vec<WaitingRequest>, shared: &Arc<Shared>) {
    if requests.is_empty() {
        return;
    }
    if shared.broker.is_remote() {
        let shared = Arc::clone(shared);
        tokio::task::spawn_blocking(move || decide_now(requests, &shared));
    } else {
        decide_now(requests, shared);
    }
}

fn decide_now(requests: Vec<WaitingRequest>, shared: &Shared) {
    let (requests, replies): (Vec<_>, Vec<_>) =
        requests.into_iter().map(|waiting| (waiting.request, waiting.reply)).unzip();
    // Behind others that wait for Redis, their time may have run out.
    let is_gone = || shared.broker.is_remote() && replies.iter().all(oneshot::Sender::is_closed);
    let decided = at_once(shared, &is_gone, |access| Ok(StepsRequest::decide(&requests, shared, access)));
    let decided = decided.unwrap_or_else(|error| requests.iter().map(|_| Err(error.clone())).collect());
    for (decided, reply) in decided.into_iter().zip(replies) {
        // The client may be gone.
        let _ = reply.send(decided);
    }
}
