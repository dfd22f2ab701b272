/**
 * Guards tool loops around the OpenAI client: Chat Completions and Responses.
 *
 * @example
 * const loop = new ToolLoop();
 * for (;;) {
 *   const response = await client.chat.completions.create({ model, messages, tools });
 *   messages.push(response.choices[0].message);
 *   const turn = loop.answered(response, messages);
 *   messages.push(...(await turn.results(runTool)));
 *   if (turn.done()) break;
 * }
 */
import { BaseToolLoop, contentText, type LoopAnswer, type LoopEvent, type LoopWire, type ToolLoopOptions, type Turn } from "./tool-loop.js";
import type { TokenUsage, ToolCall } from "./watch.js";

export { StopError } from "./core/index.js";
export type { Decision } from "./core/index.js";
export type { GuardLike, Logger } from "./adapter.js";
export type { RunTool, ToolLoopOptions, Turn } from "./tool-loop.js";
export { collect } from "./openai-stream.js";

/** A result for the history of Chat Completions. */
export interface ChatToolMessage {
  role: "tool";
  tool_call_id: string;
  content: string;
}

/** A result for the input of Responses. */
export interface ResponseToolOutput {
  type: "function_call_output";
  call_id: string;
  output: string;
}

/** Guards one conversation with Chat Completions or Responses. */
export class ToolLoop extends BaseToolLoop {
  constructor(options: ToolLoopOptions = {}) {
    super(options);
  }

  /**
   * Reports an answer, before any of its tools runs.
   *
   * @param response a chat completion, a response, or what `collect` has collected
   * @param messages the history (`input` of Responses), with or without the answer itself. deloop finds new messages of
   * the person there, and the past of a conversation that another process began. Without it, report these with `user`.
   */
  answered(response: { choices: readonly any[] }, messages?: readonly any[]): Turn<ChatToolMessage>;
  answered(response: { output: readonly any[] }, messages?: readonly any[]): Turn<ResponseToolOutput>;
  answered(response: any, messages?: readonly any[]): Turn<any> {
    if (Array.isArray(response?.choices)) return this.turn(CHAT, response, messages);
    if (Array.isArray(response?.output)) return this.turn(RESPONSES, response, messages);
    throw new TypeError("answered takes a chat completion or a response");
  }
}

const CHAT: LoopWire = {
  answer(response: any): LoopAnswer {
    const message = response.choices[0]?.message ?? {};
    const { usage, model } = response;
    const cached = usage?.prompt_tokens_details?.cached_tokens;
    return { ...chatAnswer(message), usage: usageOf(usage && [usage.prompt_tokens, usage.completion_tokens, cached], model) };
  },
  history(messages: readonly any[]): LoopEvent[] {
    return messages.flatMap((message): LoopEvent[] => {
      if (message.role === "user") return [{ type: "said", text: contentText(message.content) }];
      if (message.role === "assistant") return [chatAnswer(message)];
      return message.role === "tool" ? [{ type: "returned", id: message.tool_call_id, output: message.content }] : [];
    });
  },
  result: (call: ToolCall, content: any): ChatToolMessage => ({ role: "tool", tool_call_id: call.id, content }),
};

const RESPONSES: LoopWire = {
  answer(response: any): LoopAnswer {
    const { usage, model } = response;
    const cached = usage?.input_tokens_details?.cached_tokens;
    return { ...itemsAnswer(response.output), usage: usageOf(usage && [usage.input_tokens, usage.output_tokens, cached], model) };
  },
  history(items: readonly any[]): LoopEvent[] {
    const events: LoopEvent[] = [];
    let answer: any[] = [];
    for (const item of [...items, null]) {
      if (item !== null && (item.role === "assistant" || ANSWERS.has(item.type))) {
        answer.push(item);
        continue;
      }
      if (answer.length > 0) events.push(itemsAnswer(answer));
      answer = [];
      if (OUTPUTS.has(item?.type)) events.push({ type: "returned", id: item.call_id, output: item.output });
      else if (item?.role === "user") events.push({ type: "said", text: contentText(item.content) });
    }
    return events;
  },
  result: (call: ToolCall, content: any): ResponseToolOutput => ({ type: "function_call_output", call_id: call.id, output: content }),
};

const ANSWERS = new Set(["function_call", "custom_tool_call", "reasoning"]);
const OUTPUTS = new Set(["function_call_output", "custom_tool_call_output"]);

function chatAnswer(message: any): LoopAnswer {
  const calls = (message.tool_calls ?? []).map((call: any) => ({
    id: call.id,
    tool: call.function?.name ?? call.custom?.name,
    args: call.function?.arguments ?? { input: call.custom?.input },
  }));
  return { type: "answer", text: contentText(message.content) || message.refusal || "", calls };
}

function itemsAnswer(items: readonly any[]): LoopAnswer {
  const text = items.filter((item) => item.role === "assistant").map((item) => contentText(item.content)).join("\n");
  const calls = items.flatMap((item): ToolCall[] => {
    if (item.type === "function_call") return [{ id: item.call_id, tool: item.name, args: item.arguments }];
    return item.type === "custom_tool_call" ? [{ id: item.call_id, tool: item.name, args: { input: item.input } }] : [];
  });
  return { type: "answer", text, calls };
}

function usageOf(counts: [number?, number?, number?] | null | undefined, model: string | undefined): TokenUsage | null {
  if (!counts) return null;
  const [input = 0, output = 0, cached = 0] = counts;
  return { model: model ?? null, input_tokens: Math.max(0, input - cached), output_tokens: output, cache_read_tokens: cached };
}
