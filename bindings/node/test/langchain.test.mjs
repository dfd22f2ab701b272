// The row of LangChain.js: what a guarded agent does and what deloop leaves alone.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { test } from "node:test";

import { deloopMiddleware, StopError, stopErrorOf } from "deloop/langchain";
import { createAgent } from "langchain";

import { FakeModel, scripts } from "./fake-model.mjs";
import { assertSameRequests, assertValid, brokenGuard, FailingTool, firstWith, Log, placeOf, runPageProgram, runProgram, Workspace, writeRow } from "./harness.mjs";
import { failingTools, FileSaver, models, version, workspaceTools } from "./langchain-tools.mjs";

const NAME = "langchain-js";
const NUDGE = "[deloop] You ran";
const SECOND = "[deloop] This is the second warning";
const prompt = { messages: [{ role: "user", content: "Fetch the data." }] };

async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

/** Runs an agent to its end and returns its last state, by invoke or by stream (of tokens too). */
async function run(agent, input, config, stream) {
  if (!stream) return agent.invoke(input, config);
  let state;
  for await (const [mode, value] of await agent.stream(input, { ...config, streamMode: ["values", "messages"] })) {
    if (mode === "values") state = value;
  }
  return state;
}

test("without deloop a run goes on to its own limit", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing) });
  await assert.rejects(agent.invoke(prompt), { name: "GraphRecursionError" });
  assert.equal(model.requests.length, 13);
  writeRow(NAME, { version: version(), own_limit: `recursionLimit 25: ${model.requests.length} model calls, GraphRecursionError` });
});

for (const api of ["chat", "responses"]) {
  for (const stream of [false, true]) {
    test(`nudge, block and stop: ${api}, ${stream ? "stream" : "invoke"}`, async (t) => {
      const model = await fake(t);
      const failing = new FailingTool();
      const log = new Log();
      const guard = deloopMiddleware({ logger: log });
      const agent = createAgent({ model: models(model)[api], tools: failingTools(failing), middleware: [guard] });
      const result = await run(agent, prompt, {}, stream);
      assertValid(model);
      assert.equal(failing.ran.length, 5, "two calls were refused");
      assert.equal(model.requests.length, 8);
      assert.equal(firstWith(model.requests, NUDGE), 3);
      assert.equal(placeOf(model.requests[3], NUDGE), "tool");
      assert.equal(firstWith(model.requests, SECOND), 5);
      assert.equal(firstWith(model.requests, "[deloop] Blocked."), 6);
      assert.equal(model.requests.every((request) => (request.body.stream ?? false) === stream), true);
      const last = result.messages.at(-1);
      assert.match(last.text, /^\[deloop\] Stopped: /);
      assert.equal(last.response_metadata.deloop.status, "LOOP_DETECTED");
      assert.equal(guard.decision.action, "stop");
      assert.deepEqual([log.warnings.length, log.errors.length], [4, 1]);
      if (!stream) assert.deepEqual(Object.keys(result), ["messages"], "the state is private");
      writeRow(NAME, {
        nudge: "the end of the tool result: in request 4 and all later ones",
        block: `a ToolMessage with status "error" instead of the tool (${failing.ran.length} of 8 calls ran)`,
        stop: "normal return: the last message is an AIMessage with the reason; middleware.decision has the decision",
      });
    });
  }
}

for (const stream of [false, true]) {
  test(`exitBehavior "error": ${stream ? "stream" : "invoke"}`, async (t) => {
    const model = await fake(t);
    const stops = [];
    const guard = deloopMiddleware({ logger: null, exitBehavior: "error", onStop: (decision) => stops.push(decision) });
    const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware: [guard] });
    const error = await run(agent, prompt, {}, stream).then(() => null, (thrown) => thrown);
    const stop = stopErrorOf(error);
    assert.ok(stop instanceof StopError);
    assert.equal(stop.decision.status, "LOOP_DETECTED");
    assert.equal(stops.length, 1);
    assert.equal(stopErrorOf(new Error("other")), null);
    writeRow(NAME, { error: `exitBehavior "error": an error whose cause is a StopError (stopErrorOf finds it)` });
  });
}

for (const api of ["chat", "responses"]) {
  for (const stream of [false, true]) {
    test(`a healthy run of 30 turns is the same: ${api}, ${stream ? "stream" : "invoke"}`, async (t) => {
      const runs = [];
      for (const on of [false, true]) {
        const model = await fake(t, scripts.healthy());
        const middleware = on ? [deloopMiddleware({ logger: null })] : [];
        const agent = createAgent({ model: models(model)[api], tools: workspaceTools(new Workspace()), middleware });
        const result = await run(agent, prompt, { recursionLimit: 200 }, stream);
        assert.equal(result.messages.at(-1).text, "All tests pass now.");
        assertValid(model);
        runs.push(model.requests);
      }
      const same = assertSameRequests(...runs);
      assert.equal(same, 31);
      writeRow(NAME, { healthy: `${same} of ${same} requests identical` });
    });
  }
}

test("a crash inside deloop changes nothing", async (t) => {
  const runs = [];
  const log = new Log();
  for (const on of [false, true]) {
    const model = await fake(t);
    const middleware = on ? [deloopMiddleware({ guard: brokenGuard, logger: log })] : [];
    const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware });
    await assert.rejects(agent.invoke(prompt), { name: "GraphRecursionError" });
    runs.push(model.requests);
  }
  assert.equal(assertSameRequests(...runs), 13);
  assert.ok(log.errors.length >= 3 && log.errors.length <= 8, `once per kind: ${log.errors.length}`);
  writeRow(NAME, { crash: "the run goes on unchanged, one log line per kind" });
});

test("a resume in a new process continues where it was", async (t) => {
  const model = await fake(t);
  const program = `
    import { existsSync, readFileSync, writeFileSync } from "node:fs";
    import { createAgent } from "langchain";
    import { deloopMiddleware } from "deloop/langchain";
    import { FailingTool } from "../harness.mjs";
    import { failingTools, FileSaver, models } from "../langchain-tools.mjs";
    const [path, limit] = process.argv.slice(2);
    const old = existsSync(path);
    const saver = old ? FileSaver.fromText(readFileSync(path, "utf8")) : new FileSaver();
    const failing = new FailingTool();
    const guard = deloopMiddleware({ logger: null });
    const agent = createAgent({ model: models({ url: ${JSON.stringify(model.url)} }).chat, tools: failingTools(failing), middleware: [guard], checkpointer: saver });
    const config = { configurable: { thread_id: "t1" }, recursionLimit: Number(limit) };
    const input = old ? null : ${JSON.stringify(prompt)};
    const result = await agent.invoke(input, config).catch((error) => ({ messages: [{ text: error.name }] }));
    writeFileSync(path, saver.toText());
    console.log(JSON.stringify({ ran: failing.ran.length, text: result.messages.at(-1).text, stopped: guard.decision?.status ?? null }));`;
  const path = `${import.meta.dirname}/resume-${process.pid}.json`;
  t.after(() => rmSync(path, { force: true }));
  const outputs = [];
  for (const limit of [8, 5, 60]) outputs.push(JSON.parse(await runProgram(program, { args: [path, String(limit)] })));
  assertValid(model);
  assert.equal(outputs[0].text, "GraphRecursionError");
  assert.equal(outputs.reduce((sum, output) => sum + output.ran, 0), 5);
  assert.equal(outputs[2].stopped, "LOOP_DETECTED");
  assert.equal(model.requests.length, 8, "no rung was lost or climbed twice");
  assert.equal(firstWith(model.requests, NUDGE), 3);
  assert.ok(readFileSync(path, "utf8").length > 0);
  writeRow(NAME, { resume: "3 processes, one thread with a checkpointer: the same 8 requests" });
});

test("a stopped thread can go on: new text lifts the stop", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const guard = deloopMiddleware({ logger: null });
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: [guard], checkpointer: new FileSaver() });
  const config = { configurable: { thread_id: "t1" }, recursionLimit: 60 };
  await agent.invoke(prompt, config);
  const again = await agent.invoke({ messages: [{ role: "user", content: "Try once more." }] }, config);
  assertValid(model);
  assert.ok(failing.ran.length > 5, "the model was asked again and its calls ran");
  assert.match(again.messages.at(-1).text, /^\[deloop\] Stopped: /);
});

test("the program of the page runs", async (t) => {
  const model = await fake(t);
  const output = await runPageProgram("langchain-js", model, "mjs");
  assertValid(model);
  assert.equal(firstWith(model.requests, NUDGE), 3);
  assert.match(output, /Stopped/);
});
