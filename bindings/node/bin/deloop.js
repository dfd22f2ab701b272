#!/usr/bin/env node
// Starts the native command in place of this process: the same input, output, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const { signals } = require("node:os").constants;
const { command } = require("../dist/cjs/core/platform.js");

/** Replaces this process, where Node can (22.15 and later, not on Windows). */
function replaceProcess(path) {
  if (typeof process.execve !== "function" || process.platform === "win32") return;
  // Where it fails it aborts, so what can be checked is checked before.
  accessSync(path, constants.X_OK);
  process.execve(path, [path, ...process.argv.slice(2)], process.env);
}

/** Runs the command beside this process and passes signals on. */
function runBeside(path) {
  const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"].filter((name) => name in signals)) {
    // A terminal sends SIGINT to both; the command decides what it means.
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", fail);
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // End as the command did, so that a shell sees the same.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function fail(error) {
  process.stderr.write(`deloop: ${error.message}\n`);
  process.exit(2);
}

try {
  const path = command();
  replaceProcess(path);
  runBeside(path);
} catch (error) {
  fail(error);
}
