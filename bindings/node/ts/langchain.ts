/**
 * Guards agents of LangChain.js.
 *
 * @example
 * const agent = createAgent({ model, tools, middleware: [deloopMiddleware()] });
 */
import { AIMessage, createMiddleware, type AgentMiddleware } from "langchain";
import { z } from "zod";
import { Adapter, type AdapterOptions } from "./adapter.js";
import { type Decision, StopError } from "./core/index.js";
import { aborted, bubblesUp, errorMessage, refusalMessage, returnedBy, withSuffix } from "./langchain-messages.js";
import { Threads } from "./langchain-threads.js";
import { messageOf, type Watch } from "./watch.js";

export { StopError } from "./core/index.js";
export type { Decision } from "./core/index.js";
export type { AdapterOptions, GuardLike, Logger } from "./adapter.js";

/** The options of `deloopMiddleware()`. The state is kept with the agent's checkpointer, so there is no `store`. */
export interface DeloopMiddlewareOptions extends Omit<AdapterOptions, "store"> {
  /** The session, or a function of the runtime that returns it; `thread_id` by default. */
  session?: string | ((runtime: any) => string | null | undefined);
  /**
   * What happens if a tool throws. `message` (the default): the model gets the error, as without any middleware.
   * `throw`: the error goes to the middleware before this one, and ends the run if none handles it.
   */
  toolErrors?: "message" | "throw";
}

/** Returns a middleware that guards an agent. Put it first in the list. */
export function deloopMiddleware(options: DeloopMiddlewareOptions = {}): AgentMiddleware & { readonly decision: Decision | null } {
  const { session, toolErrors = "message", ...others } = options;
  const adapter = new Adapter(others, "tool");
  const threads = new Threads(adapter, session);

  const wrapModelCall = async (request: any, handler: (request: any) => any): Promise<any> => {
    const watch = adapter.safely<Watch | null>("wrapModelCall", () => threads.asked(request), null);
    if (watch !== null && watch.stop !== null) {
      adapter.lastStop = watch.stop;
      if (adapter.exitBehavior === "error") throw watch.stopError();
      return finalAnswer(watch.stop);
    }
    const response = await handler(request);
    return watch === null ? response : adapter.safely("answer", () => threads.answered(watch, response), response);
  };

  const wrapToolCall = async (request: any, handler: (request: any) => any): Promise<any> => {
    const call = request.toolCall;
    const watch = adapter.safely<Watch | null>("wrapToolCall", () => threads.calling(request), null);
    const refusal = watch?.refusal(call.id);
    if (watch != null && refusal !== undefined) {
      watch.result(call.id, { outcome: "denied" });
      return nudged(adapter, watch, refusalMessage(call, refusal));
    }
    try {
      const result = await handler(request);
      watch?.result(call.id, returnedBy(result, call.id));
      return nudged(adapter, watch, result);
    } catch (error) {
      if (bubblesUp(error) || aborted(request)) throw error;
      const failure = errorMessage(call, error);
      if (failure === null || (toolErrors === "throw" && !failure.invalid)) throw error;
      watch?.result(call.id, { error, ...(failure.invalid ? { outcome: "invalid" } : {}) });
      return nudged(adapter, watch, failure.message);
    }
  };

  const stateSchema = z.object({ _deloop: z.any().optional() });
  const middleware = createMiddleware({ name: "deloop", stateSchema, wrapModelCall, wrapToolCall });
  return Object.defineProperty(middleware, "decision", { get: () => adapter.lastStop });
}

/** Returns the `StopError` behind what an agent threw: LangChain.js wraps it. Null if something else went wrong. */
export function stopErrorOf(error: unknown): StopError | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof StopError) return cause;
  }
  return null;
}

function finalAnswer(stop: Decision): AIMessage {
  return new AIMessage({ content: messageOf(stop), response_metadata: { deloop: { id: stop.id, status: stop.status } } });
}

/** Appends what is to be said to the model to a result. */
function nudged(adapter: Adapter, watch: Watch | null, result: any): any {
  const place = (): any => {
    const nudge = watch?.takeNudge() ?? null;
    if (watch === null || nudge === null) return result;
    const placed = withSuffix(result, nudge.text);
    watch.delivered(nudge, placed !== null);
    return placed ?? result;
  };
  return adapter.safely("nudge", place, result);
}
