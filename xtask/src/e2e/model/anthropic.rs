//! Anthropic Messages.

use serde_json::{Value, json};

use super::Said;
use super::http::Reply;

pub(super) fn reply(said: &Said, request: &Value) -> Reply {
    let (blocks, reason) = match said {
        Said::Text { text, .. } => (vec![json!({"type": "text", "text": text})], "end_turn"),
        Said::Calls { calls, text, .. } => {
            let words = text.iter().map(|text| json!({"type": "text", "text": text}));
            let uses = calls.iter().map(|call| {
                json!({"type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.tool, "input": call.args})
            });
            (words.chain(uses).collect(), "tool_use")
        }
    };
    let mut message = json!({
        // Claude Code merges messages that share an id.
        "id": format!("msg_{}", said.id()), "type": "message", "role": "assistant", "model": request["model"],
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 1}
    });
    if request["stream"] != true {
        message["content"] = Value::Array(blocks);
        message["stop_reason"] = reason.into();
        return Reply::Json(200, message);
    }
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = if block["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
        } else {
            let mut start = block.clone();
            start["input"] = json!({});
            (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}));
    events.push(json!({"type": "message_stop"}));
    Reply::Events { events, named: true, done: false }
}
