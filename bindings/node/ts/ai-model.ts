import { parsedArguments } from "./plain.js";
import type { TokenUsage, ToolCall } from "./watch.js";

declare class ReadableStream<T = any> {
  constructor(source: { start(controller: StreamController<T>): void });
  pipeThrough<U>(transform: TransformStream<T, U>): ReadableStream<U>;
}
declare class TransformStream<T, U> {
  private readonly types: [T, U];
  constructor(transformer: {
    transform(chunk: T, controller: StreamController<U>): unknown;
    flush(controller: StreamController<U>): unknown;
  });
}
interface StreamController<T> {
  enqueue(chunk: T): void;
  close(): void;
}

/** A language model of the AI SDK: specification v3 (AI SDK 6) or v4 (AI SDK 7). */
export type AnyModel = any;

/** One answer of a model. */
export interface ModelAnswer {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly usage: TokenUsage | null;
}

/**
 * Returns a model that reports each answer to `answered` before anything is done with it.
 *
 * A streamed answer is passed on as it comes up to its first call. From there on the calls, and what has to stay in
 * order with them, wait for the end of the answer: a decision about a turn needs all of its calls.
 */
export function watchedModel(model: AnyModel, answered: (answer: ModelAnswer) => PromiseLike<void>): AnyModel {
  const doGenerate = async (options: any): Promise<any> => {
    const result = await model.doGenerate(options);
    await answered(answerOf(result.content, result.usage, model.modelId));
    return result;
  };
  const doStream = async (options: any): Promise<any> => {
    const result = await model.doStream(options);
    return { ...result, stream: result.stream.pipeThrough(heldCalls(model.modelId, answered)) };
  };
  return replaced(model, { doGenerate, doStream });
}

/**
 * Returns a model that answers with a text and sends no request.
 *
 * If the run wants an object, the answer ends like one with calls: the AI SDK would try to read an object from any other.
 */
export function finalAnswer(model: AnyModel, text: string): AnyModel {
  const usage = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };
  const reasonFor = (options: any): any => ({
    unified: options?.responseFormat?.type === "json" ? "tool-calls" : "stop",
    raw: "deloop",
  });
  const doGenerate = async (options: any): Promise<any> => ({
    content: [{ type: "text", text }],
    finishReason: reasonFor(options),
    usage,
    warnings: [],
  });
  const doStream = async (options: any): Promise<any> => {
    const finishReason = reasonFor(options);
    const parts = [
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "deloop" },
      { type: "text-delta", id: "deloop", delta: text },
      { type: "text-end", id: "deloop" },
      { type: "finish", finishReason, usage },
    ];
    const start = (controller: StreamController<any>): void => {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    };
    return { stream: new ReadableStream({ start }) };
  };
  return replaced(model, { doGenerate, doStream });
}

function replaced(model: AnyModel, methods: Record<string, unknown>): AnyModel {
  return new Proxy(model, {
    get(target, key) {
      if (typeof key === "string" && Object.hasOwn(methods, key)) return methods[key];
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const PASSED_ON = new Set(["tool-input-start", "tool-input-delta", "tool-input-end", "raw", "response-metadata"]);

function heldCalls(modelId: string, answered: (answer: ModelAnswer) => PromiseLike<void>): TransformStream<any, any> {
  const calls: any[] = [];
  const held: any[] = [];
  let text = "";
  let usage: any;
  const release = async (controller: StreamController<any>): Promise<void> => {
    await answered(answerOf([{ type: "text", text }, ...calls], usage, modelId));
    for (const part of held.splice(0)) controller.enqueue(part);
  };
  let finished = false;
  return new TransformStream({
    async transform(part, controller) {
      if (part.type === "text-delta") text += part.delta;
      if (part.type === "tool-call") calls.push(part);
      if (part.type === "finish") {
        finished = true;
        usage = part.usage;
        await release(controller);
        controller.enqueue(part);
      } else if (calls.length > 0 && !PASSED_ON.has(part.type)) held.push(part);
      else controller.enqueue(part);
    },
    async flush(controller) {
      if (!finished) await release(controller);
    },
  });
}

function answerOf(content: readonly any[], usage: any, model: string | undefined): ModelAnswer {
  const calls = content
    .filter((part) => part.type === "tool-call")
    .map((part) => ({ id: part.toolCallId, tool: part.toolName, args: parsedArguments(part.input) }));
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  return { text, calls, usage: usageOf(usage, model) };
}

function usageOf(usage: any, model: string | undefined): TokenUsage | null {
  const input = usage?.inputTokens;
  const output = usage?.outputTokens;
  if (input?.total == null && output?.total == null) return null;
  const cached = input?.cacheRead ?? 0;
  return {
    model: model ?? null,
    input_tokens: input?.noCache ?? Math.max(0, (input?.total ?? 0) - cached - (input?.cacheWrite ?? 0)),
    output_tokens: output?.total ?? 0,
    cache_read_tokens: cached,
    cache_write_tokens: input?.cacheWrite ?? 0,
  };
}
