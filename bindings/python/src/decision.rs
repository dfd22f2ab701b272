use std::hash::{DefaultHasher, Hash, Hasher};

use deloop_types::{Action, Decision, Evidence};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::failure::value_error;
use crate::to_python::to_python;

/// The decision about a step. Attributes are converted when they are read: most programs read `action` alone.
#[pyclass(name = "Decision", module = "deloop", frozen)]
pub(crate) struct PyDecision(Decision);

impl PyDecision {
    /// Creates a decision as it is on the wire, so that it equals one that was stored and read again.
    pub(crate) fn new(mut decision: Decision) -> Self {
        for finding in &mut decision.findings {
            finding.evidence = Evidence::default();
        }
        decision.would = decision.would.map(|would| Box::new(Self::new(*would).0));
        Self(decision)
    }
}

#[pymethods]
impl PyDecision {
    #[getter]
    fn session(&self) -> &str {
        self.0.session.as_str()
    }

    #[getter]
    fn step(&self) -> u64 {
        self.0.step
    }

    #[getter]
    fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    #[getter]
    fn action<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self.0.action {
            Action::Continue => intern!(py, "continue"),
            Action::Warn => intern!(py, "warn"),
            Action::Nudge => intern!(py, "nudge"),
            Action::Ask => intern!(py, "ask"),
            Action::Block => intern!(py, "block"),
            Action::Stop => intern!(py, "stop"),
        }
        .clone()
    }

    #[getter]
    fn level(&self) -> u32 {
        self.0.level
    }

    #[getter]
    fn rung(&self) -> Option<&str> {
        self.0.rung.as_deref()
    }

    #[getter]
    fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    #[getter]
    fn user_message(&self) -> Option<&str> {
        self.0.user_message.as_deref()
    }

    #[getter]
    fn role<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.role)
    }

    #[getter]
    fn calls(&self) -> Vec<&str> {
        self.0.calls.iter().map(String::as_str).collect()
    }

    #[getter]
    fn status(&self) -> Option<&str> {
        self.0.status.as_deref()
    }

    #[getter]
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.findings)
    }

    #[getter]
    fn by<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.by)
    }

    #[getter]
    fn notices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.notices)
    }

    #[getter]
    fn rollback<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.rollback)
    }

    #[getter]
    fn would(&self) -> Option<Self> {
        self.0.would.as_deref().map(|would| Self(would.clone()))
    }

    #[getter]
    fn extra<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.extra)
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }

    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(value_error)
    }

    /// Reads a decision that `to_json` wrote.
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, text: &str) -> PyResult<Self> {
        serde_json::from_str(text).map(Self).map_err(value_error)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr(intern!(py, "from_json"))?, (self.to_json()?,)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        other.cast::<Self>().ok().map(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.session(), self.0.step, &self.0.id).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let Decision { session, step, action, level, message, .. } = &self.0;
        let message = message.as_deref().map(|text| format!(", message={text:?}")).unwrap_or_default();
        format!(
            "Decision(session={:?}, step={step}, action='{action}', level={level}{message})",
            session.as_str()
        )
    }
}
