// What users of LangChain.js write must type-check in strict mode.
import { ChatOpenAI } from "@langchain/openai";
import { deloopMiddleware, type Decision, stopErrorOf } from "deloop/langchain";
import { createAgent, tool } from "langchain";
import { z } from "zod";

const weather = tool(async ({ city }) => `21 degrees in ${city}`, { name: "weather", description: "Weather.", schema: z.object({ city: z.string() }) });
const guard = deloopMiddleware({ exitBehavior: "error", toolErrors: "message", mode: "enforce", logger: null });
const agent = createAgent({ model: new ChatOpenAI({ model: "gpt-5" }), tools: [weather], middleware: [guard] });

export async function main(): Promise<string | undefined> {
  try {
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Hi" }] });
    return messages.at(-1)?.text;
  } catch (error) {
    const decision: Decision | undefined = stopErrorOf(error)?.decision;
    return decision?.user_message;
  }
}

// @ts-expect-error: no such option
deloopMiddleware({ toolErrors: "hide" });
