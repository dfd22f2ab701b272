// The tarballs, installed from files into an empty project of a machine without Rust and without a network.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";

import { version } from "deloop";

import { pack } from "../../scripts/pack.mjs";
import { platformName } from "../../scripts/tools.mjs";
import { emptyFolder, environment, repository } from "./deloop.mjs";

const session = join(repository, "crates/formats/src/agents/claude_code/fixtures/stuck.jsonl");

test("tarballs work in an empty project", { skip: process.platform === "win32" }, async (t) => {
  const tarballs = pack();
  const root = emptyFolder(t);
  const [home, project, tools] = ["home", "project", "tools"].map((name) => join(root, name));
  for (const folder of [home, project, tools]) mkdirSync(folder);
  const path = [dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
  const env = { ...environment(home), PATH: path, npm_config_cache: join(root, "cache"), npm_config_userconfig: join(root, "npmrc") };
  const run = (program, args, input = "") => {
    const done = spawnSync(program, args, { cwd: project, env, input, encoding: "utf8" });
    return { ...done, told: `${program} ${args.join(" ")}: ${done.status ?? done.error}\n${done.stdout}\n${done.stderr}` };
  };
  const ok = (program, args, input) => {
    const done = run(program, args, input);
    assert.equal(done.status, 0, done.told);
    return done.stdout;
  };
  for (const rust of ["cargo", "rustc"]) assert.equal(run(rust, ["--version"]).error?.code, "ENOENT", `${rust} is on PATH`);

  writeFileSync(join(project, "package.json"), "{}");
  ok("npm", ["install", "--offline", "--no-audit", "--no-fund", ...tarballs.map((tarball) => tarball.path)]);
  const npx = (...args) => run("npx", ["--offline", "--no-install", "deloop", ...args]);
  const native = join(project, `node_modules/@deloop/cli-${platformName()}/bin/deloop`);

  await t.test("deloop --version", () => assert.equal(npx("--version").stdout, `deloop ${version}\n`));

  await t.test("deloop scan", () => {
    const scanned = npx("scan", "--json", session);
    assert.equal(scanned.status, 0, scanned.told);
    assert.ok(JSON.parse(scanned.stdout).loops.length > 0, scanned.told);
  });

  await t.test("deloop install claude-code, and one hook call", () => {
    const installed = npx("install", "claude-code");
    assert.equal(installed.status, 0, installed.told);
    const { hooks } = JSON.parse(readFileSync(join(home, ".claude/settings.json"), "utf8"));
    const line = hooks.PreToolUse[0].hooks[0].command;
    // The native program: a hook must not start Node.
    assert.ok(line.startsWith(realpathSync(native)), line);
    const event = {
      session_id: "s1", transcript_path: join(home, "none.jsonl"), cwd: project, permission_mode: "default",
      hook_event_name: "PreToolUse", tool_name: "Bash", tool_use_id: "c1", tool_input: { command: "ls" },
    };
    ok("/bin/sh", ["-c", line], JSON.stringify(event));
    assert.match(ok(native, ["status"]), /claude-code|Claude Code/);
  });

  await t.test("import and require", () => {
    const use = 'const d = new Guard().observe(Step.call("s", "ls")); console.log(d.action, d.session, version);';
    const imported = ok(process.execPath, ["--input-type=module", "-e", `import { Guard, Step, version } from "deloop"; ${use}`]);
    const required = ok(process.execPath, ["-e", `const { Guard, Step, version } = require("deloop"); ${use}`]);
    assert.equal(imported, `continue s ${version}\n`);
    assert.equal(required, imported);
  });

  const { exports } = JSON.parse(readFileSync(join(project, "node_modules/deloop/package.json"), "utf8"));

  await t.test("one adapter run", { skip: !("./openai" in exports) }, () => {
    // A model that repeats a failing call for ever; the loop is the one in docs/frameworks/openai-node.md.
    const program = `
      import { ToolLoop } from "deloop/openai";
      const messages = [{ role: "user", content: "Get the data." }];
      const loop = new ToolLoop({ logger: null });
      let ran = 0;
      for (let turn, i = 0; !turn?.done() && i < 50; i += 1) {
        const tool_calls = [{ id: "c" + i, type: "function", function: { name: "convert_text", arguments: "{}" } }];
        const response = { choices: [{ message: { role: "assistant", content: null, tool_calls } }] };
        messages.push(response.choices[0].message);
        turn = loop.answered(response, messages);
        messages.push(...(await turn.results(async () => { ran += 1; throw new Error("no such table: orders"); })));
        if (turn.done()) console.log(turn.stop.action, i + 1, ran);
      }`;
    assert.match(ok(process.execPath, ["--input-type=module", "-e", program]), /^stop 8 5\n$/);
  });

  await t.test("every export has its files", () => {
    for (const [name, target] of Object.entries(exports).filter(([, target]) => typeof target === "object")) {
      for (const file of [target.import, target.require].flatMap((kind) => [kind.types, kind.default])) {
        assert.ok(existsSync(join(project, "node_modules/deloop", file)), `${name}: ${file}`);
      }
    }
  });

  await t.test("steps and scan", () => {
    const program = `
      import { scan, steps } from "deloop";
      const kinds = [...steps(${JSON.stringify(session)})].map((step) => step.type);
      for await (const loop of scan(${JSON.stringify(session)})) console.log(kinds.includes("result"), loop.format);`;
    assert.match(ok(process.execPath, ["--input-type=module", "-e", program]), /^true claude-code\n/);
  });

  await t.test("the package has what it needs and nothing else", () => {
    const listed = ok("tar", ["tzf", tarballs[0].path]).split("\n");
    assert.ok(listed.every((file) => !/\.ts$/.test(file) || /\.d\.ts$/.test(file)), "sources");
    assert.ok(listed.includes("package/LICENSE-MIT") && listed.includes("package/bin/deloop.js"));
    for (const { path: file, size, unpackedSize } of tarballs) {
      t.diagnostic(`${file.split("/").at(-1)}: ${(size / 1e6).toFixed(2)} MB, ${(unpackedSize / 1e6).toFixed(2)} MB installed`);
    }
  });
});
