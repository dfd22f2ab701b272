use deloop_types::{
    Body, Call, Delivery, Millis, Origin, Outcome, Step, ToolResult, Turn, TurnEmbedding, Usage, UserText,
    limits,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Failure, value_error};
use crate::from_python::{PyValue, Room};
use crate::guard::{read_step_of, read_value};
use crate::plain::{key_of, text_of};
use crate::to_python::to_python;

/// One thing that happened in an agent's session.
#[pyclass(name = "Step", module = "deloop", frozen)]
pub(crate) struct PyStep(pub(crate) Step);

/// One tool call of a turn.
#[pyclass(name = "Call", module = "deloop", frozen)]
pub(crate) struct PyCall(Call);

#[pymethods]
impl PyCall {
    #[new]
    #[pyo3(signature = (id, tool, args=None))]
    fn new(
        id: Option<&Bound<'_, PyAny>>,
        tool: &Bound<'_, PyString>,
        args: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self(call(id, tool, args)?))
    }

    #[getter]
    fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    #[getter]
    fn tool(&self) -> &str {
        &self.0.tool
    }

    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.args)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        other.cast::<Self>().ok().map(|other| self.0 == other.get().0)
    }

    fn __repr__(&self) -> String {
        let id = self.0.id.as_ref().map_or_else(|| "None".to_owned(), |id| format!("{id:?}"));
        format!("Call({id}, {:?}, {})", self.0.tool, self.0.args)
    }
}

#[pymethods]
impl PyStep {
    /// Creates an answer of the model.
    #[staticmethod]
    #[pyo3(signature = (session, text=None, calls=None, *, turn_id=None, embedding=None, **fields))]
    fn turn(
        session: &Bound<'_, PyString>,
        text: Option<&Bound<'_, PyString>>,
        calls: Option<&Bound<'_, PyAny>>,
        turn_id: Option<&Bound<'_, PyAny>>,
        embedding: Option<Vec<f32>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut turn = Turn::new(optional_text(text)?.unwrap_or_default(), Vec::new());
        for call in calls.map(|calls| calls.try_iter()).transpose()?.into_iter().flatten() {
            let at = turn.calls.len();
            turn.calls.push(
                call_of(&call?)
                    .map_err(|failure| failure.at(|| format!("[{at}]")).at(|| "calls".to_owned()))?,
            );
        }
        turn.id = turn_id.map(id).transpose()?;
        turn.embedding = embedding;
        build(session, Body::Turn(turn), fields)
    }

    /// Creates a turn with one call and no text.
    #[staticmethod]
    #[pyo3(signature = (session, id, tool, args=None, *, turn_id=None, **fields))]
    fn call(
        session: &Bound<'_, PyString>,
        id: Option<&Bound<'_, PyAny>>,
        tool: &Bound<'_, PyString>,
        args: Option<&Bound<'_, PyAny>>,
        turn_id: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut turn = Turn::new("", vec![call(id, tool, args)?]);
        turn.id = turn_id.map(self::id).transpose()?;
        build(session, Body::Turn(turn), fields)
    }

    /// Creates the result of a call.
    #[staticmethod]
    #[pyo3(signature = (session, id=None, *, ok=None, output=None, outcome=None, error_type=None, **fields))]
    fn result(
        session: &Bound<'_, PyString>,
        id: Option<&Bound<'_, PyAny>>,
        ok: Option<bool>,
        output: Option<&Bound<'_, PyAny>>,
        outcome: Option<&Bound<'_, PyAny>>,
        error_type: Option<&Bound<'_, PyString>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let output = output
            .map_or(Ok(Value::Null), |output| read_value(output).map_err(|f| f.at(|| "output".to_owned())))?;
        let mut result = ToolResult::new(output);
        result.id = id.map(self::id).transpose()?;
        result.ok = ok;
        result.outcome = outcome.map(|outcome| word::<Outcome>(outcome, "outcome")).transpose()?;
        result.error_type = optional_text(error_type)?.map(limits::name);
        build(session, Body::Result(result), fields)
    }

    /// Creates a message to the agent.
    #[staticmethod]
    #[pyo3(signature = (session, text="", *, origin=None, **fields))]
    fn user(
        session: &Bound<'_, PyString>,
        text: &str,
        origin: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let origin = origin.map(|origin| word::<Origin>(origin, "origin")).transpose()?.unwrap_or_default();
        build(session, Body::User(UserText::new(text, origin)), fields)
    }

    /// Creates what a request to the model used.
    #[staticmethod]
    #[pyo3(signature = (session, model=None, *, input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0, cache_write_1h_tokens=0, cost_usd=None, **fields))]
    #[expect(clippy::too_many_arguments, reason = "the fields of the step")]
    fn usage(
        session: &Bound<'_, PyString>,
        model: Option<&Bound<'_, PyString>>,
        input_tokens: u64,
        output_tokens: u64,
        cache_read_tokens: u64,
        cache_write_tokens: u64,
        cache_write_1h_tokens: u64,
        cost_usd: Option<f64>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut usage = Usage::default();
        usage.model = optional_text(model)?.map(limits::name);
        (usage.input_tokens, usage.output_tokens) = (input_tokens, output_tokens);
        (usage.cache_read_tokens, usage.cache_write_tokens) = (cache_read_tokens, cache_write_tokens);
        usage.cache_write_1h_tokens = cache_write_1h_tokens;
        usage.cost_usd = cost_usd.filter(|cost| cost.is_finite());
        build(session, Body::Usage(usage), fields)
    }

    /// Creates a piece of a message that is still streaming.
    #[staticmethod]
    #[pyo3(signature = (session, text, **fields))]
    fn chunk(
        session: &Bound<'_, PyString>,
        text: &Bound<'_, PyString>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        build(session, Body::Chunk(text_of(text)?.into_owned()), fields)
    }

    /// Reports that the agent's context was cut or summarized.
    #[staticmethod]
    #[pyo3(signature = (session, **fields))]
    fn compact(session: &Bound<'_, PyString>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        build(session, Body::Compact, fields)
    }

    /// Reports whether the message of the decision at `step` reached the agent.
    #[staticmethod]
    #[pyo3(signature = (session, step, ok, **fields))]
    fn delivery(
        session: &Bound<'_, PyString>,
        step: u64,
        ok: bool,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        build(session, Body::Delivery(Delivery::new(step, ok)), fields)
    }

    /// Adds the embedding of an earlier turn.
    #[staticmethod]
    #[pyo3(signature = (session, step, embedding, **fields))]
    fn embedding(
        session: &Bound<'_, PyString>,
        step: u64,
        embedding: Vec<f32>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        build(session, Body::Embedding(TurnEmbedding::new(step, embedding)), fields)
    }

    /// Reports that a person stepped in outside the conversation.
    #[staticmethod]
    #[pyo3(signature = (session, **fields))]
    fn intervention(session: &Bound<'_, PyString>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        build(session, Body::Intervention, fields)
    }

    /// Ends the session.
    #[staticmethod]
    #[pyo3(signature = (session, **fields))]
    fn end(session: &Bound<'_, PyString>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        build(session, Body::End, fields)
    }

    /// Ends a swarm.
    #[staticmethod]
    #[pyo3(signature = (session, swarm, **fields))]
    fn swarm_end(
        session: &Bound<'_, PyString>,
        swarm: &Bound<'_, PyString>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let step = build(session, Body::SwarmEnd, fields)?.0;
        Ok(Self(step.in_swarm(limits::name(text_of(swarm)?.into_owned()))))
    }

    /// Asks for the state of the session.
    #[staticmethod]
    #[pyo3(signature = (session, **fields))]
    fn state(session: &Bound<'_, PyString>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        build(session, Body::State, fields)
    }

    /// Reads a step from a dict.
    #[staticmethod]
    fn from_dict(step: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(read_step_of(step)?))
    }

    /// Reads a step from JSON.
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, text: &Bound<'_, PyString>) -> PyResult<Self> {
        deloop_bind::read_step(text_of(text)?.as_bytes()).map(Self).map_err(value_error)
    }

    #[getter]
    fn session(&self) -> &str {
        self.0.session.as_str()
    }

    #[getter(r#type)]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item(intern!(py, "type"))
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }

    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(value_error)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr(intern!(py, "from_json"))?, (self.to_json()?,)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        other.cast::<Self>().ok().map(|other| self.0 == other.get().0)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<deloop.Step {}>", self.to_json()?))
    }
}

/// Creates a step with the fields that every step can have.
fn build(session: &Bound<'_, PyString>, body: Body, fields: Option<&Bound<'_, PyDict>>) -> PyResult<PyStep> {
    let mut step = Step::new(text_of(session)?, body);
    for (key, value) in fields.into_iter().flat_map(|fields| fields.iter()) {
        let name = key_of(&key)?;
        if value.is_none() {
            continue;
        }
        set(&mut step, &name, &value).map_err(|failure| failure.at(|| name))?;
    }
    Ok(PyStep(step))
}

fn set(step: &mut Step, name: &str, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
    let text = || read::<String>(value);
    match name {
        "agent" => step.agent = Some(limits::name(text()?)),
        "swarm" => step.swarm = Some(limits::name(text()?)),
        "controller" => step.controller = Some(text()?.into()),
        "task" => step.task = Some(limits::name(text()?)),
        "project" => step.project = Some(limits::name(text()?)),
        "ts" => step.ts = Some(time(value)?),
        _ => {
            return Err(Failure::type_error(
                "unknown argument; every step can have agent, swarm, controller, task, project and ts",
            ));
        }
    }
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(value: &Bound<'_, PyAny>) -> Result<T, Failure> {
    T::deserialize(PyValue::new(value, &Room::new(limits::PLAIN)))
}

/// Reads the time of a step, with the rules of a step on the wire.
fn time(value: &Bound<'_, PyAny>) -> Result<Millis, Failure> {
    let wrong = || {
        Failure::value_error(
            "must be a datetime with a time zone, RFC 3339 (\"2026-01-31T12:00:00Z\") or milliseconds since 1970",
        )
    };
    match read::<Value>(value)? {
        Value::String(text) => Millis::parse(&text).ok_or_else(wrong),
        #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().map(|f| f as i64)).map(Millis).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn call_of(value: &Bound<'_, PyAny>) -> Result<Call, Failure> {
    if let Ok(call) = value.cast::<PyCall>() {
        return Ok(call.get().0.clone());
    }
    Err(Failure::type_error(format!("a call is a deloop.Call, not {}", crate::plain::type_name(value))))
}

fn call(
    id: Option<&Bound<'_, PyAny>>,
    tool: &Bound<'_, PyString>,
    args: Option<&Bound<'_, PyAny>>,
) -> Result<Call, Failure> {
    let args = args.map_or(Ok(Value::Null), |args| {
        read_value(args).map_err(|failure| failure.at(|| "args".to_owned()))
    })?;
    let mut call = Call::new(text_of(tool)?, args);
    call.id = id.map(self::id).transpose()?;
    Ok(call)
}

/// Reads an id. Some frameworks use numbers.
fn id(value: &Bound<'_, PyAny>) -> Result<String, Failure> {
    match read::<Value>(value)? {
        Value::String(id) => Ok(id),
        Value::Number(id) => Ok(id.to_string()),
        _ => Err(Failure::type_error("an id is a text or a number")),
    }
}

fn optional_text(text: Option<&Bound<'_, PyString>>) -> Result<Option<String>, Failure> {
    text.map(|text| Ok(text_of(text)?.into_owned())).transpose()
}

/// Reads one of a few words.
fn word<T: for<'de> Deserialize<'de>>(value: &Bound<'_, PyAny>, field: &str) -> Result<T, Failure> {
    read(value).map_err(|failure| failure.at(|| field.to_owned()))
}
