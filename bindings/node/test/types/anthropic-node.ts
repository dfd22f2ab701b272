// What users of the Anthropic client write must type-check in strict mode.
import Anthropic from "@anthropic-ai/sdk";
import { collect, type Decision, ToolLoop } from "deloop/anthropic";

const client = new Anthropic({ apiKey: "key" });
const loop = new ToolLoop({ exitBehavior: "error" });
const runTool = async (name: string, input: { city: string }): Promise<string> => `${name} ${input.city}`;

export async function main(messages: Anthropic.MessageParam[]): Promise<Decision | null> {
  const request = { model: "claude-sonnet-4-5", max_tokens: 1000, messages };
  const response = await client.messages.create(request);
  messages.push({ role: "assistant", content: response.content });
  const turn = loop.answered(response, messages);
  if (turn.calls.length > 0) messages.push({ role: "user", content: await turn.results(runTool) });
  const stream = collect(await client.messages.create({ ...request, stream: true }));
  for await (const event of stream) event.type.toUpperCase();
  loop.answered(stream.response, messages);
  return turn.done() ? loop.decision : null;
}
