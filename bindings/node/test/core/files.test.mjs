// steps() and scan(): stored sessions, in all formats.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { command, Guard, scan, scanReport, steps } from "deloop";

import { emptyFolder, environment, repository } from "./deloop.mjs";

/** The example session of each format, `stuck.*` in the folder of its fixtures. */
function fixtures() {
  const source = join(repository, "crates/formats/src");
  const folders = ["agents", "apis"].flatMap((kind) => readdirSync(join(source, kind), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => join(source, kind, entry.name, "fixtures")));
  return folders.flatMap((folder) => {
    try {
      return readdirSync(folder).filter((file) => /^stuck\.(json|jsonl|traj|json\.txt)/.test(file)).map((file) => join(folder, file));
    } catch {
      return [];
    }
  });
}

test("steps() reads every format as the command does", (t) => {
  const home = emptyFolder(t);
  const files = fixtures();
  assert.ok(files.length >= 10, `${files.length} fixtures`);
  for (const file of files) {
    const { stdout, status, stderr } = spawnSync(command(), ["steps", file], { cwd: home, env: environment(home), encoding: "utf8", maxBuffer: 1 << 28 });
    assert.equal(status, 0, `${file}: ${stderr}`);
    const expected = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual([...steps(file)], expected, file);
  }
});

test("steps() reads compressed files and long ones, and can be left early", (t) => {
  const file = fixtures().find((path) => path.includes("claude_code"));
  const folder = emptyFolder(t);
  const packed = join(folder, "session.jsonl.gz");
  writeFileSync(packed, gzipSync(readFileSync(file)));
  assert.deepEqual([...steps(packed)], [...steps(file)]);
  const long = join(folder, "long.jsonl");
  const lines = Array.from({ length: 5000 }, (_, i) => JSON.stringify({ type: "call", session: "s", id: `c${i}`, tool: "ls", args: { i } }));
  writeFileSync(long, `${lines.join("\n")}\nnot JSON\n`);
  const notes = [];
  const all = [...steps(long, { format: "native", onNote: (note) => notes.push(note) })];
  assert.deepEqual(all.map((step) => step.id), lines.map((_, i) => `c${i}`));
  assert.match(notes.join(), /skipped 1 unreadable line/);
  for (const step of steps(long)) {
    assert.equal(step.id, "c0");
    break;
  }
  const guard = new Guard();
  for (const step of steps(file)) guard.observe(step);
});

test("steps() says what is wrong with a file", (t) => {
  const folder = emptyFolder(t);
  const path = join(folder, "other.bin");
  writeFileSync(path, "\u0000\u0001\u0002 nothing that deloop knows");
  assert.throws(() => [...steps(join(folder, "none"))], /none: No such file/);
  assert.throws(() => [...steps(folder)], /not a regular file/);
  assert.throws(() => [...steps(path)], /format/);
  assert.throws(() => [...steps(path, { format: "cluade" })], /unknown format `cluade`; known formats: claude-code/);
  assert.throws(() => [...steps(undefined)], /string/i);
});

test("scan() finds the loops that the command reports", async (t) => {
  const files = fixtures().filter((path) => /claude_code|codex/.test(path));
  const report = await scanReport(files, { profile: "default" });
  assert.ok(report.loops.length >= 2);
  assert.equal(report.totals.files, files.length);
  const loops = [];
  for await (const loop of scan(files)) loops.push(loop);
  assert.deepEqual(loops, report.loops);
  const top = [];
  for await (const loop of scan(files, { top: 1, redact: true, format: undefined })) top.push(loop);
  assert.equal(top.length, 1);
  const folder = emptyFolder(t);
  for await (const loop of scan(folder)) assert.fail(loop.pattern);
});

test("scan() throws what the command couldn't do", async (t) => {
  const none = join(emptyFolder(t), "--none.jsonl");
  await assert.rejects(async () => { for await (const _ of scan(none)); }, /none\.jsonl/);
  await assert.rejects(async () => { for await (const _ of scan([], { profile: "defualt" })); }, /unknown profile|defualt/);
  const [file] = fixtures().filter((path) => path.includes("claude_code"));
  const seen = [];
  await assert.rejects(async () => { for await (const loop of scan([file, none])) seen.push(loop); }, /none\.jsonl/);
  assert.ok(seen.length > 0, "what could be read comes first");
  const { problems } = await scanReport([file, none]);
  assert.equal(problems.length, 1);
});
