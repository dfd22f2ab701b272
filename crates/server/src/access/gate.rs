use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::Query;
use axum::http::{HeaderMap, Request, Uri, header};
use serde::Deserialize;

use super::host::check_host;
use super::key_file::KeyProject;
use super::key_ring::{KeyRing, KeyState, KnownKey, find_key};
use super::rate_limit::{Allowance, FailedAttempts, RateReached};
use super::scope::KeyScope;
use super::settings::RateLimits;
use crate::admission::HEALTH;
use crate::clock::Clock;
use crate::http_error::HttpError;
use crate::project::Project;
use crate::requester::{LOCAL_ACTOR, Requester};
use crate::shared::Shared;

/// A path whose answer to a key says more than that to a sender without one.
const READY: &str = "/readyz";
/// Paths whose answers are about all projects.
const ALL_PROJECTS: [&str; 1] = ["/metrics"];

/// Checks requests before anything but their head is read.
pub(crate) struct AccessGate {
    ring: KeyRing,
    hosts: Vec<String>,
    failures: FailedAttempts,
    clock: Clock,
    /// The sender of requests without a project, on a server without keys.
    local: Arc<Requester>,
}

#[derive(Deserialize)]
struct ProjectQuery {
    project: Option<String>,
}

impl AccessGate {
    pub(super) fn open(
        key_file: PathBuf,
        hosts: Vec<String>,
        limits: RateLimits,
        clock: Clock,
    ) -> Result<Self, String> {
        let ring = KeyRing::open(key_file, limits, clock.clone())?;
        let local = Requester::without_key(Project::default(), LOCAL_ACTOR);
        Ok(Self { ring, hosts, failures: FailedAttempts::default(), clock, local: Arc::new(local) })
    }

    /// Looks at the key file again, if it is time to. Call it many times per second.
    ///
    /// # Errors
    /// When the file can't be read. From then on, every request is refused.
    pub(crate) fn keep_keys_fresh(&self) -> Result<(), String> {
        if self.ring.is_due() { self.ring.refresh() } else { Ok(()) }
    }

    /// Looks at the key file again now.
    ///
    /// # Errors
    /// When the file can't be read. From then on, every request is refused.
    pub(crate) fn reload_keys(&self) -> Result<(), String> {
        self.ring.refresh()
    }

    /// Returns whether requests need a key.
    pub(super) fn needs_keys(&self) -> bool {
        !matches!(self.ring.state(), KeyState::Open)
    }

    /// Returns who sends a request, if it may be sent from this address. `None` for a request that is the same for
    /// everyone.
    pub(crate) fn check<B>(
        &self,
        peer: IpAddr,
        request: &Request<B>,
    ) -> Result<Option<Arc<Requester>>, HttpError> {
        let state = self.ring.state();
        let names = (!matches!(state, KeyState::Open)).then_some(self.hosts.as_slice());
        check_host(request, names)?;
        let path = request.uri().path();
        let needs_key = !is_public(path)
            || (path == READY && request.headers().contains_key(header::AUTHORIZATION))
            // It can't find out about its keys, so it isn't ready, and without any, everyone may know everything.
            || (path == READY && !matches!(state, KeyState::Closed(_)));
        if !needs_key {
            return Ok(None);
        }
        let keys = match state {
            KeyState::Open => {
                let mut requester = Arc::clone(&self.local);
                if let Some(name) = asked_project(request.uri())? {
                    Arc::make_mut(&mut requester).project =
                        Project::parse(&name).map_err(HttpError::bad_request)?;
                }
                return Ok(Some(requester));
            }
            KeyState::Broken => return Err(HttpError::keys_unreadable()),
            KeyState::Closed(keys) => keys,
        };
        let (at, now) = (self.clock.moment(), self.clock.now());
        let found = bearer(request.headers()).and_then(|text| find_key(&keys, text, now));
        let Some(key) = found else {
            return Err(match self.failures.count(peer, at) {
                Ok(()) => HttpError::unauthorized(),
                Err(wait) => HttpError::too_many_failures(wait),
            });
        };
        key.allowance.take_request(at).map_err(|reached| HttpError::rate_reached(&reached, "requests"))?;
        if let Some(needed) = KeyScope::needed(request.method(), path).filter(|needed| !key.allows(*needed)) {
            if path == READY {
                return Ok(None);
            }
            return Err(HttpError::wrong_scope(needed.name()));
        }
        let project = project_for(&key, request.uri())?;
        if needs_all_projects(path) && key.project != KeyProject::All {
            return Err(HttpError::needs_all_projects());
        }
        let (actor, allowance) = (Arc::clone(&key.name), Some(Arc::clone(&key.allowance)));
        let all_projects = key.project == KeyProject::All;
        let (scopes, owner) = (Arc::clone(&key.scopes), Some(Arc::clone(&key.group)));
        Ok(Some(Arc::new(Requester { project, actor, all_projects, scopes, owner, allowance })))
    }
}

/// Returns whether a path needs no key.
pub(crate) fn is_public(path: &str) -> bool {
    HEALTH.contains(&path)
}

/// Returns whether a path needs a key for all projects.
pub(crate) fn needs_all_projects(path: &str) -> bool {
    ALL_PROJECTS.contains(&path)
}

/// Returns whether a request that takes long may go on: its key may have been revoked since.
pub(crate) fn may_continue(shared: &Shared, requester: &Requester) -> bool {
    match (shared.access.ring.state(), &requester.allowance) {
        (KeyState::Open, _) => true,
        (KeyState::Closed(keys), Some(allowance)) => {
            keys.get(allowance.key_id()).is_some_and(|key| !key.is_expired(shared.clock.now()))
        }
        (KeyState::Closed(_), None) | (KeyState::Broken, _) => false,
    }
}

impl Allowance {
    /// Counts the steps of a request.
    pub(crate) fn spend_steps(&self, count: usize, clock: &Clock) -> Result<(), HttpError> {
        self.take_steps(count, clock.moment())
            .map_err(|reached: RateReached| HttpError::rate_reached(&reached, "steps"))
    }
}

/// Returns the key in `Authorization: Bearer KEY`, if there is exactly one such header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim_matches(' '))
}

/// Returns the project that a request is about. A key for one project can't find out which others exist.
fn project_for(key: &KnownKey, uri: &Uri) -> Result<Project, HttpError> {
    let asked = asked_project(uri)?;
    match (&key.project, asked) {
        (KeyProject::One(own), Some(asked)) if asked != own.as_str() => Err(HttpError::foreign_project()),
        (KeyProject::One(own), _) => Ok(own.clone()),
        (KeyProject::All, None) => Ok(Project::default()),
        (KeyProject::All, Some(asked)) => Project::parse(&asked).map_err(HttpError::bad_request),
    }
}

fn asked_project(uri: &Uri) -> Result<Option<String>, HttpError> {
    if uri.query().is_none() {
        return Ok(None);
    }
    let wrong = |_| HttpError::bad_request("`project` must be the name of a project, once");
    Query::<ProjectQuery>::try_from_uri(uri).map(|Query(query)| query.project).map_err(wrong)
}
