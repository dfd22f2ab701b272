//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::Said;
use super::http::Reply;

pub(super) fn reply(said: &Said, request: &Value) -> Reply {
    let (message, reason) = match said {
        Said::Text { text, .. } => (json!({"role": "assistant", "content": text}), "stop"),
        Said::Calls { calls, text, .. } => {
            let calls: Vec<Value> = calls
                .iter()
                .enumerate()
                .map(|(index, call)| {
                    json!({
                        "index": index, "id": format!("call_{}", call.id), "type": "function",
                        "function": {"name": call.tool, "arguments": call.args.to_string()}
                    })
                })
                .collect();
            (json!({"role": "assistant", "content": text, "tool_calls": calls}), "tool_calls")
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let body = |object: &str, choice: Value| {
        json!({
            "id": format!("cc_{}", said.id()), "object": object, "created": 1_700_000_000, "model": request["model"],
            "choices": [choice]
        })
    };
    if request["stream"] != true {
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        let mut whole = body("chat.completion", choice);
        whole["usage"] = usage;
        return Reply::Json(200, whole);
    }
    let object = "chat.completion.chunk";
    let first = body(object, json!({"index": 0, "delta": message, "finish_reason": null}));
    let mut last = body(object, json!({"index": 0, "delta": {}, "finish_reason": reason}));
    last["usage"] = usage;
    Reply::Events { events: vec![first, last], named: false, done: true }
}
