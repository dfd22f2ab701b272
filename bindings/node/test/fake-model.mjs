// A fake model on loopback: OpenAI chat completions and responses, and Anthropic messages, streaming and not.
//
// It answers by a script, records every request, and refuses messages in an order that the providers refuse (400).
//   node fake-model.mjs [--port N] [--script same-failing-call|same-failing-batch|healthy|text]
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { responseItems, wrongOrder } from "./model-order.mjs";
import { streamedAnswer, wholeAnswer } from "./model-wire.mjs";

/** One recorded request. */
export class ModelRequest {
  constructor(api, raw, body, stored) {
    const items = api === "responses" ? responseItems(body, stored) : [];
    Object.assign(this, { api, raw, body, items, refused: wrongOrder(api, body, items) });
  }

  /** The conversation as a list of `{ role, text, calls }`, without what each API adds. */
  get conversation() {
    if (this.api === "responses") return this.items.map(responseEntry);
    return (this.body.messages ?? []).map(this.api === "chat" ? chatEntry : anthropicEntry);
  }

  /** The number of turns of the model that made calls. */
  get turns() {
    if (this.api !== "responses") return this.conversation.filter((entry) => entry.calls > 0).length;
    const kinds = this.conversation.map((entry) => entry.calls > 0);
    return kinds.filter((call, index) => call && !kinds[index - 1]).length;
  }

  /** The names of the tools that are offered. */
  get tools() {
    return (this.body.tools ?? []).map((tool) => tool.name ?? tool.function?.name);
  }

  /** Returns whether the conversation shows a text. */
  shows(text) {
    return this.conversation.some((entry) => entry.text.includes(text));
  }
}

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? (part.content === undefined ? "" : textOf(part.content))).join("\n");
const chatEntry = (message) => ({ role: message.role, text: textOf(message.content), calls: message.tool_calls?.length ?? 0 });
const anthropicEntry = (message) => ({
  role: message.role,
  text: textOf(message.content),
  calls: Array.isArray(message.content) ? message.content.filter((block) => block.type === "tool_use").length : 0,
});
function responseEntry(item) {
  if (item.type === "function_call") return { role: "assistant", text: "", calls: 1 };
  if (item.type === "function_call_output") return { role: "tool", text: textOf(item.output), calls: 0 };
  return { role: item.role, text: textOf(item.content), calls: 0 };
}

/** The scripts by name: functions of a request that return `{ text, calls: [[tool, args], …] }`. */
export const scripts = {
  /** Answers everything with one sentence. */
  text: () => () => ({ text: "I am done." }),
  /** Makes the same call in every turn. */
  "same-failing-call": () => sameCalls([[null, { url: "https://example.test/data" }]]),
  /** Makes the same three calls in every turn. */
  "same-failing-batch": () => sameCalls(["a", "b", "c"].map((name) => [null, { url: `https://example.test/${name}` }])),
  /** Works for 30 turns as an agent that makes progress: reads, edits, failing and passing tests. */
  healthy: (turns = 30) => (request) => {
    const n = request.turns;
    if (n >= turns) return { text: "All tests pass now." };
    return { text: n % 3 === 0 ? `Step ${n}.` : "", calls: work(n) };
  },
};

/** Returns a script that makes the same calls in every turn; a call without a tool takes the first tool offered. */
export function sameCalls(calls, text = "") {
  return (request) => {
    if (request.tools.length === 0) return { text: "I am done." };
    return { text, calls: calls.map(([tool, args]) => [tool ?? request.tools[0], args]) };
  };
}

function work(n) {
  const part = Math.floor(n / 5);
  const path = `src/part${part}.py`;
  return [
    [["read_file", { path }], ["search", { pattern: `def part${part}` }]],
    [["run_tests", { name: `part${part}` }]],
    [["edit_file", { path, text: `def part${part}():\n    return ${n}\n` }]],
    [["run_tests", { name: `part${part}` }], ["read_file", { path }], ["read_file", { path: `missing${n}.txt` }]],
    [["edit_file", { path: `docs/part${part}.md`, text: `part ${part} returns ${n - 2}\n` }]],
  ][n % 5];
}

/** A fake model server. `await using` closes it. */
export class FakeModel {
  #server;
  #calls = 0;
  #answers = 0;
  #stored = new Map();

  /** The requests so far. */
  requests = [];

  constructor(script) {
    this.script = script;
  }

  /** Starts a fake model on a free port. */
  static async start(script = scripts["same-failing-call"](), port = 0) {
    const model = new FakeModel(script);
    model.#server = createServer((request, response) => void model.#serve(request, response));
    await new Promise((resolve) => model.#server.listen(port, "127.0.0.1", resolve));
    model.url = `http://127.0.0.1:${model.#server.address().port}`;
    return model;
  }

  /** The requests that got an answer of the model. */
  get answered() {
    return this.requests.filter((request) => request.refused === null);
  }

  /** The environment in which programs reach this model. */
  get env() {
    return {
      OPENAI_BASE_URL: `${this.url}/v1`, OPENAI_API_KEY: "fake", ANTHROPIC_API_KEY: "fake",
      ANTHROPIC_BASE_URL: this.url, LANGSMITH_TRACING: "false", AI_SDK_LOG_WARNINGS: "false",
    };
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  async #serve(incoming, response) {
    let raw = "";
    for await (const piece of incoming.setEncoding("utf8")) raw += piece;
    const path = incoming.url.split("?")[0];
    const api = path.endsWith("/chat/completions") ? "chat" : path.endsWith("/responses") ? "responses" : path.endsWith("/messages") ? "anthropic" : null;
    if (api === null) return send(response, 404, { error: { message: `no route ${path}` } });
    const request = new ModelRequest(api, raw, JSON.parse(raw), this.#stored);
    this.requests.push(request);
    if (request.refused !== null) return send(response, 400, failure(api, request.refused));
    const reply = await this.script(request);
    if (reply.status !== undefined) return send(response, reply.status, failure(api, reply.error ?? "error"));
    const answer = this.#answer(request, reply);
    if (api === "responses" && request.body.store !== false) this.#store(request, wholeAnswer(api, answer));
    if (!request.body.stream) return send(response, 200, wholeAnswer(api, answer));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of streamedAnswer(api, answer, request.body)) response.write(event);
    return response.end();
  }

  /** Keeps the items of a response, so that later requests can refer to them. */
  #store(request, { id, output }) {
    for (const item of output) this.#stored.set(item.id, item);
    this.#stored.set(id, [...request.items, ...output]);
  }

  #answer(request, { text = "", calls = [] }) {
    const number = String(this.#answers++).padStart(4, "0");
    const prefix = { chat: "chatcmpl", responses: "resp", anthropic: "msg" }[request.api];
    const listed = calls.map(([tool, args]) => {
      const id = `${request.api === "anthropic" ? "toolu" : "call"}_${String(this.#calls++).padStart(4, "0")}`;
      return { id, tool, args: typeof args === "string" ? args : JSON.stringify(args) };
    });
    return { id: `${prefix}_${number}`, model: request.body.model, text, calls: listed };
  }
}

function failure(api, message) {
  const error = { message, type: "invalid_request_error", param: null, code: null };
  return api === "anthropic" ? { type: "error", error: { type: error.type, message } } : { error };
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { port: { type: "string", default: "0" }, script: { type: "string", default: "same-failing-call" } } });
  const model = await FakeModel.start(scripts[values.script](), Number(values.port));
  console.log(model.url);
}
