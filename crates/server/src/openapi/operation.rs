use std::sync::Arc;

use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::routing::{MethodFilter, MethodRouter, on};

use super::{ApiContent, ApiParameter};
use crate::shared::Shared;

/// A method of a path: its handler, for the router, and its description, for the document.
pub(crate) struct ApiOperation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) details: &'static str,
    pub(super) parameters: Vec<ApiParameter>,
    pub(super) takes: Vec<ApiContent>,
    pub(super) answer: &'static str,
    pub(super) answers: Vec<ApiContent>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) refusals: Vec<(StatusCode, &'static str)>,
    handler: MethodRouter<Arc<Shared>>,
}

impl ApiOperation {
    /// Describes a `GET`. `id` names the operation for programs that generate clients.
    pub(crate) fn get<H: Handler<T, Arc<Shared>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        handler: H,
    ) -> Self {
        Self::new(Method::GET, path, id, on(MethodFilter::GET, handler))
    }

    /// Describes a `POST`.
    pub(crate) fn post<H: Handler<T, Arc<Shared>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        handler: H,
    ) -> Self {
        Self::new(Method::POST, path, id, on(MethodFilter::POST, handler))
    }

    /// Describes a `PUT`.
    pub(crate) fn put<H: Handler<T, Arc<Shared>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        handler: H,
    ) -> Self {
        Self::new(Method::PUT, path, id, on(MethodFilter::PUT, handler))
    }

    /// Describes a `DELETE`.
    pub(crate) fn delete<H: Handler<T, Arc<Shared>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        handler: H,
    ) -> Self {
        Self::new(Method::DELETE, path, id, on(MethodFilter::DELETE, handler))
    }

    fn new(method: Method, path: &'static str, id: &'static str, handler: MethodRouter<Arc<Shared>>) -> Self {
        Self {
            method,
            path,
            id,
            tag: "",
            summary: "",
            details: "",
            parameters: Vec::new(),
            takes: Vec::new(),
            answer: "",
            answers: Vec::new(),
            headers: Vec::new(),
            refusals: Vec::new(),
            handler,
        }
    }

    /// Sets the group that it is listed under.
    pub(crate) fn tagged(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Sets what it does, in a few words.
    pub(crate) fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Sets what else callers should know.
    pub(crate) fn details(self, details: &'static str) -> Self {
        Self { details, ..self }
    }

    /// Adds a parameter.
    pub(crate) fn parameter(mut self, parameter: ApiParameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Adds a form of the body that it takes.
    pub(crate) fn takes(mut self, content: ApiContent) -> Self {
        self.takes.push(content);
        self
    }

    /// Sets what its answer is, and adds a form of it.
    pub(crate) fn answers(mut self, answer: &'static str, content: ApiContent) -> Self {
        self.answer = answer;
        self.answers.push(content);
        self
    }

    /// Adds a header that its answer can have.
    pub(crate) fn header(mut self, name: &'static str, about: &'static str) -> Self {
        self.headers.push((name, about));
        self
    }

    /// Adds when it answers with this error. Errors that every operation has needn't be added.
    pub(crate) fn refuses(mut self, status: StatusCode, when: &'static str) -> Self {
        self.refusals.push((status, when));
        self
    }

    /// Returns its path and what the router needs.
    pub(crate) fn into_route(self) -> (&'static str, MethodRouter<Arc<Shared>>) {
        (self.path, self.handler)
    }
}
