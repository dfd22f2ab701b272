// The tools, models and checkpointer of the LangChain.js tests.
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { tool } from "langchain";
import { z } from "zod";

import { versionOf } from "./harness.mjs";

process.env.LANGSMITH_TRACING = "false";

/** Returns the version of LangChain.js. */
export function version() {
  return versionOf("langchain");
}

/** Returns a model of each API. */
export function models({ url }, options = {}) {
  const fields = { model: "fake-model", apiKey: "fake", configuration: { baseURL: `${url}/v1` }, maxRetries: 0, ...options };
  return { chat: new ChatOpenAI(fields), responses: new ChatOpenAI({ ...fields, useResponsesApi: true }) };
}

/** Returns the failing tool. */
export function failingTools(failing) {
  return [tool(async (input) => failing.convert(input), { name: "convert", description: "Convert a page.", schema: z.object({ url: z.string() }) })];
}

/** Returns the tools of the healthy run. */
export function workspaceTools(workspace) {
  return Object.entries(workspace.tools).map(([name, [description, names, work]]) => {
    const schema = z.object(Object.fromEntries(names.map((each) => [each, z.string()])));
    return tool(async (input) => work(input), { name, description, schema });
  });
}

/** A checkpointer whose memory can be written to a file and read back. */
export class FileSaver extends MemorySaver {
  toText() {
    return JSON.stringify([this.storage, this.writes], (_, value) => (value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value));
  }

  static fromText(text) {
    const saver = new FileSaver();
    const revive = (_, value) => (value && typeof value.bytes === "string" ? new Uint8Array(Buffer.from(value.bytes, "base64")) : value);
    // A Uint8Array has toJSON through Buffer only, so the pairs of numbers that JSON makes of it never appear.
    [saver.storage, saver.writes] = JSON.parse(text, revive);
    return saver;
  }
}
