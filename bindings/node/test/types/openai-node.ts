// What users of the OpenAI client write must type-check in strict mode.
import { collect, type Decision, ToolLoop } from "deloop/openai";
import OpenAI from "openai";

const client = new OpenAI({ apiKey: "key" });
const loop = new ToolLoop({ session: "chat", onDecision: (decision: Decision) => decision.action });
const runTool = async (name: string, args: { city: string }): Promise<string> => `${name} ${args.city}`;

export async function chat(messages: OpenAI.ChatCompletionMessageParam[]): Promise<string> {
  const response = await client.chat.completions.create({ model: "gpt-5", messages });
  messages.push(response.choices[0]!.message);
  const turn = loop.answered(response, messages);
  messages.push(...(await turn.results(runTool)));
  const stream = collect(await client.chat.completions.create({ model: "gpt-5", messages, stream: true }));
  for await (const chunk of stream) chunk.choices[0]?.delta.content?.toUpperCase();
  loop.answered(stream.response, messages);
  return turn.done() ? turn.text : "";
}

export async function responses(input: OpenAI.Responses.ResponseInput): Promise<boolean> {
  const response = await client.responses.create({ model: "gpt-5", input });
  input.push(...(response.output as OpenAI.Responses.ResponseInput));
  const turn = loop.answered(response, input);
  input.push(...(await turn.results(runTool)));
  return turn.done();
}
