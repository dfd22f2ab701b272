// Writes the answers of the fake model in the formats of the three APIs, whole or as a stream of events.

/** Returns the body of an answer that isn't streamed. */
export function wholeAnswer(api, answer) {
  return { chat: chatBody, responses: responsesBody, anthropic: anthropicBody }[api](answer);
}

/** Returns the events of a streamed answer, each as text. */
export function streamedAnswer(api, answer, body) {
  return { chat: chatEvents, responses: responsesEvents, anthropic: anthropicEvents }[api](answer, body);
}

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, prompt_tokens_details: { cached_tokens: 40 } };
const halves = (text) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)].filter((part) => part !== "");
const event = (data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

function chatBody({ id, model, text, calls }) {
  const message = { role: "assistant", content: text || null, refusal: null };
  if (calls.length > 0) {
    message.tool_calls = calls.map((call) => ({ id: call.id, type: "function", function: { name: call.tool, arguments: call.args } }));
  }
  const finish_reason = calls.length > 0 ? "tool_calls" : "stop";
  return { id, object: "chat.completion", created: 0, model, choices: [{ index: 0, message, finish_reason, logprobs: null }], usage: USAGE };
}

function chatEvents({ id, model, text, calls }, body) {
  const chunk = (delta, finish_reason = null) => {
    const choices = [{ index: 0, delta, finish_reason, logprobs: null }];
    return `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 0, model, choices })}\n\n`;
  };
  const events = [chunk({ role: "assistant", content: "" }), ...halves(text).map((content) => chunk({ content }))];
  for (const [index, call] of calls.entries()) {
    events.push(chunk({ tool_calls: [{ index, id: call.id, type: "function", function: { name: call.tool, arguments: "" } }] }));
    for (const part of halves(call.args)) events.push(chunk({ tool_calls: [{ index, function: { arguments: part } }] }));
  }
  events.push(chunk({}, calls.length > 0 ? "tool_calls" : "stop"));
  if (body.stream_options?.include_usage) {
    events.push(`data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 0, model, choices: [], usage: USAGE })}\n\n`);
  }
  return [...events, "data: [DONE]\n\n"];
}

function responsesBody({ id, model, text, calls }) {
  const content = [{ type: "output_text", text, annotations: [] }];
  const message = { type: "message", id: `${id}m`, role: "assistant", status: "completed", content };
  const items = calls.map((call) => ({ type: "function_call", id: `fc_${call.id}`, call_id: call.id, name: call.tool, arguments: call.args, status: "completed" }));
  const usage = {
    input_tokens: 100, input_tokens_details: { cached_tokens: 40 }, output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 120,
  };
  const output = text ? [message, ...items] : items;
  return { id, object: "response", created_at: 0, status: "completed", model, output, usage, error: null, incomplete_details: null, tools: [], parallel_tool_calls: true };
}

function responsesEvents(answer) {
  const whole = responsesBody(answer);
  let sequence_number = 0;
  const numbered = (data) => event({ ...data, sequence_number: sequence_number++ });
  const events = [numbered({ type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } })];
  for (const [output_index, item] of whole.output.entries()) {
    const at = { output_index, item_id: item.id };
    const begun = item.type === "message" ? { ...item, status: "in_progress", content: [] } : { ...item, status: "in_progress", arguments: "" };
    events.push(numbered({ type: "response.output_item.added", output_index, item: begun }));
    if (item.type === "message") {
      const [part] = item.content;
      events.push(numbered({ type: "response.content_part.added", ...at, content_index: 0, part: { ...part, text: "" } }));
      for (const delta of halves(part.text)) events.push(numbered({ type: "response.output_text.delta", ...at, content_index: 0, delta, logprobs: [] }));
      events.push(numbered({ type: "response.output_text.done", ...at, content_index: 0, text: part.text, logprobs: [] }));
      events.push(numbered({ type: "response.content_part.done", ...at, content_index: 0, part }));
    } else {
      for (const delta of halves(item.arguments)) events.push(numbered({ type: "response.function_call_arguments.delta", ...at, delta }));
      events.push(numbered({ type: "response.function_call_arguments.done", ...at, name: item.name, arguments: item.arguments }));
    }
    events.push(numbered({ type: "response.output_item.done", output_index, item }));
  }
  return [...events, numbered({ type: "response.completed", response: whole })];
}

function anthropicBody({ id, model, text, calls }) {
  const content = text ? [{ type: "text", text }] : [];
  for (const call of calls) content.push({ type: "tool_use", id: call.id, name: call.tool, input: JSON.parse(call.args) });
  const usage = { input_tokens: 60, output_tokens: 20, cache_read_input_tokens: 40, cache_creation_input_tokens: 0 };
  return { id, type: "message", role: "assistant", model, content, stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null, usage };
}

function anthropicEvents(answer) {
  const whole = anthropicBody(answer);
  const events = [event({ type: "message_start", message: { ...whole, content: [], stop_reason: null } })];
  for (const [index, block] of whole.content.entries()) {
    const begun = block.type === "text" ? { ...block, text: "" } : { ...block, input: {} };
    events.push(event({ type: "content_block_start", index, content_block: begun }));
    const deltas =
      block.type === "text"
        ? halves(block.text).map((text) => ({ type: "text_delta", text }))
        : halves(JSON.stringify(block.input)).map((partial_json) => ({ type: "input_json_delta", partial_json }));
    for (const delta of deltas) events.push(event({ type: "content_block_delta", index, delta }));
    events.push(event({ type: "content_block_stop", index }));
  }
  events.push(event({ type: "message_delta", delta: { stop_reason: whole.stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } }));
  return [...events, event({ type: "message_stop" })];
}
