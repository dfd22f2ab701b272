// The row of the OpenAI client: Chat Completions and Responses.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { StopError, ToolLoop } from "deloop/openai";
import OpenAI from "openai";

import { firstWith, versionOf } from "./harness.mjs";
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
