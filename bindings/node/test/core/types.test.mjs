// The types, in a program that is compiled with --strict as ESM and as CommonJS and then run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { version } from "deloop";

import { here, scratch, tsc } from "../../scripts/tools.mjs";

/** Compiles the program in a project of its own, in which deloop is installed, and runs it. */
function compiled(kind, settings) {
  const project = join(scratch, `types-${kind}`);
  rmSync(project, { recursive: true, force: true });
  mkdirSync(join(project, "node_modules"), { recursive: true });
  symlinkSync(here, join(project, "node_modules/deloop"), "junction");
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: kind === "esm" ? "module" : "commonjs" }));
  copyFileSync(join(here, "test/types/program.ts"), join(project, "program.ts"));
  const compilerOptions = {
    strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, noUnusedLocals: true, skipLibCheck: false,
    target: "es2022", lib: ["es2022"], types: [], outDir: "out", declaration: true, ...settings,
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  const checked = spawnSync(process.execPath, [tsc(), "-p", "."], { cwd: project, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
  const run = spawnSync(process.execPath, ["out/program.js"], { cwd: project, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return JSON.parse(run.stdout);
}

const expected = [["bash", "[object Object]", "user", 1, 0, "state"], 0, 0, 1, "function", "stopped", version];

test("a strict ESM program compiles and runs", () => {
  assert.deepEqual(compiled("esm", { module: "nodenext" }), expected);
});

test("a strict CommonJS program compiles and runs", () => {
  assert.deepEqual(compiled("cjs", { module: "nodenext" }), expected);
});

test("a program for a bundler compiles", () => {
  assert.deepEqual(compiled("bundler", { module: "commonjs", moduleResolution: "bundler" }), expected);
});
