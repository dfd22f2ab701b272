// The tools and models of the AI SDK tests.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { tool } from "ai";
import { z } from "zod";

import { versionOf } from "./harness.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

/** Returns the version of the AI SDK. */
export function version() {
  return versionOf("ai");
}

/** Returns a model of each API. */
export function models({ url }) {
  const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: "fake" });
  return {
    chat: openai.chat("fake-model"),
    responses: openai.responses("fake-model"),
    anthropic: createAnthropic({ baseURL: `${url}/v1`, apiKey: "fake" })("fake-model"),
  };
}

/** Returns the failing tool. */
export function failingTools(failing) {
  return {
    convert: tool({ description: "Convert a page.", inputSchema: z.object({ url: z.string() }), execute: async (input) => failing.convert(input) }),
  };
}

/** Returns the tools of the healthy run. */
export function workspaceTools(workspace) {
  const entries = Object.entries(workspace.tools).map(([name, [description, names, work]]) => {
    const inputSchema = z.object(Object.fromEntries(names.map((each) => [each, z.string()])));
    return [name, tool({ description, inputSchema, execute: async (input) => work(input) })];
  });
  return Object.fromEntries(entries);
}
