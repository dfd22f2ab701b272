// What a Guard does: its decisions, events, checkpoints and sessions.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as deloop from "deloop";
import { Guard, Step, StopError, version } from "deloop";

import { emptyFolder, repository, require } from "./deloop.mjs";

/** Sends the same failing call until something else than `continue` comes back, and returns all of that. */
function failing(guard, times, session = "s1", from = 0) {
  const decisions = [];
  for (let i = from; i < from + times; i += 1) {
    const turn = Step.turn(session, { calls: [{ id: `c${i}`, tool: "bash", args: { command: "make" } }] });
    decisions.push(guard.observe(turn));
    const blocked = decisions.at(-1).action === "block";
    const result = blocked ? { outcome: "denied", output: "" } : { ok: false, output: "make: *** no rule" };
    decisions.push(guard.observe(Step.result(session, `c${i}`, result)));
  }
  return decisions;
}

test("a failing call is nudged, blocked and stopped", () => {
  const actions = failing(new Guard(), 20).map(({ action }) => action);
  const order = actions.filter((action, i) => action !== "continue" && action !== actions[i - 1]);
  assert.deepEqual([...new Set(order)].slice(0, 3), ["nudge", "block", "stop"]);
  assert.equal(actions.indexOf("nudge"), 5, "after the third failing result");
});

test("decisions are frozen, all through", () => {
  const decisions = failing(new Guard(), 5);
  const [first, nudge] = [decisions[0], decisions[5]];
  assert.deepEqual(first, { session: "s1", step: 0, action: "continue", level: 0, message: null, role: null, calls: [], status: null, findings: [] });
  assert.deepEqual(Object.keys(first), ["session", "step", "action", "level", "message", "role", "calls", "status", "findings"]);
  assert.match(nudge.message, /^\[deloop\] You ran `make` 3 times/);
  for (const part of [first, first.calls, first.findings, nudge, nudge.findings, nudge.findings[0], nudge.findings[0].calls[0]]) {
    assert.ok(Object.isFrozen(part));
  }
  assert.throws(() => { "use strict"; first.action = "stop"; }, TypeError);
});

test("observeAll also returns the events", () => {
  const guard = new Guard({ profile: "turn-hash" });
  guard.observe(Step.turn("s1", { text: "Again." }));
  const { decision, events } = guard.observeAll(Step.turn("s1", { text: "Again." }));
  assert.equal(decision.action, "nudge");
  assert.equal(events[0].event, "loop_detected");
  assert.ok(Object.isFrozen(events[0]));
  const [cost] = guard.observeAll(Step.usage("s1", { model: "claude-sonnet-4-5", input_tokens: 1_000_000 })).events;
  assert.equal(cost.cost_usd, 3);
});

test("a checkpoint continues in another guard", () => {
  const one = new Guard();
  failing(one, 4);
  const text = one.checkpoint("s1");
  assert.equal(typeof JSON.parse(text), "object");
  assert.equal(one.checkpoint("none"), null);
  const two = new Guard();
  two.restore("s1", text);
  assert.deepEqual(failing(two, 3, "s1", 4), failing(one, 3, "s1", 4));
});

test("sessions are apart, counted and reset", () => {
  const guard = new Guard({ maxSessions: 160 });
  for (const session of ["a", "b"]) guard.observe(Step.call(session, "ls"));
  assert.equal(guard.sessionCount, 2);
  guard.reset("a");
  assert.equal(guard.sessionCount, 1);
  for (let i = 0; i < 1000; i += 1) guard.observe(Step.call(`s${i}`, "ls"));
  assert.ok(guard.sessionCount <= 160, `${guard.sessionCount}`);
  guard.observe(Step.end("s9"));
});

test("modes, places and rollbacks are those of the options", () => {
  const [, , , , , nudge] = failing(new Guard({ mode: "observe" }), 3);
  assert.equal(nudge.action, "continue");
  assert.equal(nudge.would.action, "nudge");
  assert.ok(failing(new Guard({ mode: "nudge" }), 20).every(({ action }) => ["continue", "warn", "nudge"].includes(action)));
  for (const place of ["tool", "user", "system", "developer"]) {
    assert.equal(failing(new Guard({ deliver: place }), 3)[5].role, place);
  }
  assert.ok(failing(new Guard({ attended: true }), 20).some(({ action }) => action === "ask"));
});

test("a profile is a name, a text or a file, and config changes it", (t) => {
  const text = readFileSync(join(repository, "crates/policy/profiles/turn-hash.toml"), "utf8");
  const path = join(emptyFolder(t), "own.toml");
  writeFileSync(path, text);
  const again = (options) => {
    const guard = new Guard(options);
    return [0, 1, 2].map(() => guard.observe(Step.turn("s", { text: "Again." })).action);
  };
  for (const profile of ["turn-hash", text, path]) assert.deepEqual(again({ profile }), ["continue", "nudge", "nudge"]);
  const config = { ladders: { duplicate: { limit: 1 } } };
  assert.deepEqual(again({ profile: "turn-hash", config }), ["continue", "nudge", "continue"]);
  assert.throws(() => new Guard({ profile: join(path, "none.toml") }), /none\.toml/);
});

test("typed steps are the plain objects that are sent", () => {
  assert.deepEqual(Step.turn("s", { text: "t", calls: [] }), { type: "turn", session: "s", text: "t", calls: [] });
  assert.deepEqual(Step.call("s", "ls", { a: 1 }, { id: "c" }), { type: "call", session: "s", tool: "ls", args: { a: 1 }, id: "c" });
  assert.deepEqual(Step.result("s", "c", { ok: true }), { type: "result", session: "s", id: "c", ok: true });
  assert.deepEqual(Step.delivery("s", 4, false), { type: "delivery", session: "s", step: 4, ok: false });
  assert.deepEqual(Step.swarmEnd("s", "w"), { type: "swarm_end", session: "s", swarm: "w" });
  const guard = new Guard({ profile: "doom-loop" });
  const every = [
    Step.turn("s"), Step.call("s", "ls"), Step.result("s", null), Step.user("s", "hi", { origin: "harness" }), Step.usage("s"),
    Step.chunk("s", "x"), Step.compact("s"), Step.delivery("s", 0, true), Step.embedding("s", 0, [1]), Step.intervention("s"),
    Step.swarmEnd("s", "w"), Step.state("s"), Step.end("s"),
  ];
  assert.deepEqual(every.map((step) => guard.observe(step).action), every.map(() => "continue"));
  assert.equal(every.length, Object.keys(Step).length);
});

test("import and require give the same classes", () => {
  const required = require("deloop");
  assert.deepEqual(Object.keys(required).filter((name) => name !== "default").sort(), Object.keys(deloop).sort());
  for (const name of Object.keys(deloop)) assert.equal(required[name], deloop[name], name);
  assert.equal(version, require("deloop/package.json").version);
  const stop = failing(new Guard(), 20).find(({ action }) => action === "stop");
  const error = new StopError(stop);
  assert.ok(error instanceof required.StopError && error instanceof Error);
  assert.equal(error.decision, stop);
  assert.equal(error.name, "StopError");
  assert.match(error.message, /deloop stopped/);
});
