// The row of the Anthropic client.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { StopError, ToolLoop } from "deloop/anthropic";

import { versionOf } from "./harness.mjs";
import { defineTests } from "./plain-loops.mjs";
import { ways } from "./anthropic-ways.mjs";

const require = createRequire(import.meta.url);

defineTests({ name: "anthropic-node", version: versionOf("@anthropic-ai/sdk"), page: "anthropic-node", ways, ToolLoop, StopError, module: "anthropic-ways.mjs" });

test("require works", () => {
  assert.equal(typeof require("deloop/anthropic").ToolLoop, "function");
});
