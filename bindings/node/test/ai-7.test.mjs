// What only AI SDK 7 has: approvals.
import assert from "node:assert/strict";
import { test } from "node:test";

import { deloop } from "deloop/ai";
import { generateText, isLoopFinished, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

import { failingTools, models } from "./ai-tools.mjs";
import { FakeModel } from "./fake-model.mjs";
import { assertValid, FailingTool, firstWith, runPageProgram } from "./harness.mjs";

const many = isStepCount(40);
const inputSchema = z.object({ url: z.string() });

async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

test("isLoopFinished never ends a loop; with deloop it ends", async (t) => {
  const model = await fake(t, undefined);
  const without = new FailingTool();
  const limit = ({ steps }) => steps.length >= 40;
  const endless = await generateText({ model: models(model).chat, tools: failingTools(without), prompt: "Fetch.", stopWhen: [isLoopFinished(), limit] });
  assert.equal(endless.steps.length, 40);
  const guard = deloop({ tools: failingTools(new FailingTool()), logger: null });
  const result = await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: isLoopFinished() });
  assert.equal(result.steps.length, 9);
});

test("refuses calls without the tools: toolApproval does", async (t) => {
  for (const stream of [false, true]) {
    const model = await fake(t);
    const failing = new FailingTool();
    const settings = { ...deloop({ logger: null }), tools: failingTools(failing), model: models(model).chat, prompt: "Fetch.", stopWhen: many };
    const run = stream ? streamText(settings) : await generateText(settings);
    const steps = await run.steps;
    assertValid(model);
    assert.equal(failing.ran.length, 5);
    const parts = steps[5].content.map((part) => part.type);
    assert.ok(parts.includes("tool-approval-request") && parts.includes("tool-approval-response"), `${parts}`);
  }
});

for (const [name, rule] of [
  ["a function", () => ({ convert: undefined, toolApproval: ({ toolCall }) => (toolCall.toolName === "convert" ? { type: "denied", reason: "not today" } : undefined) })],
  ["a status per tool", () => ({ toolApproval: { convert: { type: "denied", reason: "not today" } } })],
  ["a function per tool", () => ({ toolApproval: { convert: (input, { toolCallId }) => (toolCallId && input.url ? { type: "denied", reason: "not today" } : undefined) } })],
]) {
  test(`your own toolApproval counts: ${name}`, async (t) => {
    const model = await fake(t);
    const failing = new FailingTool();
    const guard = deloop({ tools: failingTools(failing), logger: null, toolApproval: rule().toolApproval });
    await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: isStepCount(3) });
    assert.equal(failing.ran.length, 0);
    assert.ok(model.requests[1].shows("not today"));
  });
}

test("needsApproval of a tool still asks, and an approved call runs", async (t) => {
  for (const needsApproval of [true, async () => true]) {
    const model = await fake(t, (request) => (request.turns > 0 ? { text: "Done." } : { calls: [["convert", { url: "x" }]] }));
    let ran = 0;
    const tools = { convert: tool({ inputSchema, needsApproval, execute: async () => `page ${(ran += 1)}` }) };
    const guard = deloop({ tools, session: "s", logger: null });
    const settings = { ...guard, model: models(model).chat, stopWhen: many };
    const messages = [{ role: "user", content: "Fetch." }];
    const asked = await generateText({ ...settings, messages });
    const request = asked.content.find((part) => part.type === "tool-approval-request");
    assert.ok(request, "the run waits for a person");
    assert.equal(ran, 0);
    const response = { role: "tool", content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }] };
    const done = await generateText({ ...settings, messages: [...messages, ...asked.responseMessages, response] });
    assertValid(model);
    assert.equal(ran, 1);
    assert.equal(done.text, "Done.");
  }
});

test("attended: deloop asks a person through an approval request", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const decisions = [];
  const guard = deloop({ tools: failingTools(failing), session: "s", logger: null, attended: true, onDecision: (decision) => decisions.push(decision) });
  const settings = { ...guard, model: models(model).chat, stopWhen: many };
  const messages = [{ role: "user", content: "Fetch." }];
  const asked = await generateText({ ...settings, messages });
  const question = decisions.find((decision) => decision.action === "ask");
  assert.ok(question, "the ladder of an attended run asks");
  const request = asked.content.findLast((part) => part.type === "tool-approval-request");
  assert.equal(request.toolCall.toolCallId, question.calls[0]);
  const ran = failing.ran.length;
  const response = { role: "tool", content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }] };
  await generateText({ ...settings, messages: [...messages, ...asked.responseMessages, response], stopWhen: isStepCount(1) });
  assertValid(model);
  assert.ok(failing.ran.length > ran, "a call that a person approved runs");
});

test("attended: onDecision can refuse a call without asking", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const guard = deloop({ tools: failingTools(failing), logger: null, attended: true, onDecision: (decision) => decision.action !== "ask" });
  const result = await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: isStepCount(10) });
  assertValid(model);
  assert.ok(failing.ran.length < 10, "a call was refused");
  assert.ok(result.steps.flatMap((step) => step.content).every((part) => part.type !== "tool-approval-request" || part.isAutomatic));
});

test("the program of the page runs", async (t) => {
  const model = await fake(t);
  const output = await runPageProgram("ai-sdk", model, "mjs");
  assertValid(model);
  assert.equal(firstWith(model.requests, "[deloop] You ran"), 3);
  assert.match(output, /Stopped/);
});
