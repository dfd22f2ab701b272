// bin/deloop.js: what is typed as `deloop` after npm installed it.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { command, version } from "deloop";

import { here } from "../../scripts/tools.mjs";
import { emptyFolder, environment } from "./deloop.mjs";

const launcher = join(here, "bin/deloop.js");

function run(home, args, input = "") {
  const options = { cwd: home, env: environment(home), input, encoding: "utf8", maxBuffer: 1 << 28 };
  return spawnSync(process.execPath, [launcher, ...args], options);
}

test("arguments, input, output and exit codes pass through", (t) => {
  const home = emptyFolder(t);
  assert.equal(run(home, ["--version"]).stdout, `deloop ${version}\n`);
  const lines = Array.from({ length: 20_000 }, (_, i) => JSON.stringify({ type: "user", session: "s", text: `é ${i}` }));
  const answers = run(home, ["stream"], `${lines.join("\n")}\n`);
  assert.equal(answers.status, 0);
  assert.equal(answers.stdout.split("\n").length, lines.length + 1);
  const malformed = run(home, ["stream"], "{}\n");
  assert.equal(malformed.status, 2);
  assert.match(malformed.stderr, /line 1: missing field `type`/);
  assert.equal(run(home, ["no-such-command"]).status, 2);
  assert.match(run(home, ["scan", "a b", "--json"]).stderr, /a b/);
});

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"]) {
  test(`${signal} ends the command and the launcher`, { skip: process.platform === "win32" }, async (t) => {
    const home = emptyFolder(t);
    const child = spawn(process.execPath, [launcher, "stream"], { cwd: home, env: environment(home) });
    child.stdin.write('{"type":"user","text":"hi"}\n');
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.kill(signal);
    // Standard output closes when no process has it any more.
    const ended = new Promise((resolve) => child.once("close", (code, by) => resolve(by ?? code)));
    // A launcher that is killed can pass nothing on; the command ends because its input does.
    if (signal === "SIGKILL") child.stdin.end();
    assert.equal(await ended, signal);
  });
}

test("the command is the native program", () => {
  assert.ok(existsSync(command()));
  assert.notEqual(command(), launcher);
});

test("without a package for this platform, the error says what to install", (t) => {
  const folder = emptyFolder(t);
  for (const part of ["bin", "dist", "package.json"]) cpSync(join(here, part), join(folder, "deloop", part), { recursive: true });
  mkdirSync(join(folder, "empty"));
  const { status, stderr } = spawnSync(process.execPath, [join(folder, "deloop/bin/deloop.js"), "--version"], { encoding: "utf8" });
  assert.equal(status, 2);
  assert.match(stderr, /@deloop\/cli-.* isn't installed/);
});
