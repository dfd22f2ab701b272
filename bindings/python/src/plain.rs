//! Gives values of Python a meaning in JSON.

use std::borrow::Cow;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMemoryView, PySet, PyString,
    PyTuple, PyType,
};

use crate::failure::{Failure, unreadable};

/// How often a value may turn into another one before it is plain: a model may return a model.
const TURNS: usize = 8;

/// A value of Python that JSON has too.
pub(crate) enum Plain<'a, 'py> {
    Nothing,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
    Dict(&'a Bound<'py, PyDict>),
    /// Something else that has the same meaning.
    Other(Bound<'py, PyAny>),
}

/// Returns what a value means in JSON.
pub(crate) fn plain<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Result<Plain<'a, 'py>, Failure> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Plain::Text(text_of(text)?));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(Plain::Dict(dict));
    }
    if value.is_none() {
        return Ok(Plain::Nothing);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Plain::Bool(flag.is_true()));
    }
    if let Ok(number) = value.cast::<PyInt>() {
        return Ok(int(number));
    }
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(Plain::List(list));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(float(number.value()));
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return Ok(Plain::Tuple(tuple));
    }
    special(value)
}

/// Follows a value until JSON has it, and shows that to `see`.
pub(crate) fn resolved<'py, T>(
    value: &Bound<'py, PyAny>,
    see: impl FnOnce(Plain<'_, 'py>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match plain(value)? {
        Plain::Other(other) => {
            let mut other = other;
            for _ in 0..TURNS {
                let next = match plain(&other)? {
                    Plain::Other(next) => next,
                    found => return see(found),
                };
                other = next;
            }
            Err(Failure::type_error(format!("can't read a value of type {}", type_name(value))))
        }
        found => see(found),
    }
}

/// Returns a text. Half a surrogate pair becomes �, as when a line of JSON is read.
pub(crate) fn text_of<'a>(text: &'a Bound<'_, PyString>) -> Result<Cow<'a, str>, Failure> {
    if let Ok(text) = text.to_str() {
        return Ok(Cow::Borrowed(text));
    }
    let py = text.py();
    let units = text.call_method1(intern!(py, "encode"), ("utf-16-le", "surrogatepass"))?;
    let units = units.cast::<PyBytes>().map_err(PyErr::from)?;
    let units = units.as_bytes().chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Ok(Cow::Owned(text))
}

/// Returns the key of an object: JSON has only texts.
pub(crate) fn key_of(key: &Bound<'_, PyAny>) -> Result<String, Failure> {
    resolved(key, |key| {
        Ok(match key {
            Plain::Text(text) => text.into_owned(),
            Plain::Nothing => "null".to_owned(),
            Plain::Bool(flag) => flag.to_string(),
            Plain::Unsigned(number) => number.to_string(),
            Plain::Signed(number) => number.to_string(),
            Plain::Float(number) => serde_json::Value::from(number).to_string(),
            Plain::Tuple(tuple) => text_of(&tuple.str()?)?.into_owned(),
            _ => return Err(Failure::type_error("a key must be a text or a number")),
        })
    })
}

/// A number that is too large for 64 bits becomes a float, as when JSON is read; one that is too large for that is null.
fn int<'a, 'py>(number: &Bound<'py, PyInt>) -> Plain<'a, 'py> {
    if let Ok(number) = number.extract::<i64>() {
        return u64::try_from(number).map_or(Plain::Signed(number), Plain::Unsigned);
    }
    if let Ok(number) = number.extract::<u64>() {
        return Plain::Unsigned(number);
    }
    number.extract::<f64>().map_or(Plain::Nothing, float)
}

fn float<'a, 'py>(number: f64) -> Plain<'a, 'py> {
    if number.is_finite() { Plain::Float(number) } else { Plain::Nothing }
}

pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().qualname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string())
}

/// Returns what a value that isn't of a basic type stands for.
fn special<'a, 'py>(value: &Bound<'py, PyAny>) -> Result<Plain<'a, 'py>, Failure> {
    let stands_for = stand_in(value).map_err(|error| unreadable(value.py(), &type_name(value), error))?;
    stands_for.map(Plain::Other).ok_or_else(|| {
        Failure::type_error(format!(
            "can't read a value of type {}; pass a dict, a list, a text or a number",
            type_name(value)
        ))
    })
}

fn stand_in<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return value.call_method1(intern!(py, "decode"), ("utf-8", "replace")).map(Some);
    }
    if value.is_instance_of::<PyMemoryView>() {
        return value.call_method0(intern!(py, "tobytes")).map(Some);
    }
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        return sorted(value).map(Some);
    }
    let kind = value.get_type();
    if value.is_instance(class(py, &ENUM, "enum", "Enum")?)? {
        return value.getattr(intern!(py, "value")).map(Some);
    }
    let has = |name: &Bound<'py, PyString>| kind.hasattr(name);
    if has(intern!(py, "model_dump"))? {
        return value.call_method0(intern!(py, "model_dump")).map(Some);
    }
    for fields in [intern!(py, "__dataclass_fields__"), intern!(py, "__attrs_attrs__")] {
        if has(fields)? {
            return attributes(value, &kind.getattr(fields)?).map(Some);
        }
    }
    for method in [intern!(py, "isoformat"), intern!(py, "tolist"), intern!(py, "__fspath__")] {
        if has(method)? {
            return value.call_method0(method).map(Some);
        }
    }
    if value.is_instance(class(py, &MAPPING, "collections.abc", "Mapping")?)? {
        return py.get_type::<PyDict>().call1((value,)).map(Some);
    }
    if value.is_instance(class(py, &SEQUENCE, "collections.abc", "Sequence")?)?
        || value.is_instance(class(py, &VIEW, "collections.abc", "MappingView")?)?
    {
        return py.get_type::<PyList>().call1((value,)).map(Some);
    }
    in_words(value)
}

static ENUM: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static MAPPING: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static SEQUENCE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static VIEW: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Imports a class when the first unusual value needs it, so that `import deloop` stays fast.
fn class<'a, 'py>(
    py: Python<'py>,
    cell: &'a PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<&'a Bound<'py, PyType>> {
    cell.import(py, module, name)
}

/// Returns the items of a set in an order that doesn't depend on the process.
fn sorted<'py>(set: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = set.py();
    let builtins = py.import(intern!(py, "builtins"))?;
    let by = PyDict::new(py);
    by.set_item(intern!(py, "key"), builtins.getattr(intern!(py, "repr"))?)?;
    builtins.getattr(intern!(py, "sorted"))?.call((set,), Some(&by))
}

/// Returns the fields of a data class, or of a class of `attrs`, as a dict.
fn attributes<'py>(value: &Bound<'py, PyAny>, fields: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let dict = PyDict::new(py);
    for field in fields.try_iter()? {
        let field = field?;
        // `attrs` lists attributes, data classes have a dict by name.
        let name = field.getattr_opt(intern!(py, "name"))?.unwrap_or(field);
        let name = name.cast_into::<PyString>().map_err(PyErr::from)?;
        if let Some(found) = value.getattr_opt(&name)? {
            dict.set_item(name, found)?;
        }
    }
    Ok(dict.into_any())
}

/// Returns what an object says of itself; `None` if that contains its address, which says nothing and is different
/// each time.
fn in_words<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_error = value.is_instance_of::<pyo3::exceptions::PyBaseException>();
    let words = if is_error { value.repr()? } else { value.str()? };
    let has_address = words.to_cow().map_or(true, |words| words.contains(" at 0x"));
    Ok((!has_address).then(|| words.into_any()))
}
