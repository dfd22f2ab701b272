//! Reads JSON that may be damaged, deep, huge or of an unexpected shape.

#[cfg(test)]
mod any_json;
pub(crate) mod bounded;
pub(crate) mod document;
mod excerpt;
pub(crate) mod field;
pub(crate) mod peek;
mod repair;
mod scan;
pub(crate) mod tolerant;
mod truncate;
