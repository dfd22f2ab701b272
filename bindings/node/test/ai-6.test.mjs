// What only AI SDK 6 has: refusals by a wrapped tool.
import assert from "node:assert/strict";
import { test } from "node:test";

import { deloop } from "deloop/ai";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

import { failingTools, models } from "./ai-tools.mjs";
import { FakeModel } from "./fake-model.mjs";
import { assertValid, FailingTool, firstWith } from "./harness.mjs";

const many = stepCountIs(40);

async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

test("a refused call is a tool error with the reason", async (t) => {
  const model = await fake(t);
  const guard = deloop({ tools: failingTools(new FailingTool()), logger: null });
  const result = await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many });
  const error = result.steps[5].content.find((part) => part.type === "tool-error").error;
  assert.equal(error.name, "RefusedCallError");
  assert.match(error.message, /^\[deloop\] Blocked\./);
});

test("without the tools deloop can't refuse, but it nudges and stops", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const settings = { ...deloop({ logger: null }), tools: failingTools(failing), model: models(model).chat, prompt: "Fetch.", stopWhen: many };
  const result = await generateText(settings);
  assertValid(model);
  assert.equal(firstWith(model.requests, "[deloop] You ran"), 3);
  assert.equal(failing.ran.length, 8);
  assert.match(result.text, /^\[deloop\] Stopped: /);
});

test("attended: a call is refused unless onDecision allows it", async (t) => {
  const rans = [];
  for (const onDecision of [undefined, () => true, (decision) => decision.action !== "ask"]) {
    const model = await fake(t);
    const failing = new FailingTool();
    const guard = deloop({ tools: failingTools(failing), logger: null, attended: true, onDecision });
    await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: stepCountIs(8) });
    assertValid(model);
    rans.push(failing.ran.length);
  }
  assert.ok(rans[0] < 8 && rans[1] === 8 && rans[2] === rans[0], `${rans}`);
});

test("needsApproval of a tool still asks", async (t) => {
  const model = await fake(t);
  let ran = 0;
  const tools = { convert: tool({ inputSchema: z.object({ url: z.string() }), needsApproval: true, execute: async () => `page ${(ran += 1)}` }) };
  const result = await generateText({ ...deloop({ tools, logger: null }), model: models(model).chat, prompt: "Fetch.", stopWhen: many });
  assert.ok(result.content.some((part) => part.type === "tool-approval-request"));
  assert.equal(ran, 0);
});
