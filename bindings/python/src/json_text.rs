//! Writes a value of Python as JSON, without recursion: for values that are large or deeply nested. What is read from the
//! text has the limits of a line of `deloop stream`.

use std::collections::HashSet;

use deloop_types::limits;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::failure::Failure;
use crate::plain::{Plain, key_of, resolved};

/// An object or list that is being written.
struct OpenValue<'py> {
    /// What it was made from: the same again inside is a cycle.
    identity: usize,
    items: OpenItems<'py>,
    at: usize,
    key: Option<String>,
}

enum OpenItems<'py> {
    List(Bound<'py, PyList>),
    Tuple(Bound<'py, PyTuple>),
    /// The items of a dict, as pairs.
    Dict(Bound<'py, PyList>),
}

/// Returns the JSON of a value.
pub(crate) fn json_text(value: &Bound<'_, PyAny>) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(limits::PLAIN);
    let mut open: Vec<OpenValue<'_>> = Vec::new();
    let mut within = HashSet::new();
    begin(value, &mut within, &mut open, &mut out).map_err(|failure| located(failure, &open))?;
    while let Some(level) = open.last_mut() {
        if let Some(item) = next(level, &mut out).map_err(|failure| located(failure, &open))? {
            let begun = begin(&item, &mut within, &mut open, &mut out);
            begun.map_err(|failure| located(failure, &open))?;
        } else if let Some(level) = open.pop() {
            within.remove(&level.identity);
        }
        if out.len() > limits::EVENT {
            return Err(Failure::value_error(format!("the step is longer than {} MiB", limits::EVENT >> 20)));
        }
    }
    Ok(out)
}

fn located(failure: Failure, open: &[OpenValue<'_>]) -> Failure {
    open.iter().rev().fold(failure, |failure, level| {
        failure.at(|| level.key.clone().unwrap_or_else(|| format!("[{}]", level.at.saturating_sub(1))))
    })
}

/// Writes what comes before the next item and returns the item; at the end, writes that.
fn next<'py>(level: &mut OpenValue<'py>, out: &mut Vec<u8>) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    let at = level.at;
    level.at += 1;
    let (length, end) = match &level.items {
        OpenItems::List(list) => (list.len(), b']'),
        OpenItems::Tuple(tuple) => (tuple.len(), b']'),
        OpenItems::Dict(pairs) => (pairs.len(), b'}'),
    };
    if at >= length {
        out.push(end);
        return Ok(None);
    }
    if at > 0 {
        out.push(b',');
    }
    Ok(Some(match &level.items {
        OpenItems::List(list) => list.get_item(at)?,
        OpenItems::Tuple(tuple) => tuple.get_item(at)?,
        OpenItems::Dict(pairs) => {
            let pair = pairs.get_item(at)?;
            let pair = pair.cast::<PyTuple>().map_err(PyErr::from)?;
            let key = key_of(&pair.get_item(0)?)?;
            write_text(&key, out);
            out.push(b':');
            level.key = Some(key);
            pair.get_item(1)?
        }
    }))
}

/// Writes a value, or the beginning of one that has items.
fn begin<'py>(
    value: &Bound<'py, PyAny>,
    within: &mut HashSet<usize>,
    open: &mut Vec<OpenValue<'py>>,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    resolved(value, |found| {
        let items = match found {
            Plain::List(list) => OpenItems::List(list.clone()),
            Plain::Tuple(tuple) => OpenItems::Tuple(tuple.clone()),
            Plain::Dict(dict) => OpenItems::Dict(dict.items()),
            single => {
                write_single(&single, out);
                return Ok(());
            }
        };
        out.push(if matches!(items, OpenItems::Dict(_)) { b'{' } else { b'[' });
        let identity = value.as_ptr() as usize;
        if !within.insert(identity) {
            return Err(Failure::value_error("the value contains itself"));
        }
        open.push(OpenValue { identity, items, at: 0, key: None });
        Ok(())
    })
}

/// Writes a value that has no items.
fn write_single(value: &Plain<'_, '_>, out: &mut Vec<u8>) {
    match value {
        Plain::Bool(true) => out.extend_from_slice(b"true"),
        Plain::Bool(false) => out.extend_from_slice(b"false"),
        Plain::Unsigned(number) => write_number(*number, out),
        Plain::Signed(number) => write_number(*number, out),
        Plain::Float(number) => write_number(*number, out),
        Plain::Text(words) => write_text(words, out),
        _ => out.extend_from_slice(b"null"),
    }
}

fn write_number(number: impl Into<serde_json::Value>, out: &mut Vec<u8>) {
    out.extend_from_slice(number.into().to_string().as_bytes());
}

fn write_text(words: &str, out: &mut Vec<u8>) {
    // Writing a text into memory doesn't fail.
    let _ = serde_json::to_writer(out, words);
}
