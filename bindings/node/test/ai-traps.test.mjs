// What goes wrong easily with the AI SDK, in both versions.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { Guard } from "deloop";
import { deloop } from "deloop/ai";
import { convertToModelMessages, generateText, Output, readUIMessageStream, stepCountIs, streamText, tool, ToolLoopAgent, wrapLanguageModel } from "ai";
import { z } from "zod";

import { failingTools, models, version, workspaceTools } from "./ai-tools.mjs";
import { FakeModel, sameCalls, scripts } from "./fake-model.mjs";
import { assertSameRequests, assertValid, FailingTool, firstWith, Log, loopSteps, RecordingGuard, Workspace } from "./harness.mjs";

const NUDGE = "[deloop] You ran";
const many = stepCountIs(40);
const v7 = version().startsWith("7");
const inputSchema = z.object({ url: z.string() });

async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

test("the defaults for the number of steps stay", async (t) => {
  const model = await fake(t, scripts.healthy());
  const settings = { model: models(model).chat, prompt: "Make the tests pass." };
  const guarded = () => deloop({ tools: workspaceTools(new Workspace()), logger: null });
  assert.equal((await generateText({ ...guarded(), ...settings })).steps.length, 1);
  const stream = streamText({ ...guarded(), ...settings });
  await stream.consumeStream();
  assert.equal((await stream.steps).length, 1);
  const { prompt, ...agent } = settings;
  assert.equal((await new ToolLoopAgent({ ...guarded(), ...agent }).generate({ prompt })).steps.length, 20);
});

for (const stream of [false, true]) {
  test(`parallel calls: one nudge after all results, all calls refused at once (${stream ? "stream" : "generate"})`, async (t) => {
    const model = await fake(t, scripts["same-failing-batch"]());
    const failing = new FailingTool();
    const guard = deloop({ tools: failingTools(failing), logger: null });
    const settings = { ...guard, model: models(model).anthropic, prompt: "Fetch.", stopWhen: many };
    if (stream) await streamText(settings).consumeStream();
    else await generateText(settings);
    assertValid(model);
    assert.equal(guard.decision?.action, "stop");
    assert.equal(failing.ran.length, 15, "3 calls in each of 5 turns");
    assert.equal(firstWith(model.requests, NUDGE), 3);
    const nudged = model.requests[3].body.messages.at(-1).content;
    assert.deepEqual(nudged.map((block) => block.type), ["tool_result", "tool_result", "tool_result", "text"]);
    const refused = model.requests[6].body.messages.at(-1).content.filter((block) => block.type === "tool_result");
    assert.ok(refused.every((block) => JSON.stringify(block.content).includes("[deloop] Blocked.")));
  });
}

test("a streamed answer keeps the order of its parts", async (t) => {
  const orders = [];
  for (const on of [false, true]) {
    const model = await fake(t, scripts.healthy(4));
    const tools = workspaceTools(new Workspace());
    const run = streamText({ ...(on ? deloop({ tools, logger: null }) : { tools }), model: models(model).anthropic, prompt: "Go.", stopWhen: many });
    const types = [];
    for await (const part of run.fullStream) types.push(part.type === "tool-call" ? `tool-call ${part.toolName}` : part.type);
    orders.push({ types: types.filter((type) => !/^tool-(input|result|error)/.test(type)), steps: (await run.steps).map((step) => step.content.map((part) => part.type)) });
  }
  assert.deepEqual(orders[1], orders[0]);
});

test("your own prepareStep is called first, and what it returns counts", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const seen = [];
  const prepareStep = ({ stepNumber, messages }) => {
    seen.push(stepNumber);
    return { messages: [...messages.slice(0, 1), ...messages.slice(1)], temperature: 0.5, ...(v7 ? {} : { system: "Be brief." }) };
  };
  const guard = deloop({ tools: failingTools(failing), logger: null, prepareStep });
  await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many });
  assertValid(model);
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.ok(model.requests.every((request) => request.body.temperature === 0.5));
  assert.equal(firstWith(model.requests, NUDGE), 3);
});

test("your own prepareStep in the wrong place switches deloop off, and deloop says so", async (t) => {
  const model = await fake(t);
  const log = new Log();
  const failing = new FailingTool();
  const guard = deloop({ tools: failingTools(failing), logger: log });
  await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: stepCountIs(12), prepareStep: () => undefined });
  assert.equal(failing.ran.length, 12);
  assert.equal(log.warnings.length, 1);
  assert.match(log.warnings[0], /pass it to deloop\(\{ prepareStep \}\)/);
});

test("your own prepareStep that throws ends the run as it does without deloop", async (t) => {
  const model = await fake(t);
  const prepareStep = () => { throw new RangeError("mine"); };
  const guard = deloop({ tools: failingTools(new FailingTool()), logger: null, prepareStep });
  await assert.rejects(generateText({ ...guard, model: models(model).chat, prompt: "Fetch." }), { name: "RangeError", message: "mine" });
});

test("a model that your prepareStep gives by its name is guarded too, call by call", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const before = globalThis.AI_SDK_DEFAULT_PROVIDER;
  const chat = models(model).chat;
  globalThis.AI_SDK_DEFAULT_PROVIDER = { specificationVersion: v7 ? "v4" : "v3", languageModel: () => chat };
  t.after(() => (globalThis.AI_SDK_DEFAULT_PROVIDER = before));
  const guard = deloop({ tools: failingTools(failing), logger: null, prepareStep: () => ({ model: "fake-model" }) });
  const result = await generateText({ ...guard, model: chat, prompt: "Fetch.", stopWhen: [many, guard.stopped] });
  assertValid(model);
  assert.equal(failing.ran.length, 5);
  assert.equal(firstWith(model.requests, NUDGE), 3);
  assert.equal(result.steps.length, 8);
});

test("a model by its name works", async (t) => {
  const model = await fake(t);
  const before = globalThis.AI_SDK_DEFAULT_PROVIDER;
  globalThis.AI_SDK_DEFAULT_PROVIDER = { specificationVersion: v7 ? "v4" : "v3", languageModel: () => models(model).chat };
  t.after(() => (globalThis.AI_SDK_DEFAULT_PROVIDER = before));
  const guard = deloop({ tools: failingTools(new FailingTool()), logger: null });
  const result = await generateText({ ...guard, model: "fake-model", prompt: "Fetch.", stopWhen: many });
  assert.match(result.text, /^\[deloop\] Stopped: /);
});

test("your own middleware around the model still sees every answer", async (t) => {
  const model = await fake(t);
  let answers = 0;
  const middleware = { specificationVersion: v7 ? "v4" : "v3", wrapGenerate: async ({ doGenerate }) => { answers += 1; return doGenerate(); } };
  const guard = deloop({ tools: failingTools(new FailingTool()), logger: null });
  await generateText({ ...guard, model: wrapLanguageModel({ model: models(model).chat, middleware }), prompt: "Fetch.", stopWhen: many });
  assert.equal(answers, 8);
});

test("retries of a failing request are one turn", async (t) => {
  let number = 0;
  const loop = sameCalls([[null, { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => (number++ % 2 === 0 ? { status: 500, error: "overloaded" } : loop(request)));
  const failing = new FailingTool();
  const decisions = [];
  const guard = deloop({ tools: failingTools(failing), logger: null, onDecision: (decision) => decisions.push(decision.rung) });
  const { setTimeout: wait } = globalThis;
  t.after(() => (globalThis.setTimeout = wait));
  globalThis.setTimeout = (work, _, ...args) => wait(work, 0, ...args);
  await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many, maxRetries: 2 });
  assert.equal(model.requests.length, 16);
  assert.equal(failing.ran.length, 5);
  assert.deepEqual(decisions, ["nudge", "second-nudge", "block", "hand-over", "stop"]);
});

test("calls that fail the schema count, though nothing runs", async (t) => {
  for (const stream of [false, true]) {
    const model = await fake(t, sameCalls([["convert", { address: 1 }]]));
    const failing = new FailingTool();
    const guard = deloop({ tools: failingTools(failing), logger: null });
    const settings = { ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many };
    if (stream) await streamText({ ...settings, onError() {} }).consumeStream();
    else await generateText(settings);
    assertValid(model);
    assert.equal(failing.ran.length, 0);
    assert.equal(firstWith(model.requests, "[deloop]"), 3);
    assert.equal(guard.decision?.action, "stop");
  }
});

test("an abort inside a tool rejects with its reason", async (t) => {
  const model = await fake(t);
  const aborter = new AbortController();
  const reason = new Error("enough");
  const execute = async () => { aborter.abort(reason); throw reason; };
  const guard = deloop({ tools: { convert: tool({ inputSchema, execute }) }, logger: null });
  const run = generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many, abortSignal: aborter.signal });
  await assert.rejects(run, (error) => error === reason || error.name === "AbortError" || error.cause === reason);
  assert.equal(model.requests.length, 1);
});

test("runs of one agent at the same time are separate sessions", async (t) => {
  const loop = sameCalls([[null, { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => (request.shows("healthy") ? { text: "Fine." } : loop(request)));
  const failing = new FailingTool();
  const stops = [];
  const guard = deloop({ tools: failingTools(failing), logger: null, onStop: (decision) => stops.push(decision.session) });
  const agent = new ToolLoopAgent({ ...guard, model: models(model).chat });
  const prompts = ["Fetch A.", "Fetch B.", "healthy", "Fetch C."];
  const results = await Promise.all(prompts.map((prompt) => agent.generate({ prompt })));
  assertValid(model);
  assert.deepEqual(results.map((result) => result.text.startsWith("[deloop] Stopped")), [true, true, false, true]);
  assert.equal(failing.ran.length, 15);
  assert.equal(new Set(stops).size, 3);
});

test("a subagent has its own history in the session of its parent", async (t) => {
  const loop = sameCalls([["convert", { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => {
    if (request.shows("You are the subagent")) return loop(request);
    return request.turns === 0 ? { calls: [["delegate", { task: "convert it" }]] } : { text: "Delegated." };
  });
  const failing = new FailingTool();
  const inner = deloop({ tools: failingTools(failing), session: "parent", agent: "fetcher", logger: null });
  const execute = async () => (await generateText({ ...inner, model: models(model).chat, prompt: "You are the subagent.", stopWhen: many })).text;
  const outer = deloop({ tools: { delegate: tool({ inputSchema: z.object({ task: z.string() }), execute }) }, session: "parent", logger: null });
  const result = await generateText({ ...outer, model: models(model).chat, prompt: "Go.", stopWhen: many });
  assertValid(model);
  assert.equal(result.text, "Delegated.");
  assert.equal(outer.decision, null);
  assert.equal(inner.decision?.action, "stop");
  assert.equal(failing.ran.length, 5);
});

test("a subagent that shares guard and store doesn't overwrite the state of its parent", async (t) => {
  const loop = sameCalls([["convert", { url: "https://example.test/data" }]]);
  const model = await fake(t, (request) => {
    if (request.shows("You are the subagent")) return loop(request);
    return request.turns === 0 ? { calls: [["delegate", { task: "convert it" }]] } : { text: "Delegated." };
  });
  const guard = new Guard({ deliver: "user" });
  const store = new Map();
  const inner = deloop({ tools: failingTools(new FailingTool()), session: "parent", agent: "fetcher", guard, store, logger: null });
  const execute = async () => (await generateText({ ...inner, model: models(model).chat, prompt: "You are the subagent.", stopWhen: many })).text;
  const outer = deloop({ tools: { delegate: tool({ inputSchema: z.object({ task: z.string() }), execute }) }, session: "parent", guard, store, logger: null });
  await generateText({ ...outer, model: models(model).chat, prompt: "Go.", stopWhen: many });
  assert.deepEqual([...store.keys()].sort(), ["parent", "parent/fetcher"]);
  assert.equal(JSON.parse(store.get("parent/fetcher")).guard, null);
  assert.equal(inner.decision?.action, "stop");
  assert.equal(outer.decision, null);
});

test("the guard gets every step, once and in order", async (t) => {
  for (const stream of [false, true]) {
    const model = await fake(t);
    const guard = new RecordingGuard(new Guard({ deliver: "user" }));
    const settings = { ...deloop({ tools: failingTools(new FailingTool()), guard, logger: null }), model: models(model).chat, prompt: "Fetch.", stopWhen: many };
    if (stream) await streamText(settings).consumeStream();
    else await generateText(settings);
    assert.deepEqual(guard.short, loopSteps());
    assert.deepEqual(guard.steps[2].calls, [{ id: "call_0000", tool: "convert", args: { url: "https://example.test/data" } }]);
    assert.equal(guard.steps[3].output, "no such table: orders");
  }
});

test("the guard gets calls that fail the schema as invalid", async (t) => {
  const model = await fake(t, (request) => (request.turns === 0 ? { calls: [["convert", { address: 1 }], ["convert", { url: "x" }]] } : { text: "Done." }));
  const guard = new RecordingGuard(new Guard({ deliver: "user" }));
  await generateText({ ...deloop({ tools: failingTools(new FailingTool()), guard, logger: null }), model: models(model).chat, prompt: "Fetch.", stopWhen: many });
  const results = guard.steps.filter((step) => step.type === "result").map((step) => [step.id, step.outcome]);
  assert.deepEqual(results.sort(), [["call_0000", "invalid"], ["call_0001", "error"]]);
});

test("processes that take turns with one store", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const store = new Map();
  const guards = [0, 1].map(() => deloop({ tools: failingTools(failing), session: "chat", store, logger: null }));
  const messages = [{ role: "user", content: "Fetch." }];
  for (const [round, steps] of [2, 2, 2, 2, 2].entries()) {
    const settings = { ...guards[round % 2], model: models(model).chat, messages, stopWhen: stepCountIs(steps) };
    const result = await generateText(settings);
    messages.push(...(result.responseMessages ?? result.response.messages));
  }
  assertValid(model);
  assert.equal(model.requests.length, 8);
  assert.equal(failing.ran.length, 5);
  assert.equal(firstWith(model.requests, NUDGE), 3);
});

test("a run that wants an object ends normally too", async (t) => {
  for (const stream of [false, true]) {
    const model = await fake(t);
    const guard = deloop({ tools: failingTools(new FailingTool()), logger: null });
    const output = Output.object({ schema: z.object({ answer: z.string() }) });
    const settings = { ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many, output };
    const result = stream ? streamText({ ...settings, onError() {} }) : await generateText(settings);
    if (stream) await result.consumeStream();
    assert.match(await result.text, /^\[deloop\] Stopped: /);
    assert.equal(guard.decision.action, "stop");
    await assert.rejects(async () => result.output);
  }
});

test("exitBehavior error with a stream: its promises resolve, so look at the parts, onError or the decision", async (t) => {
  const model = await fake(t);
  const errors = [];
  const guard = deloop({ tools: failingTools(new FailingTool()), logger: null, exitBehavior: "error" });
  const result = streamText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many, onError: ({ error }) => errors.push(error.name) });
  await result.consumeStream();
  assert.equal(await result.text, "");
  assert.deepEqual(errors, ["StopError"]);
  assert.equal(guard.decision.action, "stop");
});

test("tools that run elsewhere: their results come with the next messages", async (t) => {
  const model = await fake(t);
  const guard = deloop({ tools: { convert: tool({ inputSchema }) }, session: "client", logger: null });
  let messages = [{ role: "user", content: "Fetch." }];
  for (let turn = 0; turn < 7; turn += 1) {
    const result = await generateText({ ...guard, model: models(model).chat, messages, stopWhen: many });
    const [call] = result.toolCalls;
    if (call === undefined) break;
    const output = { type: "error-text", value: "no such table: orders" };
    const answer = { role: "tool", content: [{ type: "tool-result", toolCallId: call.toolCallId, toolName: "convert", output }] };
    messages = [...messages, ...(result.responseMessages ?? result.response.messages), answer];
  }
  assertValid(model);
  assert.equal(firstWith(model.requests, NUDGE), 3);
});

test("a loop of your own around single steps is guarded as one session", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const guard = deloop({ tools: failingTools(failing), session: "own", logger: null });
  const messages = [{ role: "user", content: "Fetch." }];
  let result;
  for (let turn = 0; turn < 20; turn += 1) {
    result = await generateText({ ...guard, model: models(model).chat, messages });
    messages.push(...(result.responseMessages ?? result.response.messages));
    if (result.finishReason !== "tool-calls") break;
  }
  assertValid(model);
  assert.equal(failing.ran.length, 5);
  assert.equal(model.requests.length, 8);
  assert.equal(firstWith(model.requests, NUDGE), 3);
  assert.match(result.text, /^\[deloop\] Stopped: /);
});

test("results that a tool yields on the way are passed on", async (t) => {
  const model = await fake(t, (request) => (request.turns > 0 ? { text: "Done." } : { calls: [["convert", { url: "x" }]] }));
  async function* execute() {
    yield "half";
    yield "whole";
  }
  const guard = deloop({ tools: { convert: tool({ inputSchema, execute }) }, logger: null });
  const run = streamText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many });
  const outputs = [];
  for await (const part of run.fullStream) if (part.type === "tool-result") outputs.push([part.output, part.preliminary === true]);
  assert.deepEqual(outputs, [["half", true], ["whole", true], ["whole", false]]);
});

test("a history that was cut is reported, and the ladder starts over", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const rungs = [];
  const prepareStep = ({ messages }) => (messages.length > 8 ? { messages: messages.slice(0, 1) } : undefined);
  const guard = deloop({ tools: failingTools(failing), logger: null, prepareStep, onDecision: (decision) => rungs.push(decision.rung) });
  await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: stepCountIs(12) });
  assertValid(model);
  assert.ok(rungs.filter((rung) => rung === "nudge").length >= 2, `the first nudge is given again: ${rungs}`);
});

test("a chat UI: its stored messages stay valid, and the nudges come back to their places", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const tools = failingTools(failing);
  const guard = deloop({ tools, session: "ui", logger: null });
  const history = [];
  for (const [round, steps] of [4, 2, 40].entries()) {
    if (round === 0) history.push({ id: "u0", role: "user", parts: [{ type: "text", text: "Fetch the data." }] });
    const messages = await convertToModelMessages(history, { tools });
    const run = streamText({ ...guard, model: models(model).chat, messages, stopWhen: stepCountIs(steps) });
    let answer;
    for await (const message of readUIMessageStream({ stream: run.toUIMessageStream() })) answer = message;
    history.push({ ...answer, id: `a${round}` });
  }
  assertValid(model);
  assert.equal(failing.ran.length, 5);
  assert.equal(model.requests.length, 8);
  assert.equal(firstWith(model.requests, NUDGE), 3);
  assert.equal(firstWith(model.requests, "[deloop] This is the second warning"), 5);
  assert.match(history.at(-1).parts.findLast((part) => part.type === "text").text, /^\[deloop\] Stopped: /);
  history.push({ id: "u1", role: "user", parts: [{ type: "text", text: "Try once more." }] });
  await generateText({ ...guard, model: models(model).chat, messages: await convertToModelMessages(history, { tools }) });
  assertValid(model);
  assert.equal(failing.ran.length, 6, "new text lifts the stop");
});

test("callbacks that throw or reject, and loggers that throw, change nothing", async (t) => {
  const model = await fake(t);
  const failing = new FailingTool();
  const logger = { warn() { throw new Error("warn"); }, error() { throw new Error("error"); } };
  const guard = deloop({ tools: failingTools(failing), logger, onDecision: async () => { throw new Error("mine"); }, onStop: () => { throw new Error("mine"); } });
  const result = await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: many });
  assert.equal(failing.ran.length, 5);
  assert.match(result.text, /^\[deloop\] Stopped: /);
});

test("mode nudge never refuses, mode observe says nothing", async (t) => {
  for (const [mode, requests] of [["nudge", true], ["observe", false]]) {
    const model = await fake(t);
    const failing = new FailingTool();
    const guard = deloop({ tools: failingTools(failing), logger: null, mode });
    await generateText({ ...guard, model: models(model).chat, prompt: "Fetch.", stopWhen: stepCountIs(12) });
    assert.equal(failing.ran.length, 12);
    assert.equal(model.requests.some((request) => request.shows("[deloop]")), requests);
  }
});

test("wrong options are errors that name the fix", () => {
  assert.throws(() => deloop({ exitBehavior: "throw" }), /exitBehavior is "end" or "error"/);
  assert.throws(() => deloop({ guard: {}, profile: "default" }), /pass either guard or the options of a guard \(profile\)/);
});

test("require and import give the same", () => {
  const required = createRequire(import.meta.url)("deloop/ai");
  assert.deepEqual(Object.keys(required.deloop({ logger: null })), ["prepareStep", "toolApproval"]);
  assert.deepEqual(Object.keys(deloop({ logger: null })), ["prepareStep", "toolApproval"]);
});
