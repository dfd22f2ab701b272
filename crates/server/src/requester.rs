//! Who sends a request, and for which project.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;

use crate::http_error::HttpError;
use crate::project::Project;

/// Who sends a request, and for which project.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    /// The project whose sessions and swarms the request is about.
    pub(crate) project: Project,
    /// The name of the sender, for the audit log.
    pub(crate) actor: Arc<str>,
}

#[derive(Deserialize)]
struct ProjectQuery {
    project: Option<String>,
}

impl Requester {
    /// Returns whether it may see all projects at once, as anyone may on a server without keys.
    pub(crate) fn sees_all(&self) -> bool {
        true
    }

    /// Returns the project that a body names, if the requester may act for it; without a name its own. On a server without
    /// keys anyone may act for any project, but must not name two.
    pub(crate) fn for_project(&self, name: Option<&str>) -> Result<Project, HttpError> {
        let named = name.map(Project::parse).transpose().map_err(HttpError::bad_request)?;
        let is_own = self.project == Project::default() || named.is_none();
        match named {
            Some(named) if is_own || named == self.project => Ok(named),
            Some(_) => Err(HttpError::bad_request("the body and the query name different projects")),
            None => Ok(self.project.clone()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Requester {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let wrong = |_| HttpError::bad_request("`project` must be the name of a project, once");
        let query = Query::<ProjectQuery>::from_request_parts(parts, state).await;
        let Query(ProjectQuery { project }) = query.map_err(wrong)?;
        let project =
            project.map(|name| Project::parse(&name)).transpose().map_err(HttpError::bad_request)?;
        Ok(Self { project: project.unwrap_or_default(), actor: Arc::from("local") })
    }
}
