// What users of AI SDK 6 write must type-check in strict mode, and keep the types of their tools.
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool, ToolLoopAgent, type StopCondition } from "ai";
import { deloop, type Decision, StopError } from "deloop/ai";
import { z } from "zod";

const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => ({ city, degrees: 21 }) });
const tools = { weather };
const seen: Decision[] = [];
const guard = deloop({
  tools,
  session: ({ context }) => context?.chat as string,
  store: new Map<string, string>(),
  exitBehavior: "error",
  onDecision: (decision) => seen.push(decision),
  prepareStep: ({ stepNumber }) => (stepNumber > 3 ? { toolChoice: "none" } : undefined),
});

export async function main(): Promise<number | undefined> {
  const model = openai("gpt-5");
  const result = await generateText({ ...guard, model, prompt: "Hi", stopWhen: [stepCountIs(5), guard.stopped] });
  const degrees: number | undefined = result.toolResults[0]?.dynamic ? undefined : result.toolResults[0]?.output.degrees;
  for await (const part of streamText({ ...guard, model, prompt: "Hi", stopWhen: stepCountIs(5) }).textStream) part.toUpperCase();
  const agent = new ToolLoopAgent({ ...deloop({ tools }), model });
  const text: string = (await agent.generate({ prompt: "Hi" })).text;
  await generateText({ ...deloop(), tools, model, prompt: text });
  const condition: StopCondition<typeof tools> = guard.stopped;
  const stop: Decision | null = guard.decision;
  if (stop !== null && condition !== undefined) throw new StopError(stop);
  return degrees;
}

// @ts-expect-error: no such behavior
deloop({ exitBehavior: "throw" });
