// The row of the OpenAI client: Chat Completions and Responses.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { Guard } from "deloop";
import { StopError, ToolLoop } from "deloop/openai";
import OpenAI from "openai";

import { firstWith, RecordingGuard, versionOf } from "./harness.mjs";
import { defineTests, failingTool, fake } from "./plain-loops.mjs";
import { ways } from "./openai-ways.mjs";

const require = createRequire(import.meta.url);

defineTests({ name: "openai-node", version: versionOf("openai"), page: "openai-node", ways, ToolLoop, StopError, module: "openai-ways.mjs" });

test("responses with previous_response_id: the history stays at the provider", async (t) => {
  const model = await fake(t);
  const { failing, runTool } = failingTool();
  const client = new OpenAI({ baseURL: `${model.url}/v1`, apiKey: "fake" });
  const tools = [{ type: "function", name: "convert", parameters: { type: "object", properties: { url: { type: "string" } } }, strict: false }];
  const loop = new ToolLoop({ logger: null });
  loop.user("Fetch the data.");
  let [input, previous_response_id, turn] = ["Fetch the data."];
  do {
    const response = await client.responses.create({ model: "fake-model", input, previous_response_id, tools });
    turn = loop.answered(response);
    input = await turn.results(runTool);
    previous_response_id = response.id;
  } while (!turn.done());
  assert.deepEqual(model.requests.map((request) => request.refused).filter(Boolean), []);
  assert.equal(failing.ran.length, 5);
  assert.equal(firstWith(model.requests, "[deloop] You ran"), 3);
});

test("the helper of the client for streams", async (t) => {
  const model = await fake(t);
  const client = new OpenAI({ baseURL: `${model.url}/v1`, apiKey: "fake" });
  const { failing, runTool } = failingTool();
  const tools = [{ type: "function", function: { name: "convert", parameters: { type: "object", properties: { url: { type: "string" } } } } }];
  const messages = [{ role: "user", content: "Fetch the data." }];
  const loop = new ToolLoop({ logger: null });
  for (;;) {
    const response = await client.chat.completions.stream({ model: "fake-model", messages, tools }).finalChatCompletion();
    messages.push(response.choices[0].message);
    const turn = loop.answered(response, messages);
    messages.push(...(await turn.results(runTool)));
    if (turn.done()) break;
  }
  assert.equal(failing.ran.length, 5);
});

test("require works", () => {
  assert.equal(typeof require("deloop/openai").ToolLoop, "function");
});

// The Python package has the same test: nine steps, and the same decisions.
for (const output of ["Error: no such table: orders", "Traceback (most recent call last):", '{"error":"no"}', '{"success":false}']) {
  test(`what an output says is not declared: ${output}`, async () => {
    const guard = new RecordingGuard(new Guard({ deliver: "tool" }));
    const loop = new ToolLoop({ guard, logger: null });
    const happened = [];
    for (let n = 0; n < 9; n++) {
      const call = { id: `c${n}`, type: "function", function: { name: "convert", arguments: '{"url":"x"}' } };
      const message = { role: "assistant", content: null, tool_calls: [call] };
      const turn = loop.answered({ choices: [{ message }], usage: null, model: "fake-model" });
      const refused = turn.refusal(`c${n}`) !== undefined;
      const placed = turn.result(`c${n}`, output);
      happened.push(turn.done() ? "stop" : refused ? "block" : placed === output ? "-" : "nudge");
    }
    const results = guard.steps.filter((step) => step.type === "result");
    assert.equal(results.length, 9);
    for (const step of results) assert.deepEqual([step.ok, step.outcome, step.error_type], [undefined, undefined, undefined]);
    assert.ok(happened.includes("nudge") && !happened.includes("block") && !happened.includes("stop"), happened.join());
  });
}
