//! The OpenAPI document. It is made from the same table as the router, and its schemas from the types that are sent, so
//! that it can't describe another API than the server has.

mod content;
mod document;
mod operation;
mod parameter;
mod refusals;

pub(crate) use content::{ApiContent, all_required};
pub(crate) use operation::ApiOperation;
pub(crate) use parameter::ApiParameter;

use serde_json::Value;

/// Returns the OpenAPI document of the server, as JSON.
#[must_use]
pub fn openapi_document() -> Value {
    document::document(&crate::routes::operations())
}
