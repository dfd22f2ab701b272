// What the tests of the core share.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { command } from "deloop";

/** The repository. */
export const repository = resolve(dirname(fileURLToPath(import.meta.url)), "../../../..");
/** Loads CommonJS, as a program with `require` does. */
export const require = createRequire(import.meta.url);

/** Returns an empty folder that is removed after the test. */
export function emptyFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), "deloop-node-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns an environment in which `home` is the home folder and nothing else configures deloop. */
export function environment(home) {
  const others = Object.entries(process.env).filter(([name]) => !/^(DELOOP|XDG_|CLAUDE|CODEX|NODE_OPTIONS)/.test(name));
  return { ...Object.fromEntries(others), HOME: home, USERPROFILE: home };
}

/** Returns what `deloop stream` answers to these lines. */
export function stream(home, args, lines) {
  const input = `${lines.join("\n")}\n`;
  const options = { cwd: home, env: environment(home), input, encoding: "utf8", maxBuffer: 1 << 29 };
  const { stdout, error } = spawnSync(command(), ["stream", ...args], options);
  if (error !== undefined) throw error;
  return stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
}
