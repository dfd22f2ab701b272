// Tool loops around the OpenAI client as people write them, with deloop's lines.
import { collect, ToolLoop } from "deloop/openai";
import OpenAI from "openai";

export { ToolLoop };

const client = ({ url }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "fake", maxRetries: 0 });
const parameters = (names) => ({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: names });
const chatTools = (tools) => Object.entries(tools).map(([name, [description, names]]) => ({ type: "function", function: { name, description, parameters: parameters(names) } }));
const responseTools = (tools) => Object.entries(tools).map(([name, [description, names]]) => ({ type: "function", name, description, parameters: parameters(names), strict: false }));
const begin = (text) => [{ role: "user", content: text }];

async function settled(runTool, name, args) {
  try {
    return { output: await runTool(name, JSON.parse(args)) };
  } catch (error) {
    return { output: `${error.code ?? error.name}: ${error.message}`, error };
  }
}

async function byHandResults(turn, runTool, shape) {
  const results = [];
  for (const call of turn.calls) {
    const refusal = turn.refusal(call.id);
    const { output, error } = refusal === undefined ? await settled(runTool, call.tool, call.args) : { output: refusal };
    results.push(shape(call.id, turn.result(call.id, output, error)));
  }
  return results;
}

async function chat(model, { loop, messages, tools, runTool, most, stream = false, byHand = false }) {
  const openai = client(model);
  for (let turns = 0; turns < most; turns += 1) {
    const request = { model: "fake-model", messages, tools: chatTools(tools) };
    let response;
    if (stream) {
      const chunks = collect(await openai.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } }));
      for await (const chunk of chunks) void chunk;
      response = chunks.response;
    } else response = await openai.chat.completions.create(request);
    const { message } = response.choices[0];
    messages.push(message);
    if (loop !== undefined) {
      const turn = loop.answered(response, messages);
      const shape = (tool_call_id, content) => ({ role: "tool", tool_call_id, content });
      messages.push(...(byHand ? await byHandResults(turn, runTool, shape) : await turn.results(runTool)));
      if (turn.done()) return { text: turn.text, messages };
    } else {
      if (!message.tool_calls?.length) return { text: message.content, messages };
      for (const call of message.tool_calls) {
        messages.push({ role: "tool", tool_call_id: call.id, content: (await settled(runTool, call.function.name, call.function.arguments)).output });
      }
    }
  }
  return { text: "", messages };
}

async function responses(model, { loop, messages, tools, runTool, most, stream = false }) {
  const openai = client(model);
  for (let turns = 0; turns < most; turns += 1) {
    const request = { model: "fake-model", input: messages, tools: responseTools(tools), store: false };
    let response;
    if (stream) {
      const events = collect(await openai.responses.create({ ...request, stream: true }));
      for await (const event of events) void event;
      response = events.response;
    } else response = await openai.responses.create(request);
    messages.push(...response.output);
    if (loop !== undefined) {
      const turn = loop.answered(response, messages);
      messages.push(...(await turn.results(runTool)));
      if (turn.done()) return { text: turn.text, messages };
    } else {
      const calls = response.output.filter((item) => item.type === "function_call");
      if (calls.length === 0) return { text: response.output[0].content[0].text, messages };
      for (const call of calls) {
        messages.push({ type: "function_call_output", call_id: call.call_id, output: (await settled(runTool, call.name, call.arguments)).output });
      }
    }
  }
  return { text: "", messages };
}

/** The loops by name. */
export const ways = {
  chat: { run: chat, begin, toolRole: "tool" },
  "chat, streaming": { run: (model, options) => chat(model, { ...options, stream: true }), begin, toolRole: "tool" },
  responses: { run: responses, begin, toolRole: "tool" },
  "responses, streaming": { run: (model, options) => responses(model, { ...options, stream: true }), begin, toolRole: "tool" },
};
