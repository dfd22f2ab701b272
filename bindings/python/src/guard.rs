use deloop_bind::{BoundGuard, GuardSettings, read_step};
use deloop_engine::Observed;
use deloop_types::{Step, limits};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use serde::Deserialize;
use serde_json::Value;

use crate::decision::PyDecision;
use crate::failure::{Failure, contained, value_error};
use crate::fork::detached;
use crate::from_python::{PyValue, Room};
use crate::json_text::json_text;
use crate::plain::{Plain, resolved, text_of, type_name};
use crate::step::PyStep;
use crate::to_python::to_python;

/// Watches any number of sessions and returns a decision after each step.
#[pyclass(name = "Guard", module = "deloop", frozen)]
pub(crate) struct PyGuard(BoundGuard);

#[pymethods]
impl PyGuard {
    #[new]
    #[pyo3(signature = (profile="default", *, mode="enforce", attended=false, config=None, deliver=None, rollback=false, max_sessions=None))]
    #[expect(clippy::too_many_arguments, reason = "each has a name and a default in Python")]
    fn new(
        py: Python<'_>,
        profile: &str,
        mode: &str,
        attended: bool,
        config: Option<&Bound<'_, PyAny>>,
        deliver: Option<&Bound<'_, PyAny>>,
        rollback: bool,
        max_sessions: Option<usize>,
    ) -> PyResult<Self> {
        let settings = GuardSettings {
            profile: profile.to_owned(),
            mode: mode.to_owned(),
            attended,
            config: config.map_or(Ok(Value::Null), read_value)?,
            deliver: deliver.map_or_else(|| Ok(Vec::new()), places)?,
            rollback,
            max_sessions,
        };
        contained(|| detached(py, || settings.guard()).map(Self).map_err(value_error))
    }

    /// Adds a step to its session and returns what to do.
    fn observe(&self, py: Python<'_>, step: &Bound<'_, PyAny>) -> PyResult<PyDecision> {
        self.enter(py, step).map(|observed| PyDecision::new(observed.decision))
    }

    /// Does the same and also returns the events.
    fn observe_all<'py>(
        &self,
        py: Python<'py>,
        step: &Bound<'_, PyAny>,
    ) -> PyResult<(PyDecision, Bound<'py, PyAny>)> {
        let Observed { decision, events, .. } = self.enter(py, step)?;
        Ok((PyDecision::new(decision), to_python(py, &events)?))
    }

    fn checkpoint(&self, py: Python<'_>, session: &str) -> PyResult<Option<String>> {
        contained(|| detached(py, || self.0.checkpoint(session)).map_err(value_error))
    }

    fn restore(&self, py: Python<'_>, session: &str, text: &str) -> PyResult<()> {
        contained(|| detached(py, || self.0.restore(session, text)).map_err(value_error))
    }

    fn reset(&self, py: Python<'_>, session: &str) {
        detached(py, || self.0.reset(session));
    }

    #[getter]
    fn sessions(&self, py: Python<'_>) -> usize {
        detached(py, || self.0.sessions())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<deloop.Guard: {} sessions>", self.sessions(py))
    }
}

impl PyGuard {
    /// Reads a step while Python is locked, and decides about it while it isn't.
    fn enter(&self, py: Python<'_>, step: &Bound<'_, PyAny>) -> PyResult<Observed> {
        contained(|| {
            if let Ok(step) = step.cast::<PyStep>() {
                let step = &step.get().0;
                return Ok(detached(py, || self.0.observe(step)));
            }
            if let Ok(text) = step.cast::<PyString>() {
                let text = text_of(text)?;
                return detached(py, || self.0.observe_json(text.as_bytes())).map_err(value_error);
            }
            if let Ok(bytes) = step.cast::<PyBytes>() {
                let bytes = bytes.as_bytes();
                return detached(py, || self.0.observe_json(bytes)).map_err(value_error);
            }
            let step = read_step_of(step)?;
            Ok(detached(py, || self.0.observe(&step)))
        })
    }
}

/// Reads a step from a dict, or from anything that means one.
pub(crate) fn read_step_of(step: &Bound<'_, PyAny>) -> Result<Step, Failure> {
    if let Ok(bytes) = step.cast::<PyByteArray>() {
        return read_step(&bytes.to_vec()).map_err(|e| Failure::value_error(e.0));
    }
    if !resolved(step, |found| Ok(matches!(found, Plain::Dict(_)))).unwrap_or(false) {
        return Err(Failure::type_error(format!(
            "a step is a deloop.Step, a dict, or JSON as str or bytes, not {}",
            type_name(step)
        )));
    }
    match Step::deserialize(PyValue::new(step, &Room::new(limits::PLAIN))) {
        Err(Failure::Large) => {
            let text = json_text(step)?;
            read_step(&text).map_err(|e| Failure::value_error(e.0))
        }
        read => read,
    }
}

/// Reads any value, with the limits that the arguments or the output of a call have.
pub(crate) fn read_value(value: &Bound<'_, PyAny>) -> Result<Value, Failure> {
    match Value::deserialize(PyValue::new(value, &Room::new(limits::PLAIN))) {
        Err(Failure::Large) => {
            // As the arguments of a step, because limits depend on how deep a value is.
            let mut text = b"{\"type\":\"call\",\"tool\":\"\",\"args\":".to_vec();
            text.extend(json_text(value)?);
            text.push(b'}');
            let step = read_step(&text).map_err(|e| Failure::value_error(e.0))?;
            match step.body {
                deloop_types::Body::Turn(mut turn) if !turn.calls.is_empty() => Ok(turn.calls.remove(0).args),
                _ => Err(Failure::value_error("can't read this value")),
            }
        }
        read => read,
    }
}

/// Reads one place for messages, or several.
fn places(deliver: &Bound<'_, PyAny>) -> Result<Vec<String>, Failure> {
    if let Ok(place) = deliver.cast::<PyString>() {
        return Ok(vec![text_of(place)?.into_owned()]);
    }
    Vec::deserialize(PyValue::new(deliver, &Room::new(limits::PLAIN)))
        .map_err(|failure| failure.at(|| "deliver".to_owned()))
}
