use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a connection has been waiting for the head of a request. One timer per connection checks it: hyper would set
/// one for each request.
pub(crate) struct HeadDeadline {
    patience: Duration,
    begun: Instant,
    /// When it began to wait, in milliseconds since the connection did; [`ANSWERING`] while a request is answered.
    waiting_since: AtomicU64,
}

const ANSWERING: u64 = u64::MAX;

impl HeadDeadline {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, begun: moment(), waiting_since: AtomicU64::new(0) }
    }

    /// Notes that the head of a request is here.
    pub(crate) fn arrived(&self) {
        self.waiting_since.store(ANSWERING, Ordering::Relaxed);
    }

    /// Notes that the next request may come from now on.
    pub(crate) fn answered(&self, now: Instant) {
        self.waiting_since.store(self.millis(now), Ordering::Relaxed);
    }

    /// Waits until the head of a request doesn't arrive in time.
    pub(crate) async fn missed(&self) {
        loop {
            let waited = match self.waiting_since.load(Ordering::Relaxed) {
                ANSWERING => Duration::ZERO,
                since => Duration::from_millis(self.millis(moment()).saturating_sub(since)),
            };
            match self.patience.checked_sub(waited) {
                None | Some(Duration::ZERO) => return,
                Some(rest) => tokio::time::sleep(rest).await,
            }
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.begun).as_millis()).unwrap_or(ANSWERING - 1)
    }
}

#[expect(clippy::disallowed_methods, reason = "a deadline is one of this machine's clock")]
fn moment() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn wait(work: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(work);
    }

    async fn is_missed_within(deadline: &HeadDeadline, time: Duration) -> bool {
        tokio::time::timeout(time, deadline.missed()).await.is_ok()
    }

    #[test]
    fn a_connection_without_a_request_is_given_up_in_time() {
        wait(async {
            let (deadline, begun) = (HeadDeadline::new(PATIENCE), moment());
            assert!(is_missed_within(&deadline, Duration::from_secs(20)).await);
            assert!(begun.elapsed() >= PATIENCE);
        });
    }

    #[test]
    fn a_request_that_takes_long_is_not_late_and_the_next_one_has_its_own_time() {
        wait(async {
            let deadline = HeadDeadline::new(PATIENCE);
            deadline.arrived();
            assert!(!is_missed_within(&deadline, PATIENCE * 3).await);
            let begun = moment();
            deadline.answered(begun);
            assert!(is_missed_within(&deadline, Duration::from_secs(20)).await);
            assert!(begun.elapsed() >= PATIENCE - Duration::from_millis(2), "{:?}", begun.elapsed());
        });
    }
}
