use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::clock::Clock;

/// An answer of at most this many bytes is sent at once.
const SHORT: u64 = 16 << 10;

/// How long a connection has been waiting for the head of a request. One timer per connection checks it: hyper would set
/// one for each request.
pub(crate) struct HeadDeadline {
    clock: Clock,
    patience: Duration,
    begun: Instant,
    /// When it began to wait, in milliseconds since the connection did; [`ANSWERING`] while a request is answered.
    waiting_since: AtomicU64,
}

const ANSWERING: u64 = u64::MAX;

impl HeadDeadline {
    pub(crate) fn new(patience: Duration, clock: Clock) -> Self {
        Self { patience, begun: clock.moment(), clock, waiting_since: AtomicU64::new(0) }
    }

    /// Notes that the head of a request is here.
    pub(crate) fn arrived(&self) {
        self.waiting_since.store(ANSWERING, Ordering::Relaxed);
    }

    /// Notes that the next request may come once this answer, which is ready now, has been sent.
    pub(crate) fn answered(self: &Arc<Self>, answer: Response, now: Instant) -> Response {
        if answer.body().size_hint().exact().is_some_and(|length| length <= SHORT) {
            self.wait_from(now);
            return answer;
        }
        // Events are sent for hours.
        answer.map(|body| Body::new(LongAnswer { body, deadline: Arc::clone(self) }))
    }

    /// Returns since when the connection has been waiting for a request; `None` while one is answered.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        match self.waiting_since.load(Ordering::Relaxed) {
            ANSWERING => None,
            since => Some(self.begun + Duration::from_millis(since)),
        }
    }

    /// Lets the first request have its whole time from now on.
    pub(crate) fn restart(&self) {
        self.wait_from(self.clock.moment());
    }

    fn wait_from(&self, now: Instant) {
        self.waiting_since.store(self.millis(now), Ordering::Relaxed);
    }

    /// Waits until the head of a request doesn't arrive in time.
    pub(crate) async fn missed(&self) {
        loop {
            let waited = match self.waiting_since.load(Ordering::Relaxed) {
                ANSWERING => Duration::ZERO,
                since => Duration::from_millis(self.millis(self.clock.moment()).saturating_sub(since)),
            };
            match self.patience.checked_sub(waited) {
                None | Some(Duration::ZERO) => return,
                Some(rest) => self.clock.sleep(rest).await,
            }
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.begun).as_millis()).unwrap_or(ANSWERING - 1)
    }
}

/// A body during which no request is waited for.
struct LongAnswer {
    body: Body,
    deadline: Arc<HeadDeadline>,
}

impl Drop for LongAnswer {
    fn drop(&mut self) {
        self.deadline.wait_from(self.deadline.clock.moment());
    }
}

impl HttpBody for LongAnswer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const ALMOST: Duration = Duration::from_millis(9_999);

    fn deadline() -> Arc<HeadDeadline> {
        Arc::new(HeadDeadline::new(PATIENCE, Clock::default()))
    }

    /// Lets exactly this much time pass on the paused clock; returns whether the deadline is missed by then.
    async fn is_missed_within(deadline: &HeadDeadline, time: Duration) -> bool {
        tokio::time::timeout(time, deadline.missed()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_given_up_in_time() {
        let deadline = deadline();
        assert!(!is_missed_within(&deadline, ALMOST).await);
        assert!(is_missed_within(&deadline, PATIENCE - ALMOST).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_takes_long_is_not_late_and_the_next_one_has_its_own_time() {
        let deadline = deadline();
        deadline.arrived();
        assert!(!is_missed_within(&deadline, PATIENCE * 3).await);
        deadline.answered(Response::default(), Clock::default().moment());
        assert!(!is_missed_within(&deadline, ALMOST).await);
        assert!(is_missed_within(&deadline, PATIENCE - ALMOST).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_sent_for_long_is_not_late() {
        let deadline = deadline();
        deadline.arrived();
        let long = Response::new(Body::from(vec![0; 1 << 20]));
        let long = deadline.answered(long, Clock::default().moment());
        assert_eq!(long.body().size_hint().exact(), Some(1 << 20));
        assert!(!is_missed_within(&deadline, PATIENCE * 3).await);
        drop(long);
        assert!(!is_missed_within(&deadline, ALMOST).await);
        assert!(is_missed_within(&deadline, PATIENCE - ALMOST).await);
    }
}
