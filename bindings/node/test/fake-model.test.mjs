// The fake model refuses what the providers refuse; without that, the other tests would show nothing.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FakeModel } from "./fake-model.mjs";

const user = { role: "user", content: "Hi" };
const call = (id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
const calls = (...ids) => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
const result = (id) => ({ role: "tool", tool_call_id: id, content: "ok" });
const uses = (...ids) => ({ role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "f", input: {} })) });
const block = (id) => ({ type: "tool_result", tool_use_id: id, content: "ok" });
const text = { type: "text", text: "And?" };
const made = (id) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const output = (id) => ({ type: "function_call_output", call_id: id, output: "ok" });

const cases = {
  "/v1/chat/completions": {
    valid: [[user], [user, calls("a", "b"), result("b"), result("a"), user], [{ role: "system", content: "Be brief." }, user]],
    invalid: {
      "no messages": [],
      "a user message between a call and its result": [user, calls("a"), user, result("a")],
      "a user message between results": [user, calls("a", "b"), result("a"), user, result("b")],
      "a call without a result": [user, calls("a")],
      "a result without a call": [user, result("a")],
      "two results": [user, calls("a"), result("a"), result("a")],
      "a system message in the middle": [user, calls("a"), result("a"), { role: "system", content: "Stop." }],
      "the assistant's message last": [user, { role: "assistant", content: "Hi" }],
    },
  },
  "/v1/responses": {
    valid: [[user], [user, made("a"), made("b"), output("b"), output("a"), user]],
    invalid: {
      "a message between a call and its output": [user, made("a"), user, output("a")],
      "a call without an output": [user, made("a")],
      "an output without a call": [user, output("a")],
      "a reference to an item that isn't there": [user, { type: "item_reference", id: "msg_x" }],
    },
  },
  "/v1/messages": {
    valid: [[user], [user, uses("a", "b"), { role: "user", content: [block("b"), block("a"), text] }]],
    invalid: {
      "two user messages in a row": [user, user],
      "text before the results": [user, uses("a"), { role: "user", content: [text, block("a")] }],
      "a missing result": [user, uses("a", "b"), { role: "user", content: [block("a")] }],
      "a result without a call": [user, { role: "assistant", content: "Hi" }, { role: "user", content: [block("a")] }],
      "the assistant's message last": [user, { role: "assistant", content: "Hi" }],
      "an empty text": [user, uses("a"), { role: "user", content: [block("a"), { type: "text", text: "" }] }],
    },
  },
};

for (const [path, { valid, invalid }] of Object.entries(cases)) {
  const status = async (model, messages) => {
    const body = { model: "m", max_tokens: 10, ...(path.endsWith("responses") ? { input: messages } : { messages }) };
    return (await fetch(model.url + path, { method: "POST", body: JSON.stringify(body) })).status;
  };

  test(`${path} takes valid messages`, async (t) => {
    const model = await FakeModel.start();
    t.after(() => model.close());
    for (const messages of valid) assert.equal(await status(model, messages), 200);
  });

  for (const [name, messages] of Object.entries(invalid)) {
    test(`${path} refuses ${name}`, async (t) => {
      const model = await FakeModel.start();
      t.after(() => model.close());
      assert.equal(await status(model, messages), 400);
      assert.equal(typeof model.requests[0].refused, "string");
    });
  }
}
