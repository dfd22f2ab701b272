// What goes wrong easily with LangChain.js.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { Guard } from "deloop";
import { deloopMiddleware } from "deloop/langchain";
import { Command, interrupt } from "@langchain/langgraph";
import { createAgent, createMiddleware, humanInTheLoopMiddleware, modelRetryMiddleware, summarizationMiddleware, tool, ToolMessage, toolRetryMiddleware } from "langchain";
import { z } from "zod";

import { FakeModel, sameCalls, scripts } from "./fake-model.mjs";
import { assertSameRequests, assertValid, FailingTool, firstWith, loopSteps, RecordingGuard } from "./harness.mjs";
import { failingTools, FileSaver, models } from "./langchain-tools.mjs";

const NUDGE = "[deloop] You ran";
const schema = z.object({ url: z.string() });
const prompt = { messages: [{ role: "user", content: "Fetch the data." }] };
const fetches = { name: "convert", description: "Convert a page.", schema };
const roomy = { recursionLimit: 100 };

async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

const guarded = (options) => deloopMiddleware({ logger: null, ...options });

test("a tool that throws doesn't end the run, and the model gets the same text as without deloop", async (t) => {
  const runs = [];
  for (const middleware of [[], [guarded()]]) {
    const model = await fake(t, (request) => (request.turns < 2 ? { calls: [["convert", { url: `https://example.test/${request.turns}` }]] } : { text: "Done." }));
    const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware });
    await agent.invoke(prompt);
    assert.ok(model.requests[1].shows("Error: no such table: orders\n Please fix your mistakes."));
    runs.push(model.requests);
  }
  assertSameRequests(...runs);
});

test("toolErrors: throw ends the run, as any other wrapToolCall does", async (t) => {
  const model = await fake(t);
  const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware: [guarded({ toolErrors: "throw" })] });
  await assert.rejects(agent.invoke(prompt), /no such table: orders/);
  const other = createMiddleware({ name: "other", wrapToolCall: (request, handler) => handler(request) });
  const without = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware: [other] });
  await assert.rejects(without.invoke(prompt), /no such table: orders/);
});

test("an error of another middleware ends the run with and without deloop", async (t) => {
  const model = await fake(t);
  const broken = createMiddleware({ name: "broken", wrapToolCall: () => { throw new RangeError("mine"); } });
  for (const middleware of [[broken], [guarded(), broken]]) {
    const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware });
    await assert.rejects(agent.invoke(prompt), /mine/);
  }
});

test("calls that fail the schema: the run goes on, and they count", async (t) => {
  const runs = [];
  for (const on of [false, true]) {
    const model = await fake(t, sameCalls([["convert", { address: 1 }]]));
    const failing = new FailingTool();
    const guard = guarded();
    const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: on ? [guard] : [] });
    await agent.invoke(prompt, roomy).catch((error) => assert.equal(error.name, "GraphRecursionError"));
    assert.equal(failing.ran.length, 0);
    if (on) {
      assertValid(model);
      assert.equal(firstWith(model.requests, "[deloop]"), 3);
      assert.equal(guard.decision?.action, "stop");
    }
    // LangChain.js puts a stack trace into the message, and a stack with a middleware has more lines.
    runs.push(model.requests.slice(0, 3).map(({ raw }) => ({ raw: raw.replaceAll(/\\n    at [^"]*?(?=\\n Please)/g, "") })));
  }
  assertSameRequests(...runs);
});

test("a call of a tool that doesn't exist is answered as without deloop", async (t) => {
  const runs = [];
  for (const middleware of [[], [guarded()]]) {
    const model = await fake(t, (request) => (request.turns < 2 ? { calls: [["nothing", { a: request.turns }]] } : { text: "Done." }));
    const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware });
    await agent.invoke(prompt);
    runs.push(model.requests);
  }
  assertSameRequests(...runs);
});

test("deloop adds no node: the recursion limit allows as many requests as before", async (t) => {
  const model = await fake(t);
  const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware: [guarded({ mode: "observe" })] });
  await assert.rejects(agent.invoke(prompt), { name: "GraphRecursionError" });
  assert.equal(model.requests.length, 13);
});

test("parallel calls: one nudge, all calls refused at once, a valid order", async (t) => {
  const model = await fake(t, scripts["same-failing-batch"]());
  const failing = new FailingTool();
  const guard = guarded();
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: [guard] });
  const { messages } = await agent.invoke(prompt, roomy);
  assertValid(model);
  assert.equal(failing.ran.length, 15, "3 calls in each of 5 turns");
  assert.equal(firstWith(model.requests, NUDGE), 3);
  const refused = messages.filter((message) => message.getType() === "tool" && message.text.startsWith("[deloop] Blocked."));
  assert.equal(refused.length, 3);
});

test("retries of toolRetryMiddleware: deloop first counts a call once, deloop last counts each run of the tool", async (t) => {
  const retry = () => toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 0, jitter: false });
  for (const [order, ran] of [["first", 15], ["last", 5]]) {
    const model = await fake(t);
    const failing = new FailingTool();
    const middleware = order === "first" ? [guarded(), retry()] : [retry(), guarded()];
    const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware });
    await agent.invoke(prompt, roomy);
    assertValid(model);
    assert.equal(failing.ran.length, ran);
    assert.equal(firstWith(model.requests, NUDGE), 3);
  }
});

test("deloop last with toolErrors: throw lets the retries happen", async (t) => {
  const model = await fake(t, (request) => (request.turns === 0 ? { calls: [["convert", { url: "x" }]] } : { text: "Done." }));
  const failing = new FailingTool();
  const middleware = [toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 0, jitter: false }), guarded({ toolErrors: "throw" })];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware });
  await agent.invoke(prompt);
  assert.equal(failing.ran.length, 3);
});

test("retries of a failing request are one turn", async (t) => {
  let number = 0;
  const loop = sameCalls([["convert", { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => (number++ % 2 === 0 ? { status: 500, error: "overloaded" } : loop(request)));
  const failing = new FailingTool();
  const rungs = [];
  const middleware = [guarded({ onDecision: ({ rung }) => rungs.push(rung) }), modelRetryMiddleware({ maxRetries: 2, initialDelayMs: 0, jitter: false })];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware });
  await agent.invoke(prompt);
  assert.equal(model.requests.length, 16);
  assert.equal(failing.ran.length, 5);
  assert.deepEqual(rungs, ["nudge", "second-nudge", "block", "hand-over", "stop"]);
});

test("a call that a person rejects is answered once, and the run goes on", async (t) => {
  const model = await fake(t, (request) => (request.turns === 0 ? { calls: [["convert", { url: "x" }]] } : { text: "Done." }));
  const failing = new FailingTool();
  const middleware = [guarded(), humanInTheLoopMiddleware({ interruptOn: { convert: true } })];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware, checkpointer: new FileSaver() });
  const config = { configurable: { thread_id: "t" } };
  await agent.invoke(prompt, config);
  const done = await agent.invoke(new Command({ resume: { decisions: [{ type: "reject", message: "Not this one." }] } }), config);
  assertValid(model);
  assert.equal(failing.ran.length, 0);
  assert.equal(done.messages.at(-1).text, "Done.");
});

test("the guard gets every step, once and in order", async (t) => {
  const model = await fake(t);
  const guard = new RecordingGuard(new Guard({ deliver: "tool" }));
  const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware: [deloopMiddleware({ guard, logger: null })] });
  await agent.invoke(prompt);
  assert.deepEqual(guard.short, loopSteps());
  assert.deepEqual(guard.steps[2].calls, [{ id: "call_0000", tool: "convert", args: { url: "https://example.test/data" } }]);
  assert.equal(guard.steps[3].output, "no such table: orders");
});

test("threads of one agent are sessions of their own", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const stops = [];
  const guard = guarded({ onStop: (decision) => stops.push(decision.session) });
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: [guard], checkpointer: new FileSaver() });
  const threads = ["a", "b", "c"];
  await Promise.all(threads.map((thread_id) => agent.invoke(prompt, { configurable: { thread_id }, ...roomy })));
  assertValid(model);
  assert.equal(failing.ran.length, 15);
  assert.deepEqual(stops.sort(), threads);
});

test("runs without a thread are sessions of their own", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const stops = [];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: [guarded({ onStop: ({ session }) => stops.push(session) })] });
  await Promise.all([agent.invoke(prompt, roomy), agent.invoke(prompt, roomy)]);
  assert.equal(failing.ran.length, 10);
  assert.equal(new Set(stops).size, 2);
});

test("a crash, then a resume: the same call counts once", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const rungs = [];
  let calls = 0;
  const crashing = createMiddleware({
    name: "crashing",
    wrapToolCall: async (request, handler) => {
      const result = await handler(request).catch((error) => new ToolMessage({ content: String(error), tool_call_id: request.toolCall.id, status: "error" }));
      calls += 1;
      if (calls === 2) throw new Error("killed");
      return result;
    },
  });
  const middleware = [guarded({ onDecision: (decision) => rungs.push(decision.rung) }), crashing];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware, checkpointer: new FileSaver() });
  const config = { configurable: { thread_id: "t" }, ...roomy };
  await assert.rejects(agent.invoke(prompt, config), /killed/);
  await agent.invoke(null, config);
  assertValid(model);
  assert.equal(failing.ran.length, 6, "the call that was interrupted ran twice");
  assert.equal(model.requests.length, 8);
  assert.deepEqual(rungs, ["nudge", "second-nudge", "block", "hand-over", "stop"]);
});

test("processes that take turns with one checkpointer", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const checkpointer = new FileSaver();
  const agents = [0, 1].map(() => createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: [guarded()], checkpointer }));
  const config = { configurable: { thread_id: "t" }, recursionLimit: 4 };
  let input = prompt;
  for (let round = 0; round < 8; round += 1) {
    const done = await agents[round % 2].invoke(input, config).catch((error) => assert.equal(error.name, "GraphRecursionError"));
    if (done !== undefined) break;
    input = null;
  }
  assertValid(model);
  assert.equal(model.requests.length, 8);
  assert.equal(failing.ran.length, 5);
});

test("a run from an earlier checkpoint continues from the state at that point", async (t) => {
  const model = await fake(t);
  const rungs = [];
  const agent = createAgent({
    model: models(model).chat, tools: failingTools(new FailingTool()), checkpointer: new FileSaver(),
    middleware: [guarded({ onDecision: ({ rung }) => rungs.push(rung) })],
  });
  const config = { configurable: { thread_id: "t" }, recursionLimit: 9 };
  await assert.rejects(agent.invoke(prompt, config), { name: "GraphRecursionError" });
  assert.deepEqual(rungs, ["nudge"]);
  let early;
  for await (const state of agent.graph.getStateHistory(config)) {
    if (state.values.messages?.length === 5 && state.next.includes("model_request")) early = state.config;
  }
  await assert.rejects(agent.invoke(null, { ...early, recursionLimit: 6 }), { name: "GraphRecursionError" });
  assertValid(model);
  assert.deepEqual(rungs.slice(0, 3), ["nudge", "nudge", "second-nudge"], "the first nudge is given again");
});

test("an interrupt in a tool waits for a person", async (t) => {
  const model = await fake(t, (request) => (request.turns === 0 ? { calls: [["convert", { url: "x" }]] } : { text: "Done." }));
  const asking = tool(async () => `answer: ${interrupt("May I?")}`, fetches);
  const agent = createAgent({ model: models(model).chat, tools: [asking], middleware: [guarded()], checkpointer: new FileSaver() });
  const config = { configurable: { thread_id: "t" } };
  const waiting = await agent.invoke(prompt, config);
  assert.equal(waiting.__interrupt__[0].value, "May I?");
  const done = await agent.invoke(new Command({ resume: "yes" }), config);
  assert.equal(done.messages.at(-1).text, "Done.");
  assert.ok(model.requests[1].shows("answer: yes"));
});

test("an abort ends the run with its reason", async (t) => {
  const model = await fake(t);
  const aborter = new AbortController();
  const aborting = tool(async () => { aborter.abort(); throw new Error("stopped by hand"); }, fetches);
  const agent = createAgent({ model: models(model).chat, tools: [aborting], middleware: [guarded()] });
  await assert.rejects(agent.invoke(prompt, { signal: aborter.signal }));
  assert.equal(model.requests.length, 1);
});

test("tools that return messages, blocks and commands", async (t) => {
  const returns = [
    ({ id }) => new ToolMessage({ content: "same page", tool_call_id: id, name: "convert", artifact: { kept: true } }),
    ({ id }) => new ToolMessage({ content: [{ type: "text", text: "same page" }], tool_call_id: id, name: "convert" }),
    ({ id }) => new Command({ update: { messages: [new ToolMessage({ content: "same page", tool_call_id: id, name: "convert" })] } }),
  ];
  for (const [index, returned] of returns.entries()) {
    const model = await fake(t);
    const returning = tool(async (_, config) => returned({ id: config.toolCallId ?? config.toolCall.id }), fetches);
    const decisions = [];
    const agent = createAgent({ model: models(model).chat, tools: [returning], middleware: [guarded({ onDecision: (decision) => decisions.push(decision.action) })] });
    const state = await agent.invoke(prompt).catch((error) => assert.equal(error.name, "GraphRecursionError"));
    assertValid(model);
    assert.ok(decisions.includes("nudge"), `${decisions}`);
    assert.equal(model.requests.some((request) => request.shows(NUDGE)), index < 2);
    if (state !== undefined) assert.ok(state.messages.length > 0);
  }
});

test("a subagent in a tool is a session of its own", async (t) => {
  const loop = sameCalls([["convert", { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => {
    if (request.shows("You are the subagent")) return loop(request);
    return request.turns === 0 ? { calls: [["delegate", { task: "convert it" }]] } : { text: "Delegated." };
  });
  const failing = new FailingTool();
  const sessions = [];
  const guard = () => guarded({ onDecision: ({ session }) => sessions.push(session) });
  const inner = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware: [guard()] });
  const delegate = tool(async () => {
    const { messages } = await inner.invoke({ messages: [{ role: "user", content: "You are the subagent." }] });
    return messages.at(-1).text;
  }, { name: "delegate", description: "Delegate.", schema: z.object({ task: z.string() }) });
  const outer = createAgent({ model: models(model).chat, tools: [delegate], middleware: [guard()], checkpointer: new FileSaver() });
  const { messages } = await outer.invoke(prompt, { configurable: { thread_id: "parent" } });
  assertValid(model);
  assert.equal(messages.at(-1).text, "Delegated.");
  assert.equal(failing.ran.length, 5);
  assert.equal(new Set(sessions).size, 1);
  assert.notEqual(sessions[0], "parent");
});

test("a summary is a compaction: the ladder starts over", async (t) => {
  const loop = sameCalls([["convert", { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => (request.tools.length === 0 ? { text: "A summary." } : loop(request)));
  const rungs = [];
  const middleware = [
    guarded({ onDecision: ({ rung }) => rungs.push(rung) }),
    summarizationMiddleware({ model: models(model).chat, trigger: { messages: 9 }, keep: { messages: 3 } }),
  ];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware });
  await agent.invoke(prompt, { recursionLimit: 60 }).catch((error) => assert.equal(error.name, "GraphRecursionError"));
  assertValid(model);
  assert.ok(rungs.filter((rung) => rung === "nudge").length >= 2, `the first nudge is given again: ${rungs}`);
});

test("structured output works, with its own retries", async (t) => {
  const runs = [];
  for (const on of [false, true]) {
    const model = await fake(t, (request) => {
      if (request.turns === 0) return { calls: [["convert", { url: "x" }]] };
      const name = request.tools.find((each) => each !== "convert");
      return { calls: [[name, request.turns === 1 ? { wrong: 1 } : { answer: "42" }]] };
    });
    const agent = createAgent({
      model: models(model).chat, tools: [tool(async () => "page", fetches)],
      responseFormat: z.object({ answer: z.string() }).meta({ title: "Answer" }), middleware: on ? [guarded()] : [],
    });
    const result = await agent.invoke(prompt);
    assert.deepEqual(result.structuredResponse, { answer: "42" });
    runs.push(model.requests);
  }
  assertSameRequests(...runs);
});

test("a message that a middleware inserts doesn't lift anything", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const beforeModel = (state) => (state.messages.at(-1).getType() === "tool" ? { messages: [{ role: "user", content: `Continue ${state.messages.length}.` }] } : undefined);
  const reminder = createMiddleware({ name: "reminder", beforeModel });
  const rungs = [];
  const guard = new RecordingGuard(new Guard({ deliver: "tool" }));
  const middleware = [deloopMiddleware({ guard, logger: null, onDecision: (decision) => rungs.push(decision.rung) }), reminder];
  const agent = createAgent({ model: models(model).chat, tools: failingTools(failing), middleware });
  await agent.invoke(prompt, roomy);
  assertValid(model);
  assert.deepEqual([...new Set(guard.short.filter((step) => step.startsWith("user")))], ["user human", "user harness"]);
  assert.equal(guard.short.filter((step) => step === "user human").length, 1);
  assert.deepEqual(rungs, ["nudge", "second-nudge", "block", "hand-over", "stop"]);
});

test("updates of a stream show deloop's messages in the nodes of LangChain", async (t) => {
  const model = await fake(t);
  const agent = createAgent({ model: models(model).chat, tools: failingTools(new FailingTool()), middleware: [guarded()] });
  const nodes = new Set();
  for await (const update of await agent.stream(prompt, { streamMode: "updates" })) for (const node of Object.keys(update)) nodes.add(node);
  assert.deepEqual([...nodes].sort(), ["model_request", "tools"]);
});

test("wrong options are errors that name the fix; require works", () => {
  assert.throws(() => deloopMiddleware({ exitBehavior: "throw" }), /exitBehavior is "end" or "error"/);
  const required = createRequire(import.meta.url)("deloop/langchain");
  assert.equal(required.deloopMiddleware({ logger: null }).name, "deloop");
});
