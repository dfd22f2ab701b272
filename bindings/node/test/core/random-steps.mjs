// Random sessions from a seed: loops of a few calls, and every odd value that JSON can hold.

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const ODD = [
  null, true, false, 0, -0, 1, -1, 0.1, 1e23, 5e-324, 1.7976931348623157e308, 2 ** 53, 2 ** 63, 2 ** 64, -(2 ** 63),
  "", " ", "é", "日本語", "👩‍👩‍👧", "\u0000", "\u001b[31m", "\u2028", "\ud800", "a\udc00b", "\ufeff", "\\", '"', "{", "[deloop]",
  "x".repeat(70), "line\n".repeat(40), [], {}, [[]], [null], { "": 1 }, { __proto__: null, a: 1 },
  JSON.parse('{"__proto__":{"b":1}}'), { constructor: 1, toString: "x" }, [1, [2, [3, [4]]]], { a: { b: { c: [1, 2] } } },
];

/** Returns the steps of one random case. */
export function randomSteps(seed, count) {
  const next = random(seed);
  const pick = (list) => list[Math.floor(next() * list.length)];
  const chance = (p) => next() < p;
  const nested = (depth) => (depth === 0 ? 1 : chance(0.5) ? [nested(depth - 1)] : { k: nested(depth - 1) });
  const value = () => {
    if (chance(0.01)) return nested(Math.floor(next() * 300));
    if (chance(0.005)) return "long ".repeat(Math.floor(next() * 40_000));
    if (chance(0.005)) return Array.from({ length: Math.floor(next() * 6000) }, (_, i) => i);
    return chance(0.5) ? pick(ODD) : { [pick(["a", "b", "path", "é"])]: pick(ODD), n: Math.floor(next() * 3) };
  };
  const tools = ["bash", "Read", "Edit", "Grep", "Task", "mcp__x__y", ""];
  const commands = ["npm test", "ls -la", "cat a.txt | head", "make && make test", "git status"];
  const args = () => {
    if (chance(0.2)) return value();
    return pick([{ command: pick(commands) }, { file_path: "/src/a.ts", old_string: "a", new_string: pick(["b", "c"]) }, { pattern: "TODO", path: "." }]);
  };
  let calls = 0;
  let time = 1_763_000_000_000;
  const open = [];
  const call = () => {
    const id = chance(0.1) ? undefined : chance(0.1) ? calls : `c${calls}`;
    calls += 1;
    open.push(id);
    return { id, tool: pick(tools), args: args() };
  };
  const kinds = {
    turn: () => ({ text: pick(["", "Let me look.", "I will run the tests again.", pick(["é", "\ud800", "x".repeat(300)])]), calls: Array.from({ length: Math.floor(next() * 3) }, call), turn_id: chance(0.2) ? `t${Math.floor(next() * 20)}` : undefined }),
    call: () => call(),
    result: () => ({ id: chance(0.8) ? open.shift() : pick(open), ok: pick([true, false, false, undefined, null]), outcome: chance(0.2) ? pick(["ok", "error", "denied", "cancelled", "timeout", "running", "invalid"]) : undefined, output: chance(0.5) ? pick(["Error: no such file", "", "2 tests failed", "ok"]) : value(), error_type: chance(0.2) ? pick(["ENOENT", "ValueError"]) : undefined }),
    user: () => ({ text: pick(["go on", "continue", "fix the tests", ""]), origin: pick(["human", "harness", undefined]) }),
    usage: () => ({ model: pick(["claude-sonnet-4-5", "gpt-5", "none"]), input_tokens: Math.floor(next() * 10_000), output_tokens: 7, cost_usd: chance(0.3) ? next() : undefined }),
    chunk: () => ({ text: pick(["again and again. ", "x"]) }),
    compact: () => ({}),
    delivery: () => ({ step: Math.floor(next() * calls), ok: chance(0.7) }),
    embedding: () => ({ step: Math.floor(next() * 20), embedding: [next(), -next(), 1e-3] }),
    intervention: () => ({}),
    end: () => ({}),
    swarm_end: () => ({ swarm: "w" }),
    state: () => ({}),
  };
  const likely = ["call", "call", "call", "turn", "turn", "result", "result", "result", "result", "user", "usage", "chunk", "delivery", "state"];
  const rest = Object.keys(kinds);
  const spoil = (step) => {
    const field = pick(["type", "session", "tool", "calls", "ok", "text", "id", "ts", "step", "outcome", "embedding", "input_tokens"]);
    return { ...step, [field]: pick([...ODD, "nope", [3], { x: 1 }]) };
  };
  // An agent in a loop does the same again, most of the time.
  const stuck = chance(0.7);
  const habit = { text: "I will run the tests again.", tool: "bash", args: args(), output: "Error: no such file" };
  let awaited = null;
  const again = () => {
    if (awaited !== null) {
      const step = { type: "result", session: "s1", id: awaited, ok: false, output: habit.output };
      awaited = null;
      return step;
    }
    awaited = `h${calls}`;
    calls += 1;
    return { type: "turn", session: "s1", text: habit.text, calls: [{ id: awaited, tool: habit.tool, args: habit.args }] };
  };
  return Array.from({ length: count }, () => {
    if (stuck && chance(0.8)) return again();
    const type = chance(0.9) ? pick(likely) : pick(rest);
    time += Math.floor(next() * 5000);
    const step = {
      type,
      session: chance(0.9) ? pick(["s1", "s1", "s2", "é".repeat(200)]) : undefined,
      agent: chance(0.1) ? pick(["main", "worker"]) : undefined,
      swarm: chance(0.1) ? "w" : undefined,
      controller: chance(0.05) ? "s2" : undefined,
      task: chance(0.1) ? pick(["t1", "t2"]) : undefined,
      project: chance(0.1) ? "p" : undefined,
      ts: chance(0.5) ? time : chance(0.1) ? new Date(time).toISOString() : undefined,
      ...kinds[type](),
    };
    return chance(0.03) ? spoil(step) : step;
  });
}
