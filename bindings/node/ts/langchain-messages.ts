import { ToolMessage } from "langchain";
import type { Returned, TokenUsage, ToolCall } from "./watch.js";

/** Returns the text of a message's content. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((block: any) => (typeof block?.text === "string" ? [block.text] : [])).join("\n");
}

/** Returns the calls of the model's answer. Those with arguments that aren't JSON are among them. */
export function callsOf(message: any): ToolCall[] {
  const calls = [...(message.tool_calls ?? []), ...(message.invalid_tool_calls ?? [])];
  return calls.map((call: any, index) => ({ id: call.id ?? `#${index + 1}`, tool: call.name ?? "", args: call.args }));
}

/** Returns what the model's answer used. */
export function usageOf(message: any): TokenUsage | null {
  const usage = message.usage_metadata;
  if (usage === undefined || usage === null) return null;
  const { cache_read: read = 0, cache_creation: written = 0 } = usage.input_token_details ?? {};
  return {
    model: message.response_metadata?.model_name ?? null,
    input_tokens: Math.max(0, (usage.input_tokens ?? 0) - read - written),
    output_tokens: usage.output_tokens ?? 0,
    cache_read_tokens: read,
    cache_write_tokens: written,
  };
}

/** Returns how a call came back: a tool message, or a command that has one. */
export function returnedBy(result: any, call: string): Returned {
  const message = ToolMessage.isInstance(result) ? result : messagesOf(result).find((each) => each?.tool_call_id === call);
  if (message === undefined) return { outcome: "ok" };
  return { output: textOf(message.content) || message.content, ...(message.status === "error" ? { ok: false } : {}) };
}

function messagesOf(command: any): any[] {
  const messages = command?.update?.messages;
  return Array.isArray(messages) ? messages : [];
}

/** Returns a tool message with a text at its end; null if the result isn't a tool message. */
export function withSuffix(result: any, text: string): any {
  if (!ToolMessage.isInstance(result)) return null;
  const { content, tool_call_id, name, status, artifact, id, additional_kwargs, response_metadata, metadata } = result;
  const longer = typeof content === "string" ? `${content}\n\n${text}` : [...content, { type: "text", text }];
  return new ToolMessage({
    content: longer, tool_call_id, name, status, artifact, id, additional_kwargs, response_metadata, metadata,
  });
}

/** Returns the message that takes the place of a result of a refused call. */
export function refusalMessage(call: any, text: string): ToolMessage {
  return new ToolMessage({ content: text, tool_call_id: call.id, name: call.name, status: "error" });
}

/**
 * Returns the message that LangChain makes of a tool's error if there is no middleware around its tools, or null if the
 * error comes from another middleware and ends the run. `invalid`: the arguments failed the tool's schema.
 */
export function errorMessage(call: any, thrown: unknown): { message: ToolMessage; invalid: boolean } | null {
  let error: any = thrown;
  while (error?.["~brand"] === "MiddlewareError") error = error.cause;
  const invalid = error?.["~brand"] === "ToolInvocationError";
  if (error !== thrown && !invalid) return null;
  const content = invalid ? error.message : `${error}\n Please fix your mistakes.`;
  return { message: new ToolMessage({ content, tool_call_id: call.id, name: call.name, status: "error" }), invalid };
}

/** Returns whether an error isn't one: LangGraph uses them to interrupt a run and to hand over to a parent. */
export function bubblesUp(error: any): boolean {
  return error?.is_bubble_up === true;
}

/** Returns whether the run was aborted. */
export function aborted(request: any): boolean {
  return request.runtime?.signal?.aborted === true;
}
