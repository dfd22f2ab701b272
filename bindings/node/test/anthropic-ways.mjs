// Tool loops around the Anthropic client as people write them, with deloop's lines.
import Anthropic from "@anthropic-ai/sdk";
import { collect, ToolLoop } from "deloop/anthropic";

export { ToolLoop };

const begin = (text) => [{ role: "user", content: text }];

async function settled(runTool, call) {
  try {
    return { output: await runTool(call.name ?? call.tool, call.input ?? call.args) };
  } catch (error) {
    return { output: `${error.code ?? error.name}: ${error.message}`, error };
  }
}

const block = (tool_use_id, content, failed) => ({ type: "tool_result", tool_use_id, content, ...(failed ? { is_error: true } : {}) });

async function byHandResults(turn, runTool) {
  const results = [];
  for (const call of turn.calls) {
    const refusal = turn.refusal(call.id);
    const { output, error } = refusal === undefined ? await settled(runTool, call) : { output: refusal };
    results.push(block(call.id, turn.result(call.id, output, error), refusal !== undefined || error !== undefined));
  }
  return results;
}

async function answer(client, request, way) {
  if (way === "helper") return client.messages.stream(request).finalMessage();
  if (way === "whole") return client.messages.create(request);
  const events = collect(await client.messages.create({ ...request, stream: true }));
  for await (const event of events) void event;
  return events.response;
}

async function messagesLoop(way, model, { loop, messages, tools, runTool, most, byHand = false }) {
  const client = new Anthropic({ baseURL: model.url, apiKey: "fake", maxRetries: 0 });
  const listed = Object.entries(tools).map(([name, [description, names]]) => ({
    name, description, input_schema: { type: "object", properties: Object.fromEntries(names.map((each) => [each, { type: "string" }])), required: names },
  }));
  for (let turns = 0; turns < most; turns += 1) {
    const response = await answer(client, { model: "fake-model", max_tokens: 1000, messages, tools: listed }, way);
    messages.push({ role: "assistant", content: response.content });
    if (loop !== undefined) {
      const turn = loop.answered(response, messages);
      if (turn.calls.length > 0) messages.push({ role: "user", content: byHand ? await byHandResults(turn, runTool) : await turn.results(runTool) });
      if (turn.done()) {
        if (turn.stop !== null) messages.push({ role: "assistant", content: turn.text });
        return { text: turn.text, messages };
      }
    } else {
      const calls = response.content.filter((each) => each.type === "tool_use");
      if (calls.length === 0) return { text: response.content[0].text, messages };
      const results = await Promise.all(calls.map(async (call) => {
        const { output, error } = await settled(runTool, call);
        return block(call.id, output, error !== undefined);
      }));
      messages.push({ role: "user", content: results });
    }
  }
  return { text: "", messages };
}

/** The loops by name. */
export const ways = Object.fromEntries(
  [["messages", "whole"], ["messages, streaming", "events"], ["messages, streaming helper", "helper"]].map(([name, way]) => [
    name, { run: (model, options) => messagesLoop(way, model, options), begin, toolRole: "user" },
  ]),
);
