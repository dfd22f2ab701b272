// The tests that all plain tool loops share. A loop is `run(model, { loop, messages, tools, runTool, most })`: it works as
// people write it, with deloop's lines only if it is given a `loop`, and returns `{ text, messages }`.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";

import { Guard } from "deloop";

import { FakeModel, scripts } from "./fake-model.mjs";
import { assertSameRequests, assertValid, brokenGuard, FailingTool, firstWith, Log, loopSteps, placeOf, RecordingGuard, runPageProgram, runProgram, Workspace, writeRow } from "./harness.mjs";

const NUDGE = "[deloop] You ran";
const SECOND = "[deloop] This is the second warning";
const PROMPT = "Fetch the data.";

/** Starts a fake model that is closed after a test. */
export async function fake(t, script) {
  const model = await FakeModel.start(script);
  t.after(() => model.close());
  return model;
}

/** Returns the failing tool as plain loops have it: its schema, and a function that runs tools by name. */
export function failingTool() {
  const failing = new FailingTool();
  return { failing, tools: { convert: ["Convert a page.", ["url"]] }, runTool: async (_, args) => failing.convert(args) };
}

function workspaceTool() {
  const all = new Workspace().tools;
  const tools = Object.fromEntries(Object.entries(all).map(([name, [description, names]]) => [name, [description, names]]));
  return { tools, runTool: (name, args) => all[name][2](args) };
}

/** Defines the tests of one API. `module` is what the resume program imports, with `ways` in it. */
export function defineTests({ name, version, page, ways, ToolLoop, StopError, module }) {
  for (const [way, { run, begin, toolRole }] of Object.entries(ways)) {
    test(`${way}: without deloop the loop has no limit`, async (t) => {
      const model = await fake(t);
      const { failing, ...rest } = failingTool();
      await run(model, { ...rest, messages: begin(PROMPT), most: 40 });
      assert.equal(failing.ran.length, 40);
      writeRow(name, { version, own_limit: "none: as long as your loop runs (40 of 40 calls ran)" });
    });

    test(`${way}: nudge, block and stop`, async (t) => {
      const model = await fake(t);
      const { failing, ...rest } = failingTool();
      const log = new Log();
      const loop = new ToolLoop({ logger: log });
      const { text, messages } = await run(model, { ...rest, loop, messages: begin(PROMPT), most: 40 });
      assertValid(model);
      assert.equal(failing.ran.length, 5, "two calls were refused");
      assert.equal(model.requests.length, 8);
      assert.equal(firstWith(model.requests, NUDGE), 3);
      assert.equal(placeOf(model.requests[3], NUDGE), toolRole);
      assert.equal(firstWith(model.requests, SECOND), 5);
      assert.equal(firstWith(model.requests, "[deloop] Blocked."), 6);
      assert.match(text, /^\[deloop\] Stopped: /);
      assert.equal(loop.decision.status, "LOOP_DETECTED");
      assert.deepEqual([log.warnings.length, log.errors.length], [4, 1]);
      writeRow(name, {
        nudge: "the end of a tool result: in request 4 and all later ones",
        block: `turn.results doesn't run the call, its result is the reason (${failing.ran.length} of 8 calls ran)`,
        stop: "turn.done() is true, turn.text has the reason, loop.decision the decision",
      });

      messages.push(...begin("Try once more."));
      await run(model, { ...rest, loop, messages, most: 1 });
      assertValid(model);
      assert.equal(failing.ran.length, 6, "new text lifts the stop");
    });

    test(`${way}: the guard gets every step, once and in order`, async (t) => {
      const model = await fake(t);
      const { failing, ...rest } = failingTool();
      const guard = new RecordingGuard(new Guard({ deliver: "tool" }));
      await run(model, { ...rest, loop: new ToolLoop({ guard, logger: null }), messages: begin(PROMPT), most: 40 });
      assert.equal(failing.ran.length, 5);
      assert.deepEqual(guard.short, loopSteps());
    });

    test(`${way}: exitBehavior "error"`, async (t) => {
      const model = await fake(t);
      const { failing, ...rest } = failingTool();
      const stops = [];
      const loop = new ToolLoop({ logger: null, exitBehavior: "error", onStop: (decision) => stops.push(decision) });
      const error = await run(model, { ...rest, loop, messages: begin(PROMPT), most: 40 }).then(() => null, (thrown) => thrown);
      assert.ok(error instanceof StopError);
      assert.equal(error.decision.action, "stop");
      assert.deepEqual([failing.ran.length, stops.length], [5, 1]);
      writeRow(name, { error: 'exitBehavior "error": turn.done() throws a StopError' });
    });

    test(`${way}: a healthy run of 30 turns is the same`, async (t) => {
      const runs = [];
      for (const on of [false, true]) {
        const model = await fake(t, scripts.healthy());
        const loop = on ? new ToolLoop({ logger: null }) : undefined;
        const { text } = await run(model, { ...workspaceTool(), loop, messages: begin(PROMPT), most: 40 });
        assert.equal(text, "All tests pass now.");
        assertValid(model);
        runs.push(model.requests);
      }
      const same = assertSameRequests(...runs);
      assert.equal(same, 31);
      writeRow(name, { healthy: `${same} of ${same} requests identical` });
    });

    test(`${way}: a crash inside deloop changes nothing`, async (t) => {
      const runs = [];
      const log = new Log();
      for (const on of [false, true]) {
        const model = await fake(t);
        const { failing, ...rest } = failingTool();
        const loop = on ? new ToolLoop({ guard: brokenGuard, logger: log }) : undefined;
        await run(model, { ...rest, loop, messages: begin(PROMPT), most: 12 });
        assert.equal(failing.ran.length, 12);
        runs.push(model.requests);
      }
      assertSameRequests(...runs);
      assert.ok(log.errors.length >= 2 && log.errors.length <= 8, `once per kind: ${log.errors.length}`);
      writeRow(name, { crash: "the loop goes on unchanged, one log line per kind" });
    });

    test(`${way}: parallel calls`, async (t) => {
      const model = await fake(t, scripts["same-failing-batch"]());
      const { failing, ...rest } = failingTool();
      const loop = new ToolLoop({ logger: null });
      await run(model, { ...rest, loop, messages: begin(PROMPT), most: 40 });
      assertValid(model);
      assert.equal(failing.ran.length, 15, "3 calls in each of 5 turns");
      assert.equal(firstWith(model.requests, NUDGE), 3);
      assert.equal(loop.decision?.action, "stop");
    });

    test(`${way}: a resume in a new process continues where it was`, async (t) => {
      const model = await fake(t);
      const program = `
        import { existsSync, readFileSync, writeFileSync } from "node:fs";
        import { failingTool } from "../plain-loops.mjs";
        import { ToolLoop, ways } from "../${module}";
        const [path, most] = process.argv.slice(2);
        const { run, begin } = ways[${JSON.stringify(way)}];
        const { failing, ...rest } = failingTool();
        const loop = new ToolLoop({ logger: null, session: "chat-1" });
        const saved = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { messages: begin(${JSON.stringify(PROMPT)}) };
        if (saved.state) loop.restore(saved.state);
        const { text } = await run({ url: ${JSON.stringify(model.url)} }, { ...rest, loop, messages: saved.messages, most: Number(most) });
        writeFileSync(path, JSON.stringify({ messages: saved.messages, state: loop.checkpoint() }));
        console.log(JSON.stringify({ ran: failing.ran.length, text, status: loop.decision?.status ?? null }));`;
      const path = `${import.meta.dirname}/resume-${process.pid}-${way.replaceAll(/\W/g, "")}.json`;
      t.after(() => rmSync(path, { force: true }));
      const outputs = [];
      for (const most of [4, 2, 40]) outputs.push(JSON.parse(await runProgram(program, { args: [path, String(most)] })));
      assertValid(model);
      assert.deepEqual(outputs.map((output) => output.ran), [4, 1, 0]);
      assert.equal(outputs[2].status, "LOOP_DETECTED");
      assert.equal(model.requests.length, 8, "no rung was lost or climbed twice");
      writeRow(name, { resume: "3 processes, one conversation with a checkpoint: the same 8 requests" });
    });
  }

  test("without a checkpoint, the past is read from the history", async (t) => {
    const [{ run, begin }] = Object.values(ways);
    const model = await fake(t);
    const { failing, ...rest } = failingTool();
    const messages = begin(PROMPT);
    await run(model, { ...rest, loop: new ToolLoop({ logger: null }), messages, most: 2 });
    const decisions = [];
    const loop = new ToolLoop({ logger: null, onDecision: (decision) => decisions.push(decision.action) });
    await run(model, { ...rest, loop, messages: JSON.parse(JSON.stringify(messages)), most: 3 });
    assertValid(model);
    assert.equal(firstWith(model.requests, "[deloop]") <= 4, true, "the first two failures count");
    assert.ok(decisions.includes("nudge"));
  });

  test("calls by hand: refusal and result", async (t) => {
    const [{ run, begin }] = Object.values(ways);
    const model = await fake(t);
    const { failing, ...rest } = failingTool();
    const loop = new ToolLoop({ logger: null });
    const { text } = await run(model, { ...rest, loop, byHand: true, messages: begin(PROMPT), most: 40 });
    assertValid(model);
    assert.equal(failing.ran.length, 5);
    assert.match(text, /^\[deloop\] Stopped: /);
  });

  test("a history that was cut is a compaction", async (t) => {
    const [{ run, begin }] = Object.values(ways);
    const model = await fake(t);
    const { failing, ...rest } = failingTool();
    const rungs = [];
    const loop = new ToolLoop({ logger: null, onDecision: (decision) => rungs.push(decision.rung) });
    for (let times = 0; times < 3; times += 1) await run(model, { ...rest, loop, messages: begin(PROMPT), most: 4 });
    assert.ok(rungs.filter((rung) => rung === "nudge").length >= 2, `${rungs}`);
  });

  test("arguments that aren't JSON are an error for the model", async (t) => {
    const [[way, { run, begin }]] = Object.entries(ways);
    if (way.startsWith("messages")) return;
    const model = await fake(t, (request) => (request.turns === 0 ? { calls: [["convert", "{broken"]] } : { text: "Done." }));
    const { failing, ...rest } = failingTool();
    await run(model, { ...rest, loop: new ToolLoop({ logger: null }), messages: begin(PROMPT), most: 4 });
    assert.equal(failing.ran.length, 0);
    assert.ok(model.requests[1].shows("the arguments aren't JSON"));
  });

  test("wrong input is an error that says what is expected", () => {
    assert.throws(() => new ToolLoop({ exitBehavior: "throw" }), /exitBehavior is "end" or "error"/);
    assert.throws(() => new ToolLoop({ logger: null }).answered({}), /answered takes a/);
  });

  test("the program of the page runs", async (t) => {
    const model = await fake(t);
    const output = await runPageProgram(page, model, "mjs");
    assertValid(model);
    assert.equal(firstWith(model.requests, NUDGE), 3);
    assert.match(output, /Stopped/);
  });
}
