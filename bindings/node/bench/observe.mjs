// How long `observe` takes from Node, beside Rust, on the same calls.
//
//   node bench/observe.mjs [--rust PROGRAM] [--json FILE] [--check]
//
// PROGRAM is the example `observe` of crates/bind, built in release; by default the one in cargo's target folder.
// --check ends with code 1 if a target is missed: 2 µs over Rust from an object or JSON, 5 µs with typed steps.
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

import { Guard, Step } from "deloop";

import { cargoTarget, here } from "../scripts/tools.mjs";

/** As in the example in Rust. */
const CALLS = 1024;
const ROUNDS = 200;
const BYTES = 200;
/** How many calls are timed at once. */
const PART = 64;

/** Returns the n-th call: the same as in the example in Rust, so exactly 200 bytes of JSON if n has up to 5 digits. */
function call(n) {
  const name = String(n).padStart(5, "0");
  const step = (padding) => ({
    type: "call",
    session: "s1",
    id: `c${name}`,
    tool: "bash",
    args: { command: `grep -rn handler_${name} src tests | head -20`, description: `Find handler ${name}${".".repeat(padding)}`, timeout: 120000 },
  });
  return step(Math.max(0, BYTES - JSON.stringify(step(0)).length));
}

/**
 * Returns the nanoseconds per call. Each round has a guard of its own, and each part of a round counts with the quickest
 * of all rounds: other programs interrupt a whole round more often than a part of it.
 */
function measure(prepare, observe) {
  const inputs = Array.from({ length: CALLS }, (_, n) => prepare(call(n)));
  const best = new Array(CALLS / PART).fill(Infinity);
  for (let round = 0; round < ROUNDS; round += 1) {
    const guard = new Guard();
    for (let part = 0; part < best.length; part += 1) {
      const start = process.hrtime.bigint();
      for (let n = part * PART; n < (part + 1) * PART; n += 1) observe(guard, inputs[n]);
      best[part] = Math.min(best[part], Number(process.hrtime.bigint() - start));
    }
  }
  return best.reduce((sum, part) => sum + part, 0) / CALLS;
}

const WAYS = {
  "JSON string": [JSON.stringify, (guard, text) => guard.observe(text)],
  object: [(step) => step, (guard, step) => guard.observe(step)],
  "typed step": [(step) => step, (guard, { session, tool, args, id }) => guard.observe(Step.call(session, tool, args, { id }))],
};

/** Returns the nanoseconds per call in Rust, from a Step and from JSON; nothing if the example isn't built. */
function rust(program) {
  if (!existsSync(program)) return undefined;
  const { stdout, status } = spawnSync(program, [], { encoding: "utf8" });
  return status === 0 ? JSON.parse(stdout) : undefined;
}

/** Returns the calls per second of this many workers at the same time, each with a guard of its own. */
async function throughput(count) {
  const workers = Array.from({ length: count }, () => new Worker(new URL(import.meta.url)));
  const heard = (worker) => new Promise((resolve, reject) => { worker.once("message", resolve); worker.once("error", reject); });
  await Promise.all(workers.map(heard));
  const start = performance.now();
  const counts = Promise.all(workers.map(heard));
  for (const worker of workers) worker.postMessage("start");
  const calls = (await counts).reduce((sum, n) => sum + n, 0);
  const seconds = (performance.now() - start) / 1000;
  await Promise.all(workers.map((worker) => worker.terminate()));
  return calls / seconds;
}

/** Returns what 100,000 sessions in one guard take. */
function sessions(count) {
  const guard = new Guard({ maxSessions: 2 * count });
  const before = process.memoryUsage().rss;
  const start = performance.now();
  for (let round = 0; round < 3; round += 1) {
    for (let i = 0; i < count; i += 1) guard.observe({ ...call(round), session: `session-${i}` });
  }
  const seconds = (performance.now() - start) / 1000;
  return { sessions: guard.sessionCount, steps: 3 * count, seconds, megabytes: (process.memoryUsage().rss - before) / 1e6 };
}

/** Returns the milliseconds that loading takes, without starting Node: the quickest of several processes. */
function loading(code, kind) {
  const program = `const start = performance.now(); ${code}; console.log(performance.now() - start);`;
  const times = Array.from({ length: 15 }, () => Number(spawnSync(process.execPath, [`--input-type=${kind}`, "-e", program], { cwd: here, encoding: "utf8" }).stdout));
  return Math.min(...times);
}

async function main() {
  const { values } = parseArgs({ options: { rust: { type: "string" }, json: { type: "string" }, check: { type: "boolean" } } });
  const program = values.rust ?? join(cargoTarget, "release/examples/observe");
  for (const way of Object.values(WAYS)) measure(...way);
  const base = rust(program);
  const figures = { node: process.version, cores: cpus().length, bytes: JSON.stringify(call(1)).length, rust: base ?? null, node_ns: {}, throughput: {} };
  const microseconds = (ns) => `${(ns / 1000).toFixed(2)} µs`;
  console.log(`observe, a call of ${figures.bytes} bytes (node ${process.version}):`);
  if (base === undefined) console.log(`  Rust: not measured; build it with \`cargo build --release -p deloop-bind --example observe\``);
  else for (const name of ["Step", "JSON"]) console.log(`  ${`Rust, ${name}`.padEnd(24)}${microseconds(base[`${name.toLowerCase()}_ns`])}`);
  for (const [name, way] of Object.entries(WAYS)) {
    figures.node_ns[name] = measure(...way);
    const over = base === undefined ? "" : `   ${microseconds(figures.node_ns[name] - base.step_ns)} over Rust from a Step, ${microseconds(figures.node_ns[name] - base.json_ns)} over JSON`;
    console.log(`  ${`Node, ${name}`.padEnd(24)}${microseconds(figures.node_ns[name])}${over}`);
  }
  for (const count of [1, 2, 8]) {
    figures.throughput[count] = Math.round(await throughput(count));
    console.log(`${count} worker${count > 1 ? "s" : ""}: ${figures.throughput[count].toLocaleString("en")} calls/s`);
  }
  figures.sessions = sessions(100_000);
  const { sessions: kept, megabytes, seconds, steps } = figures.sessions;
  console.log(`${kept.toLocaleString("en")} sessions, ${steps.toLocaleString("en")} steps: ${seconds.toFixed(1)} s, ${megabytes.toFixed(0)} MB`);
  figures.loading_ms = {
    import: loading('await import("deloop")', "module"),
    require: loading('require("deloop")', "commonjs"),
    "require and first observe": loading('new (require("deloop").Guard)().observe({ type: "end" })', "commonjs"),
  };
  for (const [name, ms] of Object.entries(figures.loading_ms)) console.log(`${name}: ${ms.toFixed(1)} ms`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(figures, null, 2)}\n`);
  if (values.check && base !== undefined) process.exitCode = missed(figures) ? 1 : 0;
}

/** Prints the targets that were missed and returns whether there are any. */
function missed({ node_ns: ns, rust: { step_ns: rust }, loading_ms: loaded, sessions: { sessions: kept } }) {
  const targets = [
    ["JSON string: at most 2 µs over Rust", ns["JSON string"] - rust <= 2000],
    ["object: at most 2 µs over Rust", ns.object - rust <= 2000],
    ["typed step: at most 5 µs over Rust", ns["typed step"] - rust <= 5000],
    ["import: under 20 ms", loaded.import < 20],
    ["100,000 sessions", kept === 100_000],
  ];
  const wrong = targets.filter(([, met]) => !met);
  for (const [target] of wrong) console.error(`missed: ${target}`);
  return wrong.length > 0;
}

/** A worker: says that it is ready, then observes for a second and says how often. */
function work() {
  const guard = new Guard();
  for (let i = 0; i < 10_000; i += 1) guard.observe(call(i));
  parentPort.once("message", () => {
    const end = performance.now() + 1000;
    let calls = 0;
    while (performance.now() < end) {
      for (const batch = calls + 100; calls < batch; calls += 1) guard.observe(call(10_000 + calls));
    }
    parentPort.postMessage(calls);
  });
  parentPort.postMessage("ready");
}

if (isMainThread) await main();
else work();
