use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::openapi::{ApiContent, ApiOperation};

pub(super) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/openapi.json", "get_openapi", document)
            .summary("Get this document")
            .answers("The document.", ApiContent::json_like::<Value>(json!({"openapi": "3.1.0"}))),
    ]
}

/// `GET /v1/openapi.json`: the description of all operations.
async fn document() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| crate::openapi_document().to_string());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}
