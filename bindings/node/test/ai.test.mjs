// The row of the AI SDK, for both versions: what a guarded run does and what it leaves alone.
import assert from "node:assert/strict";
import { test } from "node:test";

import { deloop, StopError } from "deloop/ai";
import { generateText, stepCountIs, streamText, ToolLoopAgent } from "ai";

import { FakeModel, scripts } from "./fake-model.mjs";
import { assertSameRequests, assertValid, brokenGuard, FailingTool, firstWith, Log, placeOf, runProgram, Workspace, writeRow } from "./harness.mjs";
import { failingTools, models, version, workspaceTools } from "./ai-tools.mjs";

const NAME = process.env.DELOOP_FRAMEWORK;
const NUDGE = "[deloop] You ran";
const SECOND = "[deloop] This is the second warning";
const many = stepCountIs(40);

async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

/** Runs a guarded loop and returns everything that a test looks at. */
async function guarded(t, { api = "chat", stream = false, script, options = {}, run = {} } = {}) {
  const model = await fake(t, script);
  const tool = new FailingTool();
  const log = new Log();
  const guard = deloop({ tools: failingTools(tool), logger: log, ...options });
  const settings = { ...guard, model: models(model)[api], prompt: "Fetch the data.", stopWhen: many, ...run };
  const result = stream ? await drained(streamText({ onError() {}, ...settings })) : await generateText(settings);
  return { model, tool, log, guard, result };
}

/** Reads a stream to its end and returns what it gave. */
async function drained(result) {
  const parts = [];
  for await (const part of result.fullStream) parts.push(part);
  return { parts, text: await result.text, finishReason: await result.finishReason, response: await result.response, steps: await result.steps };
}

test("without deloop a run goes on to its own limit", async (t) => {
  const model = await fake(t);
  const tool = new FailingTool();
  const one = await generateText({ model: models(model).chat, tools: failingTools(tool), prompt: "Fetch the data." });
  assert.equal(one.finishReason, "tool-calls");
  assert.equal(tool.ran.length, 1);
  const agent = new ToolLoopAgent({ model: models(model).chat, tools: failingTools(tool) });
  const result = await agent.generate({ prompt: "Fetch the data." });
  assert.equal(result.steps.length, 20);
  assert.equal(result.text, "");
  assert.equal(tool.ran.length, 21);
  writeRow(NAME, { version: version(), own_limit: "1 step (generateText, streamText), 20 steps (ToolLoopAgent); both return normally" });
});

for (const api of ["chat", "responses", "anthropic"]) {
  for (const stream of [false, true]) {
    test(`nudge, block and stop: ${api}, ${stream ? "streamText" : "generateText"}`, async (t) => {
      const { model, tool, log, guard, result } = await guarded(t, { api, stream });
      assertValid(model);
      assert.equal(tool.ran.length, 5, "two calls were refused");
      assert.equal(model.requests.length, 8);
      assert.equal(firstWith(model.requests, NUDGE), 3);
      assert.equal(firstWith(model.requests, SECOND), 5);
      assert.equal(placeOf(model.requests[3], NUDGE), "user");
      assert.equal(firstWith(model.requests, "[deloop] Blocked."), 6);
      assert.equal(placeOf(model.requests[6], "[deloop] Blocked."), api === "anthropic" ? "user" : "tool");
      assert.match(result.text, /^\[deloop\] Stopped: /);
      assert.equal(result.finishReason, "stop");
      assert.equal(guard.decision.action, "stop");
      assert.equal(guard.decision.status, "LOOP_DETECTED");
      assert.equal(log.warnings.length, 4);
      assert.equal(log.errors.length, 1);
      if (api === "chat" && !stream) {
        writeRow(NAME, {
          nudge: "a user message after the results of the turn: in request 4 and all later ones",
          block: `the call isn't run, its result is the reason (${tool.ran.length} of 8 calls ran)`,
          stop: "normal return: text is the reason, finishReason \"stop\"; guard.decision has the decision",
        });
      }
    });
  }
}

test("a stopped chat can go on: its messages are valid, and new text lifts the stop", async (t) => {
  const { model, tool, guard, result } = await guarded(t, { options: { session: "chat" } });
  const messages = [{ role: "user", content: "Fetch the data." }, ...result.response.messages];
  if (version().startsWith("7")) messages.splice(1, messages.length, ...result.responseMessages);
  const settings = { ...guard, model: models(model).chat, stopWhen: many };
  const next = [...messages, { role: "user", content: "Try once more." }];
  await generateText({ ...settings, messages: next, stopWhen: stepCountIs(1) });
  assert.equal(guard.decision, null, "the decision of the stopped run is gone");
  const again = await generateText({ ...settings, messages: [...next, { role: "assistant", content: "Yes." }, { role: "user", content: "Go on." }] });
  assertValid(model);
  assert.equal(firstWith(model.requests.slice(8), NUDGE), 0, "the earlier nudge is still at its place");
  assert.ok(tool.ran.length > 5, "the model was asked again and its calls ran");
  assert.match(again.text, /^\[deloop\] Stopped: /);
});

for (const stream of [false, true]) {
  test(`exitBehavior "error": ${stream ? "streamText" : "generateText"}`, async (t) => {
    const stops = [];
    const options = { exitBehavior: "error", onStop: (decision) => stops.push(decision) };
    if (stream) {
      const errors = [];
      const model = await fake(t);
      const tool = new FailingTool();
      const guard = deloop({ tools: failingTools(tool), logger: null, ...options });
      const run = streamText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many, onError: ({ error }) => errors.push(error) });
      const parts = [];
      for await (const part of run.fullStream) parts.push(part);
      const part = parts.find((each) => each.type === "error");
      assert.ok(part.error instanceof StopError);
      assert.ok(errors[0] instanceof StopError);
      assert.equal(model.requests.length, 8);
    } else {
      const error = await guarded(t, { options }).then(() => null, (thrown) => thrown);
      assert.ok(error instanceof StopError);
      assert.equal(error.decision.action, "stop");
      assert.match(error.message, /failed the same way/);
    }
    assert.equal(stops.length, 1);
    writeRow(NAME, { error: 'exitBehavior "error": StopError from generateText; an error part and onError in streamText' });
  });
}

test("the stop condition ends a run without a final answer", async (t) => {
  const model = await fake(t);
  const tool = new FailingTool();
  const guard = deloop({ tools: failingTools(tool), logger: null });
  const result = await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: [many, guard.stopped] });
  assert.equal(result.text, "");
  assert.equal(result.finishReason, "tool-calls");
  assert.equal(guard.decision.action, "stop");
  assert.equal(model.requests.length, 8);
});

for (const stream of [false, true]) {
  for (const api of ["chat", "responses", "anthropic"]) {
    test(`a healthy run of 30 turns is the same: ${api}, ${stream ? "streamText" : "generateText"}`, async (t) => {
      const runs = [];
      for (const on of [false, true]) {
        const model = await fake(t, scripts.healthy());
        const tools = workspaceTools(new Workspace());
        const settings = { model: models(model)[api], prompt: "Make the tests pass.", stopWhen: many };
        const all = on ? { ...settings, ...deloop({ tools, logger: null }) } : { ...settings, tools };
        const result = stream ? await drained(streamText(all)) : await generateText(all);
        assert.equal(result.text, "All tests pass now.");
        assertValid(model);
        runs.push(model.requests);
      }
      const same = assertSameRequests(...runs);
      assert.equal(same, 31);
      writeRow(NAME, { healthy: `${same} of ${same} requests identical` });
    });
  }
}

for (const stream of [false, true]) {
  test(`a crash inside deloop changes nothing: ${stream ? "streamText" : "generateText"}`, async (t) => {
    const runs = [];
    const log = new Log();
    for (const on of [false, true]) {
      const model = await fake(t);
      const tool = new FailingTool();
      const tools = failingTools(tool);
      const settings = { model: models(model).chat, prompt: "Fetch.", stopWhen: stepCountIs(12) };
      const store = { get() { throw new Error("get"); }, set() { throw new Error("set"); } };
      const all = on ? { ...settings, ...deloop({ tools, session: "s", guard: brokenGuard, logger: log, store }) } : { ...settings, tools };
      const result = stream ? await drained(streamText(all)) : await generateText(all);
      assert.equal(result.steps.length, 12);
      assert.equal(tool.ran.length, 12);
      runs.push(model.requests);
    }
    assertSameRequests(...runs);
    assert.ok(log.errors.length >= 3 && log.errors.length <= 8, `once per kind: ${log.errors}`);
    assert.match(log.errors[0], /the run continues without it/);
    writeRow(NAME, { crash: "the run goes on unchanged, one log line per kind" });
  });
}

test("a resume in a new process continues where it was", async (t) => {
  const model = await fake(t);
  const program = (steps) => `
    import { readFileSync, writeFileSync, existsSync } from "node:fs";
    import { generateText, stepCountIs } from "ai";
    import { deloop } from "deloop/ai";
    import { failingTools, models } from "../ai-tools.mjs";
    import { FailingTool } from "../harness.mjs";
    const [path] = process.argv.slice(2);
    const saved = existsSync(path) ? JSON.parse(readFileSync(path)) : { messages: [{ role: "user", content: "Fetch the data." }], rows: {} };
    const store = { get: (id) => saved.rows[id], set: (id, state) => void (saved.rows[id] = state) };
    const tool = new FailingTool();
    const guard = deloop({ tools: failingTools(tool), session: "chat-1", store, logger: null });
    const result = await generateText({ ...guard, model: models({ url: ${JSON.stringify(model.url)} }).chat, messages: saved.messages, stopWhen: stepCountIs(${steps}) });
    saved.messages.push(...(result.responseMessages ?? result.response.messages));
    writeFileSync(path, JSON.stringify(saved));
    console.log(JSON.stringify({ ran: tool.ran.length, text: result.text, stopped: guard.decision?.status ?? null }));`;
  const path = `${import.meta.dirname}/resume-${process.pid}-${NAME}.json`;
  t.after(async () => (await import("node:fs")).rmSync(path, { force: true }));
  const outputs = [];
  for (const steps of [4, 2, 40]) outputs.push(JSON.parse(await runProgram(program(steps), { args: [path] })));
  assertValid(model);
  assert.deepEqual(outputs.map((output) => output.ran), [4, 1, 0]);
  assert.equal(outputs[2].stopped, "LOOP_DETECTED");
  assert.equal(model.requests.length, 8, "no rung was lost or climbed twice");
  assert.equal(firstWith(model.requests, NUDGE), 3);
  assert.equal(firstWith(model.requests, SECOND), 5);
  writeRow(NAME, { resume: "3 processes, one session: the same 8 requests, nudges in place" });
});

test("ToolLoopAgent: generate and stream, with a session from its context", async (t) => {
  for (const stream of [false, true]) {
    const model = await fake(t);
    const tool = new FailingTool();
    const guard = deloop({ tools: failingTools(tool), logger: null, session: ({ context }) => context?.chat });
    const context = { chat: `agent-${stream}` };
    const agent = new ToolLoopAgent({ ...guard, model: models(model).chat, runtimeContext: context, experimental_context: context });
    const result = stream ? await drained(await agent.stream({ prompt: "Fetch." })) : await agent.generate({ prompt: "Fetch." });
    assertValid(model);
    assert.equal(tool.ran.length, 5);
    assert.match(result.text, /^\[deloop\] Stopped: /);
    assert.equal(guard.decision.session, context.chat);
  }
});
