use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deloop_types::Millis;
use xxhash_rust::xxh3::xxh3_64;

use super::recent_names::RecentNames;
use super::settings::RateLimits;
use crate::project::Project;

/// How many addresses with failed requests are counted one by one. All others share one count.
const ADDRESSES: usize = 4_096;
/// Failed requests per second and address, and how many of them at once.
const FAILURES: (f64, f64) = (5.0, 50.0);

/// How often a full table is looked through.
const SWEEP: Duration = Duration::from_secs(1);

/// What is left of a rate. Something larger than what is left is allowed once, and paid for afterwards: otherwise a
/// batch of more steps than a burst could never be sent.
#[derive(Debug, Clone, Copy)]
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl TokenBucket {
    fn refill(&mut self, rate: f64, burst: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * rate).min(burst);
        self.at = now;
    }

    /// Takes an amount, or returns how long to wait.
    fn take(&mut self, amount: f64, rate: f64, burst: f64, now: Instant) -> Result<(), Duration> {
        self.refill(rate, burst, now);
        if self.left >= amount.min(1.0) {
            self.left -= amount;
            return Ok(());
        }
        Err(Duration::try_from_secs_f64((1.0 - self.left) / rate).unwrap_or(Duration::MAX))
    }
}

/// What one key may still use.
#[derive(Debug)]
pub(crate) struct Allowance {
    key_id: String,
    limits: RateLimits,
    requests: Mutex<TokenBucket>,
    steps: Mutex<TokenBucket>,
    new_agents: Mutex<MinuteCount>,
    swarms: Mutex<RecentNames>,
    listeners: Mutex<u64>,
    /// The minute in which the person who runs the server was last told that the key reached a limit.
    told: Mutex<Option<i64>>,
}

/// How much was used in this minute.
#[derive(Debug, Default)]
struct MinuteCount {
    minute: i64,
    used: u64,
}

/// A client that listens with a key, until this is dropped.
#[derive(Debug)]
pub(crate) struct ListenerPlace(Arc<Allowance>);

impl Drop for ListenerPlace {
    fn drop(&mut self) {
        *lock(&self.0.listeners) -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A limit that was reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RateReached {
    pub(crate) limit: u64,
    pub(crate) wait: Duration,
}

impl Allowance {
    pub(crate) fn new(key_id: &str, limits: RateLimits, now: Instant) -> Self {
        let full = |rate: u64| Mutex::new(TokenBucket { left: limits.burst_of(rate), at: now });
        let (requests, steps) = (full(limits.requests_per_second), full(limits.steps_per_second));
        Self {
            key_id: key_id.to_owned(),
            limits,
            requests,
            steps,
            new_agents: Mutex::default(),
            swarms: Mutex::default(),
            listeners: Mutex::default(),
            told: Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Takes a session, or a subagent of one, that the key starts. Returns `false` if it started too many in this minute.
    pub(crate) fn take_new_agent(&self, now: Millis) -> bool {
        let most = self.limits.new_agents_per_minute;
        if most == 0 {
            return true;
        }
        let (mut count, minute) = (lock(&self.new_agents), now.0.div_euclid(60_000));
        if count.minute != minute {
            *count = MinuteCount { minute, used: 0 };
        }
        let is_free = count.used < most;
        count.used += u64::from(is_free);
        is_free
    }

    /// Notes that the key uses a swarm. Returns `false` if it used too many others within the last hour.
    pub(crate) fn take_swarm(&self, project: &Project, swarm: &str, now: Millis) -> bool {
        let most = self.limits.swarms_per_hour;
        // A project's name has no slash.
        let name = || xxh3_64([project.as_str(), "/", swarm].concat().as_bytes());
        most == 0 || lock(&self.swarms).take(name(), most, now)
    }

    /// Takes a place for a client that listens for events; `None` if there are too many.
    pub(crate) fn take_listener(self: &Arc<Self>) -> Option<ListenerPlace> {
        let mut listeners = lock(&self.listeners);
        if self.limits.listeners > 0 && *listeners >= self.limits.listeners {
            return None;
        }
        *listeners += 1;
        Some(ListenerPlace(Arc::clone(self)))
    }

    /// Returns whether this is the first time in this minute that the key reaches a limit which its requests don't show.
    pub(crate) fn reaches_limit(&self, now: Millis) -> bool {
        lock(&self.told).replace(now.0.div_euclid(60_000)) != Some(now.0.div_euclid(60_000))
    }

    pub(crate) fn key_id(&self) -> &str {
        &self.key_id
    }

    pub(super) fn take_request(&self, now: Instant) -> Result<(), RateReached> {
        self.take(&self.requests, self.limits.requests_per_second, 1, now)
    }

    pub(crate) fn take_steps(&self, count: usize, now: Instant) -> Result<(), RateReached> {
        self.take(&self.steps, self.limits.steps_per_second, count, now)
    }

    fn take(
        &self,
        bucket: &Mutex<TokenBucket>,
        limit: u64,
        count: usize,
        now: Instant,
    ) -> Result<(), RateReached> {
        if limit == 0 {
            return Ok(());
        }
        lock(bucket)
            .take(count as f64, limit as f64, self.limits.burst_of(limit), now)
            .map_err(|wait| RateReached { limit, wait })
    }
}

/// Counts failed authentications per address. It only ever slows down requests that are refused anyway, so that nobody
/// can lock out the clients behind a shared address.
#[derive(Default)]
pub(super) struct FailedAttempts {
    addresses: Mutex<AddressTable>,
}

#[derive(Default)]
struct AddressTable {
    buckets: HashMap<IpAddr, TokenBucket>,
    /// When addresses that have waited long enough were last dropped.
    swept: Option<Instant>,
}

impl FailedAttempts {
    /// Counts a failure, or returns how long to wait.
    pub(super) fn count(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let (rate, burst) = FAILURES;
        let mut table = self.addresses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut address = network(address);
        if table.buckets.len() >= ADDRESSES && !table.buckets.contains_key(&address) {
            // A look at the whole table per request would be a way to keep the server busy.
            if table.swept.is_none_or(|at| now.saturating_duration_since(at) >= SWEEP) {
                table.swept = Some(now);
                table.buckets.retain(|_, bucket| {
                    bucket.refill(rate, burst, now);
                    bucket.left < burst
                });
            }
            if table.buckets.len() >= ADDRESSES {
                address = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
            }
        }
        let bucket = table.buckets.entry(address).or_insert(TokenBucket { left: burst, at: now });
        bucket.take(1.0, rate, burst, now)
    }
}

/// Returns what one client can't easily change about its address: of IPv6, the first 64 bits.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        crate::clock::Clock::default().moment()
    }

    #[test]
    fn a_burst_then_the_rate() {
        let now = start();
        let limits =
            RateLimits { requests_per_second: 10, steps_per_second: 100, burst: 2, ..RateLimits::default() };
        let allowance = Allowance::new("k", limits, now);
        for _ in 0..20 {
            allowance.take_request(now).unwrap();
        }
        let reached = allowance.take_request(now).unwrap_err();
        assert_eq!((reached.limit, reached.wait), (10, Duration::from_millis(100)));
        allowance.take_request(now + reached.wait).unwrap();
        assert!(allowance.take_request(now + reached.wait).is_err());
    }

    #[test]
    fn a_batch_larger_than_the_burst_is_paid_for_afterwards() {
        let now = start();
        let limits =
            RateLimits { requests_per_second: 0, steps_per_second: 100, burst: 2, ..RateLimits::default() };
        let allowance = Allowance::new("k", limits, now);
        allowance.take_steps(1_200, now).unwrap();
        let reached = allowance.take_steps(1, now + Duration::from_secs(5)).unwrap_err();
        assert_eq!(reached.wait, Duration::from_millis(5_010));
        allowance.take_steps(1, now + Duration::from_millis(10_011)).unwrap();
        for _ in 0..10_000 {
            allowance.take_request(now).unwrap();
        }
    }

    #[test]
    fn failures_are_counted_in_a_table_of_a_fixed_size() {
        let (now, failures) = (start(), FailedAttempts::default());
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for _ in 0..50 {
            failures.count(address(1), now).unwrap();
        }
        assert!(failures.count(address(1), now).is_err());
        assert!(failures.count(address(2), now).is_ok());
        for n in 0..100_000 {
            let _ = failures.count(address(n), now);
        }
        let size = || failures.addresses.lock().unwrap().buckets.len();
        assert!(size() <= ADDRESSES + 1);
        failures.count(address(7), now + Duration::from_secs(60)).unwrap();
        failures.count(address(200_000), now + Duration::from_secs(60)).unwrap();
        assert!(size() < 10, "those that waited are dropped: {}", size());
        let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(network(v6("2001:db8::1")), network(v6("2001:db8::ffff:1")));
        assert_eq!(network(v6("::ffff:1.2.3.4")), v6("1.2.3.4"));
    }
}
