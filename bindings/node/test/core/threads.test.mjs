// Workers: a guard in each, ended at any moment, and a session that moves from one to another.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { Guard, Step } from "deloop";

import { here } from "../../scripts/tools.mjs";
import { repository } from "./deloop.mjs";

const session = join(repository, "crates/formats/src/agents/claude_code/fixtures/stuck.jsonl");

/** Runs this code, with deloop's exports, in a worker and returns what it posts. */
function inWorker(code, data) {
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { Guard, Step } = require(${JSON.stringify(here)});
    ${code}`;
  const worker = new Worker(program, { eval: true, workerData: data });
  return new Promise((resolve, reject) => {
    worker.once("message", (value) => resolve(worker.terminate().then(() => value)));
    worker.once("error", reject);
  });
}

test("eight workers decide alike", async () => {
  const code = `
    const guard = new Guard();
    const actions = [];
    for (let i = 0; i < 2000; i += 1) {
      const id = "c" + i;
      actions.push(guard.observe(Step.call("s" + (i % 7), "bash", { command: "make" }, { id })).action);
      actions.push(guard.observe(Step.result("s" + (i % 7), id, { ok: false, output: "no rule" })).action);
    }
    parentPort.postMessage(actions);`;
  const all = await Promise.all(Array.from({ length: 8 }, () => inWorker(code)));
  assert.equal(all[0].length, 4000);
  assert.ok(all[0].includes("stop"));
  for (const actions of all) assert.deepEqual(actions, all[0]);
});

test("a session moves to a worker with its checkpoint", async () => {
  const guard = new Guard({ profile: "turn-hash" });
  guard.observe(Step.turn("s", { text: "Again." }));
  const code = `
    const guard = new Guard({ profile: "turn-hash" });
    guard.restore("s", workerData);
    parentPort.postMessage(guard.observe(Step.turn("s", { text: "Again." })).action);`;
  assert.equal(await inWorker(code, guard.checkpoint("s")), "nudge");
});

test("workers that are ended while they work take nothing with them", () => {
  // The addon is loaded in workers only, so that ending the last one could unload it.
  const program = `
    const { Worker } = require("node:worker_threads");
    const work = \`
      const { parentPort, workerData } = require("node:worker_threads");
      const { Guard, steps } = require(${JSON.stringify(here)});
      const guard = new Guard();
      for (let done = 0; ; ) for (const step of steps(${JSON.stringify(session)})) {
        guard.observe(step);
        done += 1;
        if (done === workerData) parentPort.postMessage("at work");
      }\`;
    (async () => {
      // The first is ended while it loads the addon, the others while they work.
      for (let i = 0; i < 12; i += 1) {
        const worker = new Worker(work, { eval: true, workerData: 37 * i });
        await new Promise((resolve) => worker.once(i === 0 ? "online" : "message", resolve));
        await worker.terminate();
      }
      console.log("done");
    })();`;
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8" });
  assert.equal(stdout, "done\n", `${status} ${signal}: ${stderr}`);
  assert.equal(status, 0);
});
