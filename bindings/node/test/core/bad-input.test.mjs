// Whatever a program passes gets a meaning or a clear error, and the process goes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";

import { Guard } from "deloop";

/** Returns the events of a result with this output: it is how the tests see what deloop read. */
function sameAs(value, json) {
  const seen = (step) => {
    // The same call three times with the same failure: the finding depends on what was read.
    const guard = new Guard({ profile: "signature" });
    return [0, 1, 2, 3].map((i) => {
      const one = guard.observe({ type: "call", session: "s", id: `c${i}`, tool: "t", args: i % 2 === 0 ? step : json });
      return [one.action, one.findings.map(({ detector, count, period }) => [detector, count, period])];
    });
  };
  assert.deepEqual(seen(value), seen(json));
  // And the test can fail: other arguments aren't the same.
  assert.notDeepEqual(seen(["something else"]), seen(json));
}

function refused(step, pattern, kind = TypeError) {
  const guard = new Guard();
  for (const observe of [() => guard.observe(step), () => guard.observeAll(step)]) {
    assert.throws(observe, (error) => {
      assert.ok(error instanceof kind, `${error.name}: ${error.message}`);
      assert.match(error.message, pattern);
      return true;
    });
  }
  assert.equal(guard.sessionCount, 0);
  assert.equal(guard.observe({ type: "user", text: "go on" }).action, "continue");
}

test("a step that can't be read names the field", () => {
  refused(undefined, /a Step is an object or its JSON, not null/);
  refused(null, /not null/);
  refused(3, /not 3/);
  refused(true, /not true/);
  refused(() => {}, /not null/);
  refused(Symbol("s"), /not null/);
  refused(7n, /not 7/);
  refused([], /a Step is a JSON object, not a list/);
  refused("", /not JSON/);
  refused("{", /not JSON/);
  refused('{"type":"end"} {}', /not JSON/);
  refused("null", /not null/);
  refused("[1]", /not a list/);
  refused({}, /missing field `type`: one of turn, call/);
  refused({ type: "tool" }, /unknown type `tool`: one of turn, call/);
  refused({ type: 3 }, /`type`: 3 instead of a string/);
  refused({ type: "call" }, /a `call` step needs the field `tool`/);
  refused({ type: "call", tool: 3 }, /`tool`: 3 instead of a string/);
  refused('{"type":"call","tool":{}}', /`tool`: an object instead of a string/);
  refused({ type: "call", tool: "t", session: ["s"] }, /`session`: a list instead of a string/);
  refused({ type: "call", tool: "t", id: {} }, /`id`: an object instead of a string or a number/);
  refused({ type: "turn", calls: "ls" }, /`calls`: "ls" instead of a list/);
  refused({ type: "turn", calls: [{ tool: "t" }, { args: 1 }] }, /`calls\[1\]` needs the field `tool`/);
  refused({ type: "turn", calls: [{ tool: null }] }, /`calls\[0\].tool`: .* instead of a string/);
  refused({ type: "turn", calls: [7] }, /`calls\[0\]`: 7 instead of an object/);
  refused({ type: "turn", embedding: ["x"] }, /`embedding`: a list instead of a list of numbers/);
  refused({ type: "result", ok: "yes" }, /`ok`: "yes" instead of true or false/);
  refused({ type: "result", outcome: "failed" }, /`outcome`: "failed" instead of one of ok, error, denied/);
  refused({ type: "user", text: "hi", origin: "robot" }, /`origin`: "robot" instead of one of human, harness/);
  refused({ type: "usage", input_tokens: -1 }, /`input_tokens`: -1 instead of a whole number from 0/);
  refused({ type: "usage", input_tokens: 1.5 }, /`input_tokens`: 1.5 instead of a whole number from 0/);
  refused({ type: "delivery", step: 1 }, /needs the field `ok`/);
  refused({ type: "end", ts: "noon" }, /`ts` must be RFC 3339/);
  refused({ type: "swarm_end" }, /needs the field `swarm`/);
});

test("values that JSON doesn't have get a meaning", () => {
  class Point {
    constructor() {
      this.x = 1;
    }
    get hidden() {
      throw new Error("not asked");
    }
  }
  sameAs({ a: undefined, b: () => 1, c: Symbol("c"), d: 1 }, { d: 1 });
  sameAs([undefined, () => 1], [null, null]);
  sameAs({ n: NaN, i: Infinity, m: -Infinity }, { n: null, i: null, m: null });
  sameAs({ n: 12n, big: 2n ** 70n }, { n: 12, big: String(2n ** 70n) });
  sameAs({ at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" });
  sameAs({ at: new Date(NaN) }, { at: null });
  sameAs({ m: new Map([["a", 1], [2, new Set(["x", "y"])]]) }, { m: { a: 1, 2: ["x", "y"] } });
  sameAs({ m: new Map([[{ k: 1 }, "v"]]) }, { m: { '{"k":1}': "v" } });
  sameAs({ b: Buffer.from("héllo") }, { b: "héllo" });
  sameAs({ b: new TextEncoder().encode("hi").buffer }, { b: "hi" });
  sameAs({ b: new Uint8Array([0xff, 0x41]) }, { b: "\ufffdA" });
  sameAs({ f: new Float32Array([0.5, 2]) }, { f: [0.5, 2] });
  sameAs({ e: new TypeError("no such tool") }, { e: "TypeError: no such tool" });
  sameAs({ r: /a+/g, u: new URL("https://example.org/x") }, { r: "/a+/g", u: "https://example.org/x" });
  sameAs({ p: new Point() }, { p: { x: 1 } });
  sameAs({ o: Object.assign(Object.create(null), { x: 1 }) }, { o: { x: 1 } });
  sameAs({ o: { toJSON: () => ({ y: new Map([["z", 1]]) }) } }, { o: { y: { z: 1 } } });
  sameAs({ s: Object("text"), n: Object(4), t: Object(true) }, { s: "text", n: 4, t: true });
  sameAs({ p: new Proxy({ x: 1 }, {}) }, { p: { x: 1 } });
  sameAs({ w: new WeakMap(), promise: Promise.resolve(1) }, { w: {}, promise: {} });
  sameAs({ t: "a\ud800b" }, { t: "a\ufffdb" });
  sameAs(vm.runInNewContext("({ list: [1, { a: new Map([['k', 1]]) }] })"), { list: [1, { a: { k: 1 } }] });
  const cycle = { name: "n" };
  cycle.self = cycle;
  cycle.list = [cycle, { cycle }];
  sameAs(cycle, { name: "n", self: "[circular]", list: ["[circular]", { cycle: "[circular]" }] });
  const shared = { x: 1 };
  sameAs({ a: shared, b: shared, m: new Map() }, { a: { x: 1 }, b: { x: 1 }, m: {} });
});

test("a step may be an object of any kind", () => {
  const guard = new Guard();
  class Turn {
    type = "call";
    tool = "bash";
    when = new Date(5);
    toJSON() {
      return { type: this.type, tool: this.tool, session: "class" };
    }
  }
  assert.equal(guard.observe(new Turn()).session, "class");
  assert.equal(guard.observe(new Map([["type", "end"], ["session", "map"]])).session, "map");
  assert.equal(guard.observe(new Proxy({ type: "end", session: "proxy" }, {})).session, "proxy");
  assert.equal(guard.observe({ type: "user", text: "hi", ts: new Date() }).action, "continue");
  assert.equal(guard.observe(Buffer.from('{"type":"end"}').toString()).session, "default");
});

test("what throws when it is read is named", () => {
  const call = (args) => ({ type: "call", tool: "t", args });
  const getter = { get secret() { throw new Error("no"); } };
  refused(call({ list: [1, getter] }), /`args\.list\[1\]\.secret` can't be read: no/);
  refused(call({ toJSON() { throw "text"; } }), /`args` can't be read: text/);
  refused(call({ toJSON() { throw { toString() { throw 1; } }; } }), /`args` can't be read: it throws/);
  const trap = () => { throw new Error("trapped"); };
  refused(call(new Proxy({}, { ownKeys: trap })), /`args` can't be read: trapped/);
  refused(call(new Proxy({}, { getPrototypeOf: trap })), /`args` can't be read: trapped/);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  refused(call(proxy), /`args` can't be read/);
  refused(proxy, /the step can't be read/);
  // A getter that changes its mind between two looks.
  let looks = 0;
  const fickle = { get value() { looks += 1; if (looks === 2) throw new Error("later"); return looks; } };
  assert.equal(new Guard().observe(call(fickle)).action, "continue");
});

test("large and deep values are read as far as the limits go, or refused", () => {
  const guard = new Guard();
  const observe = (args) => guard.observe({ type: "call", tool: "t", args });
  let deep = {};
  for (let i = 0; i < 100_000; i += 1) deep = i % 2 === 0 ? [deep] : { deep };
  assert.equal(observe(deep).action, "continue");
  assert.equal(observe({ deep, m: new Map() }).action, "continue");
  let instances = {};
  for (let i = 0; i < 5000; i += 1) instances = new Map([["k", Object.assign(Object.create({}), { instances })]]);
  assert.equal(observe(instances).action, "continue");
  assert.equal(guard.observe(`{"type":"call","tool":"t","args":${"[".repeat(200_000)}${"]".repeat(200_000)}}`).action, "continue");
  assert.equal(observe("x".repeat(30 << 20)).action, "continue");
  assert.equal(observe(Array.from({ length: 200_000 }, (_, i) => ({ i }))).action, "continue");
  const tooLarge = /the step is too large: at most 64 MiB/;
  refused({ type: "call", tool: "t", args: "x".repeat(65 << 20) }, tooLarge, RangeError);
  refused({ type: "call", tool: "t", args: Buffer.alloc(65 << 20) }, tooLarge, RangeError);
  refused({ type: "call", tool: "t", args: new Array(2 ** 32 - 1) }, tooLarge, RangeError);
  refused(`{"type":"call","tool":"t","args":"${"x".repeat(65 << 20)}"}`, /longer than 64 MiB/);
  // Small in memory, endless as JSON.
  let laughs = ["ha"];
  for (let i = 0; i < 40; i += 1) laughs = [laughs, laughs, laughs];
  refused({ type: "call", tool: "t", args: laughs }, tooLarge, RangeError);
  refused({ type: "call", tool: "t", args: new Set(laughs) }, tooLarge, RangeError);
});

test("memory stays bounded under hostile steps", () => {
  const guard = new Guard();
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 3000; i += 1) {
    guard.observe({ type: "call", session: `s${i % 50}`, id: `c${i}`, tool: "t".repeat(1000), args: { text: "y".repeat(50_000), i } });
    guard.observe({ type: "result", session: `s${i % 50}`, id: `c${i}`, output: "z".repeat(50_000) });
  }
  const grown = (process.memoryUsage().rss - before) >> 20;
  assert.ok(grown < 300, `${grown} MiB`);
});

test("wrong options and arguments are refused", () => {
  const wrong = (options, pattern) => assert.throws(() => new Guard(options), pattern);
  wrong({ profile: "defualt" }, /unknown profile `defualt`; known profiles: default/);
  wrong({ profil: "default" }, /unknown option `profil`: one of profile, mode/);
  wrong({ profile: 3 }, /`profile` must be a string/);
  wrong({ mode: "block" }, /unknown mode `block`; known modes: observe, nudge, enforce/);
  wrong({ attended: "yes" }, /`attended` must be true or false/);
  wrong({ deliver: "chat" }, /known places: user, tool/);
  wrong({ deliver: [1] }, /`deliver` must be a string or a list of strings/);
  wrong({ maxSessions: 0 }, /`maxSessions` must be a whole number from 1/);
  wrong({ config: [] }, /`config` must be an object/);
  wrong({ config: { mode: "nudge" } }, /argument of its own/);
  wrong({ config: { ladder: {} } }, /did you mean `ladders`/);
  wrong(null, /the options of a Guard are an object/);
  const guard = new Guard({ profile: undefined, config: undefined });
  assert.throws(() => guard.restore("s", "{}"), /not a checkpoint/);
  assert.throws(() => guard.restore("s", 3), /string/i);
  assert.throws(() => guard.checkpoint(undefined), /string/i);
  assert.throws(() => guard.reset({}), /string/i);
  assert.throws(() => Guard(), /new/);
  assert.throws(() => Guard.prototype.observe.call({}, { type: "end" }), TypeError);
});
