/**
 * Guards tool loops around the Anthropic client.
 *
 * @example
 * const loop = new ToolLoop();
 * for (;;) {
 *   const response = await client.messages.create({ model, max_tokens, messages, tools });
 *   messages.push({ role: "assistant", content: response.content });
 *   const turn = loop.answered(response, messages);
 *   if (turn.calls.length > 0) messages.push({ role: "user", content: await turn.results(runTool) });
 *   if (turn.done()) break;
 * }
 */
import { BaseToolLoop, contentText, type LoopAnswer, type LoopEvent, type LoopWire, type ToolLoopOptions, type Turn } from "./tool-loop.js";
import type { TokenUsage, ToolCall } from "./watch.js";

export { StopError } from "./core/index.js";
export type { Decision } from "./core/index.js";
export type { GuardLike, Logger } from "./adapter.js";
export type { RunTool, ToolLoopOptions, Turn } from "./tool-loop.js";
export { collect } from "./anthropic-stream.js";

/** A result for the content of a user message. */
export interface ToolResultBlock {
  type: "tool_result";
  tool_use_id: string;
  content: string;
  is_error?: true;
}

/** Guards one conversation with the Messages API. */
export class ToolLoop extends BaseToolLoop {
  constructor(options: ToolLoopOptions = {}) {
    super(options);
  }

  /**
   * Reports an answer, before any of its tools runs.
   *
   * @param response a message, or what `collect` has collected
   * @param messages the history, with or without the answer itself. deloop finds new messages of the person there, and
   * the past of a conversation that another process began. Without it, report these with `user`.
   */
  answered(response: { content: readonly any[] }, messages?: readonly any[]): Turn<ToolResultBlock> {
    if (!Array.isArray(response?.content)) throw new TypeError("answered takes a message");
    return this.turn(MESSAGES, response, messages);
  }
}

const MESSAGES: LoopWire = {
  answer: (response: any): LoopAnswer => ({ ...answerOf(response.content), usage: usageOf(response.usage, response.model) }),
  history(messages: readonly any[]): LoopEvent[] {
    return messages.flatMap((message): LoopEvent[] => (message.role === "assistant" ? [answerOf(message.content)] : userEvents(message.content)));
  },
  result: (call: ToolCall, content: any, failed: boolean): ToolResultBlock => ({
    type: "tool_result", tool_use_id: call.id, content, ...(failed ? { is_error: true } : {}),
  }),
};

function answerOf(content: any): LoopAnswer {
  const blocks: any[] = Array.isArray(content) ? content.filter((block) => block.type === "tool_use") : [];
  return { type: "answer", text: contentText(content), calls: blocks.map(({ id, name, input }) => ({ id, tool: name, args: input })) };
}

function userEvents(content: any): LoopEvent[] {
  const blocks: any[] = Array.isArray(content) ? content : [];
  const results = blocks.filter((block) => block.type === "tool_result");
  const said = contentText(Array.isArray(content) ? blocks.filter((block) => block.type === "text") : content);
  return [
    ...results.map((block): LoopEvent => ({ type: "returned", id: block.tool_use_id, output: block.content, failed: block.is_error === true })),
    ...(said === "" ? [] : [{ type: "said", text: said } as const]),
  ];
}

function usageOf(usage: any, model: string | undefined): TokenUsage | null {
  if (!usage) return null;
  return {
    model: model ?? null,
    input_tokens: usage.input_tokens ?? 0,
    output_tokens: usage.output_tokens ?? 0,
    cache_read_tokens: usage.cache_read_input_tokens ?? 0,
    cache_write_tokens: usage.cache_creation_input_tokens ?? 0,
  };
}
