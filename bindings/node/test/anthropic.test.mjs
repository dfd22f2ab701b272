// The row of the Anthropic client.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import { StopError, ToolLoop } from "deloop/anthropic";

import { defineTests } from "./plain-loops.mjs";
import { ways } from "./anthropic-ways.mjs";

const require = createRequire(import.meta.url);
const folder = require.resolve("@anthropic-ai/sdk").replace(/(node_modules\/@anthropic-ai\/sdk)\/.*/, "$1");
const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));

defineTests({ name: "anthropic-node", version, page: "anthropic-node", ways, ToolLoop, StopError, module: "anthropic-ways.mjs" });

test("require works", () => {
  assert.equal(typeof require("deloop/anthropic").ToolLoop, "function");
});
