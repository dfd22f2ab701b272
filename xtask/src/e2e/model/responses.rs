//! OpenAI Responses.

use serde_json::{Value, json};

use super::Said;
use super::http::Reply;

pub(super) fn reply(said: &Said, request: &Value) -> Reply {
    let message = |id: &str, text: &str| {
        json!({
            "type": "message", "id": format!("m_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]
        })
    };
    let items: Vec<Value> = match said {
        Said::Text { id, text } => vec![message(id, text)],
        Said::Calls { id, text, calls } => {
            let calls = calls.iter().map(|call| {
                json!({
                    "type": "function_call", "id": format!("fc_{}", call.id), "call_id": format!("call_{}", call.id),
                    "name": call.tool, "arguments": call.args.to_string(), "status": "completed"
                })
            });
            text.iter().map(|text| message(id, text)).chain(calls).collect()
        }
    };
    let open = json!({"id": format!("resp_{}", said.id()), "object": "response", "status": "in_progress", "output": []});
    let mut complete = open.clone();
    complete["status"] = "completed".into();
    complete["output"] = items.clone().into();
    complete["usage"] = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15
    });
    if request["stream"] != true {
        return Reply::Json(200, complete);
    }
    let mut events = vec![json!({"type": "response.created", "response": open})];
    for (index, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": complete}));
    Reply::Events { events, named: true, done: false }
}
