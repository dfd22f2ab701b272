#!/usr/bin/env node
// Starts the native command in place of this process: the same input, output, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { command } = require("../dist/cjs/core/platform.js");

/** Replaces this process, where Node can (22.15 and later, not on Windows). */
function replaceProcess(path) {
  if (typeof process.execve !== "function" || process.platform === "win32") return;
  // It warns that it is experimental. If it fails, it ends the process.
  process.removeAllListeners("warning");
  process.execve(path, [path, ...process.argv.slice(2)], process.env);
}

/** Runs the command beside this process and passes signals on. */
function runBeside(path) {
  const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
  const passed = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGWINCH", "SIGCONT"];
  for (const signal of passed.filter((name) => name in constants.signals)) {
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
