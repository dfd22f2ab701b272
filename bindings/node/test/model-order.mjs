// Checks the order of messages as the model providers do. Each check returns the reason of a 400, or null.
//
// Where providers that speak the same API differ, the stricter rule holds: a system message only at the beginning, and
// nothing between a call and its result.

/** Returns why a provider would refuse the messages of this request, or null if it wouldn't. */
export function wrongOrder(api, body, items) {
  if (api === "chat") return chat(body.messages ?? []);
  return api === "responses" ? responses(items) : anthropic(body);
}

/** Returns the input of a Responses request as a list of items, those of earlier responses included. */
export function responseItems(body, stored = new Map()) {
  const given = typeof body.input === "string" ? [{ role: "user", content: body.input }] : (body.input ?? []);
  const items = given.map((item) => (item.type === "item_reference" ? (stored.get(item.id) ?? item) : item));
  return [...(stored.get(body.previous_response_id) ?? []), ...items];
}

function chat(messages) {
  if (messages.length === 0) return "messages must not be empty";
  let open = [];
  let conversation = false;
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    const { role } = message;
    if (role === "tool") {
      if (!open.includes(message.tool_call_id)) {
        return `${at}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'`;
      }
      if (typeof message.content !== "string" && !Array.isArray(message.content)) return `${at}: a tool message needs content`;
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (open.length > 0) return `${at}: an assistant message with 'tool_calls' must be followed by tool messages; missing: ${open}`;
    if (role === "system" || role === "developer") {
      if (conversation) return `${at}: a ${role} message is valid only at the beginning`;
      continue;
    }
    conversation = true;
    if (role === "assistant") {
      const calls = message.tool_calls;
      if (Array.isArray(calls) && calls.length === 0) return `${at}: tool_calls must not be empty`;
      if (!calls && !message.content) return `${at}: an assistant message needs content or tool_calls`;
      open = (calls ?? []).map((call) => call.id);
      if (new Set(open).size !== open.length || open.some((id) => !id)) return `${at}: the ids of tool_calls must differ`;
    } else if (role !== "user") return `${at}: unknown role ${role}`;
  }
  if (open.length > 0) return `the last tool_calls have no tool messages: ${open}`;
  return messages.at(-1).role === "assistant" ? "the last message must not be the assistant's" : null;
}

function responses(items) {
  if (items.length === 0) return "input must not be empty";
  let open = [];
  let answering = false;
  for (const [index, item] of items.entries()) {
    const kind = item.type ?? "message";
    const at = `input[${index}]`;
    if (kind === "function_call") {
      if (answering && open.length > 0) return `${at}: no tool output found for function call ${open[0]}`;
      answering = false;
      open.push(item.call_id);
    } else if (kind === "function_call_output") {
      if (!open.includes(item.call_id)) return `${at}: no tool call found for function call output with call_id ${item.call_id}`;
      open = open.filter((id) => id !== item.call_id);
      answering = true;
    } else if (kind === "message") {
      if (open.length > 0) return `${at}: no tool output found for function call ${open[0]}`;
      answering = false;
      if (!["user", "assistant", "system", "developer"].includes(item.role)) return `${at}: unknown role ${item.role}`;
    } else if (kind !== "reasoning") return `${at}: unknown item ${kind}`;
  }
  return open.length > 0 ? `no tool output found for function call ${open[0]}` : null;
}

function anthropic(body) {
  const messages = body.messages ?? [];
  if (messages.length === 0) return "messages: at least one message is required";
  if (!Number.isInteger(body.max_tokens)) return "max_tokens: field required";
  let awaited = [];
  const seen = new Set();
  for (const [index, message] of messages.entries()) {
    const at = `messages.${index}`;
    if (message.role !== (index % 2 ? "assistant" : "user")) return `${at}: roles must alternate, beginning with user; found ${message.role}`;
    const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
    if (!blocks?.length) return `${at}: content must not be empty`;
    if (blocks.some((block) => block.type === "text" && !block.text)) return `${at}: text content blocks must be non-empty`;
    const reason = message.role === "user" ? toolResults(blocks, awaited) : null;
    if (reason) return `${at}: ${reason}`;
    awaited = blocks.filter((block) => block.type === "tool_use").map((block) => block.id);
    if (awaited.some((id) => seen.has(id)) || new Set(awaited).size !== awaited.length) return `${at}: \`tool_use\` ids must be unique`;
    for (const id of awaited) seen.add(id);
  }
  return messages.at(-1).role === "user" ? null : "the last message must be the user's";
}

function toolResults(blocks, awaited) {
  const results = blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
  const unknown = results.filter((id) => !awaited.includes(id));
  if (unknown.length > 0) return `unexpected \`tool_use_id\` in \`tool_result\` blocks: ${unknown}`;
  const missing = awaited.filter((id) => !results.includes(id));
  if (missing.length > 0) return `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing}`;
  if (new Set(results).size !== results.length) return "each tool_use must have a single result";
  return blocks.slice(0, results.length).some((block) => block.type !== "tool_result")
    ? "`tool_result` blocks must come first in the content"
    : null;
}
