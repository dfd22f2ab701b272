//! Reads JSON that may be damaged, deep, huge or of an unexpected shape.

pub(crate) mod bounded;
pub(crate) mod document;
pub(crate) mod field;
pub(crate) mod lenient;
pub(crate) mod loose;
pub(crate) mod mend;
pub(crate) mod nesting;
pub(crate) mod peek;
