use std::fmt::{self, Display};

use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::{de, ser};

/// Why a value of a program can't be used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It has the wrong type.
    Type(Place),
    /// It has the right type and the wrong value.
    Value(Place),
    /// Python code failed while it was read.
    Python(PyErr),
    /// It is too large or too deep for the short way.
    Large,
}

/// A message, and the field that it is about.
#[derive(Debug, Default)]
pub(crate) struct Place {
    message: String,
    /// From the outside in, reversed.
    path: Vec<String>,
}

impl Failure {
    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::Type(Place { message: message.into(), path: Vec::new() })
    }

    pub(crate) fn value_error(message: impl Into<String>) -> Self {
        Self::Value(Place { message: message.into(), path: Vec::new() })
    }

    /// Adds the field that the failure happened in. `[3]` is an item of a list.
    pub(crate) fn at(mut self, field: impl FnOnce() -> String) -> Self {
        if let Self::Type(place) | Self::Value(place) = &mut self {
            place.path.push(field());
        }
        self
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        f.write_str("`")?;
        for (depth, field) in self.path.iter().rev().take(16).enumerate() {
            let dot = depth > 0 && !field.starts_with('[');
            write!(f, "{}{}", if dot { "." } else { "" }, field.chars().take(64).collect::<String>())?;
        }
        let more = if self.path.len() > 16 { "…" } else { "" };
        write!(f, "{more}`: {}", self.message)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(place) | Self::Value(place) => place.fmt(f),
            Self::Python(error) => error.fmt(f),
            Self::Large => f.write_str("too large"),
        }
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: Display>(message: T) -> Self {
        Self::value_error(message.to_string())
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        // In Python, nothing is None.
        if found == de::Unexpected::Unit {
            return Self::type_error(format!("None instead of {expected}"));
        }
        Self::type_error(format!("{found} instead of {expected}"))
    }
}

impl ser::Error for Failure {
    fn custom<T: Display>(message: T) -> Self {
        Self::value_error(message.to_string())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Type(place) => PyTypeError::new_err(place.to_string()),
            Failure::Value(place) => PyValueError::new_err(place.to_string()),
            Failure::Python(error) => error,
            Failure::Large => PyValueError::new_err("the step is too large"),
        }
    }
}

/// Turns a message about an argument or a step into a `ValueError`.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Runs code of deloop. A panic, which would be a mistake in deloop, becomes a `RuntimeError` that `except Exception`
/// catches.
pub(crate) fn contained<T>(run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(PyRuntimeError::new_err(format!("deloop failed: {text}")))
        }
    }
}

/// Returns a failure of Python code as a `TypeError` about the value, unless it isn't an `Exception`: those, such as
/// `KeyboardInterrupt`, aren't about the value.
pub(crate) fn unreadable(py: Python<'_>, type_name: &str, error: PyErr) -> Failure {
    if error.is_instance_of::<PyException>(py) {
        Failure::type_error(format!("can't read a value of type {type_name}: {error}"))
    } else {
        Failure::Python(error)
    }
}
