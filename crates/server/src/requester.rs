//! Who sends a request, and for which project.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::access::{Allowance, KeyScope};
use crate::clock::Clock;
use crate::http_error::HttpError;
use crate::project::Project;

/// The name of every sender on a server without keys.
pub(crate) const LOCAL_ACTOR: &str = "local";

/// Who sends a request, and for which project. [`crate::access::AccessGate`] finds it out before a handler runs.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    /// The project whose sessions and swarms the request is about.
    pub(crate) project: Project,
    /// The name of the sender, for the audit log.
    pub(crate) actor: Arc<str>,
    /// Whether it may act for every project.
    pub(crate) all_projects: bool,
    /// What its key allows; everything on a server without keys.
    pub(crate) scopes: Arc<[KeyScope]>,
    /// The group of keys that owns its sessions; `None` if it may use all of them, and none become its own.
    pub(crate) owner: Option<Arc<str>>,
    /// What its key may still use; a server without keys has no limit.
    pub(crate) allowance: Option<Arc<Allowance>>,
}

impl Requester {
    /// Creates a sender that needs no key. Nothing is refused to it, and no session becomes its own.
    pub(crate) fn without_key(project: Project, actor: &str) -> Self {
        Self {
            project,
            actor: Arc::from(actor),
            all_projects: true,
            scopes: Arc::new(KeyScope::ALL),
            owner: None,
            allowance: None,
        }
    }

    /// Counts the steps of a request. Fails if its key sends too many.
    pub(crate) fn spend_steps(&self, count: usize, clock: &Clock) -> Result<(), HttpError> {
        self.allowance.as_ref().map_or(Ok(()), |allowance| allowance.spend_steps(count, clock))
    }

    /// Returns whether its steps may speak for a person, and so lift a stop.
    pub(crate) fn speaks_for_people(&self) -> bool {
        KeyScope::Attend.is_among(&self.scopes)
    }

    /// Returns whether its steps may enter sessions of other owners.
    pub(crate) fn enters_all_sessions(&self) -> bool {
        self.owner.is_none() || KeyScope::Admin.is_among(&self.scopes)
    }

    /// Returns the same requester, as one that operates a server: it may change every session of the project, which doesn't
    /// become its own.
    pub(crate) fn as_operator(&self) -> Self {
        let all_projects = self.all_projects;
        Self { all_projects, ..Self::without_key(self.project.clone(), &self.actor) }
    }

    /// Returns whether a request of the other would be treated the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.project, &self.actor, &self.owner, &self.scopes)
            == (&other.project, &other.actor, &other.owner, &other.scopes)
    }
}

impl Requester {
    /// Returns the id of its key, on a server with keys.
    pub(crate) fn key_id(&self) -> Option<&str> {
        self.allowance.as_ref().map(|allowance| allowance.key_id())
    }

    /// Creates a sender with this key.
    #[cfg(test)]
    pub(crate) fn with_key(id: &str) -> Self {
        let now = Clock::default().moment();
        let allowance = Allowance::new(id, crate::access::RateLimits::default(), now);
        Self {
            actor: Arc::from(id),
            all_projects: false,
            allowance: Some(Arc::new(allowance)),
            ..Self::without_key(Project::default(), id)
        }
    }

    /// Returns whether it may see all projects at once.
    pub(crate) fn sees_all(&self) -> bool {
        self.all_projects
    }

    /// Returns the project that a body names, if the requester may act for it; without a name its own.
    pub(crate) fn for_project(&self, name: Option<&str>) -> Result<Project, HttpError> {
        let Some(name) = name else { return Ok(self.project.clone()) };
        if name == self.project.as_str() {
            return Ok(self.project.clone());
        }
        if !self.all_projects {
            return Err(HttpError::foreign_project());
        }
        if self.project != Project::default() {
            return Err(HttpError::bad_request("the body and the query name different projects"));
        }
        Project::parse(name).map_err(HttpError::bad_request)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Requester {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        // A route that is open to everyone has none, and must not act for anyone.
        let requester = parts.extensions.get::<Arc<Self>>().ok_or_else(HttpError::unauthorized)?;
        Ok(Self::clone(requester))
    }
}
