//! Gemini generateContent and streamGenerateContent.

use serde_json::{Value, json};

use super::Said;
use super::http::Reply;

pub(super) fn reply(said: &Said, request: &Value, stream: bool) -> Reply {
    let parts: Vec<Value> = match said {
        Said::Text { text, .. } => vec![json!({"text": routing(request).unwrap_or_else(|| text.clone())})],
        Said::Calls { calls, text, .. } => {
            let calls =
                calls.iter().map(|call| json!({"functionCall": {"name": call.tool, "args": call.args}}));
            text.iter().map(|text| json!({"text": text})).chain(calls).collect()
        }
    };
    let whole = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "fake", "responseId": said.id()
    });
    if stream {
        Reply::Events { events: vec![whole], named: false, done: false }
    } else {
        Reply::Json(200, whole)
    }
}

/// Gemini CLI first asks a small model how hard the task is, and wants JSON back.
fn routing(request: &Value) -> Option<String> {
    let config = &request["generationConfig"];
    let schema = format!("{}{}", config["responseSchema"], config["responseJsonSchema"]);
    schema.contains("complexity").then(|| {
        json!({"complexity_reasoning": "x", "complexity_score": 10, "reasoning": "x", "model_choice": "flash"})
            .to_string()
    })
}
