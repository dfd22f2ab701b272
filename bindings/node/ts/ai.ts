/**
 * Guards agents of the AI SDK, version 7 and 6.
 *
 * @example
 * const guard = deloop({ tools, session: "chat-1" });
 * const { text } = await generateText({ ...guard, model, prompt, stopWhen: isStepCount(50) });
 * if (guard.decision) console.log(guard.decision.user_message);
 */
import type { Decision } from "./core/index.js";
import { Adapter, type AdapterOptions } from "./adapter.js";
import { type Approval, type ApprovalRequest, type OwnApproval, ownApproval } from "./ai-approval.js";
import { type PreparedStep, Runs, type StepRequest } from "./ai-runs.js";

export type { Decision } from "./core/index.js";
export { StopError } from "./core/index.js";
export type { AdapterOptions, GuardLike, Logger, SessionStore } from "./adapter.js";

/** What `session` can be derived from. */
export interface RunContext {
  /** The `runtimeContext` (AI SDK 7) or `experimental_context` (AI SDK 6) of the run. */
  readonly context: any;
  /** The messages that the run started with. */
  readonly messages: readonly any[];
}

/** The options of `deloop()`: yours for the AI SDK, which deloop calls after its own, and those of every adapter. */
export interface DeloopOptions<TOOLS> extends AdapterOptions {
  /** The session, or a function that returns it. Without one, each run is a session of its own. */
  session?: string | ((run: RunContext) => string | null | undefined);
  /** The tools. AI SDK 6 needs them here so that deloop can refuse calls. */
  tools?: TOOLS;
  /** Your own `prepareStep`. Give it here, not to `generateText`. */
  prepareStep?: (step: any) => any;
  /** Your own `toolApproval` (AI SDK 7). Give it here, not to `generateText`. */
  toolApproval?: OwnApproval;
}

/** Settings to spread into `generateText`, `streamText` or `ToolLoopAgent`. Only the first three are spread. */
export interface DeloopSettings<TOOLS> {
  readonly tools: TOOLS;
  readonly prepareStep: (step: any) => any;
  readonly toolApproval: (request: any) => any;
  /** The decision that stopped the last run that was stopped, or null. */
  readonly decision: Decision | null;
  /** A stop condition: ends a stopped run without a final answer. Optional, see the documentation. */
  readonly stopped: (state: { steps: readonly any[] }) => boolean;
  /** Returns the state of a session as JSON, for your own storage; null if there is none. */
  readonly checkpoint: (session: string) => string | null;
  /** Continues a session from such a state. Returns whether it could be read. */
  readonly restore: (session: string, state: string) => boolean;
}

/** Returns settings that guard a run of the AI SDK. */
export function deloop<TOOLS = undefined>(options: DeloopOptions<TOOLS> = {}): DeloopSettings<TOOLS> {
  const { session, tools, prepareStep: ownPrepare, toolApproval: ownRules, ...others } = options;
  const adapter = new Adapter(others, "user");
  const runs = new Runs(adapter, session);

  const prepareStep = async (step: StepRequest): Promise<PreparedStep> => {
    const own: PreparedStep = await ownPrepare?.(step);
    const prepared = await adapter.safelyAsync("prepareStep", () => runs.prepare(step, own), null);
    if (prepared === null) return own;
    if (prepared.error !== null) throw prepared.error;
    return prepared.settings;
  };

  const toolApproval = async (request: ApprovalRequest): Promise<Approval> => {
    const verdict = adapter.safely("toolApproval", () => runs.approval(request), undefined);
    return verdict ?? ownApproval(ownRules, request);
  };

  const settings = { prepareStep, toolApproval, ...(tools === undefined ? {} : { tools: wrapped(tools, adapter, runs) }) };
  return Object.defineProperties(settings, {
    decision: { get: () => adapter.lastStop },
    stopped: { value: (state: { steps: readonly any[] }) => adapter.safely("stopped", () => runs.stopped(state.steps), false) },
    checkpoint: { value: (id: string) => (adapter.knows(id) ? adapter.watch(id).checkpoint() : null) },
    restore: { value: (id: string, state: string) => adapter.watch(id).restore(state) },
  }) as unknown as DeloopSettings<TOOLS>;
}

/** Wraps the tools that run here, so that a refused call doesn't: AI SDK 6 has no other way. */
function wrapped<TOOLS>(tools: TOOLS, adapter: Adapter, runs: Runs): TOOLS {
  const entries = Object.entries(tools as Record<string, any>).map(([name, tool]) => {
    if (typeof tool?.execute !== "function") return [name, tool];
    const execute = (input: unknown, options: any): unknown => {
      const refusal = adapter.safely("execute", () => runs.refusal(name, input, options), undefined);
      if (refusal !== undefined) throw new RefusedCallError(refusal);
      return tool.execute(input, options);
    };
    return [name, Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, { execute })];
  });
  return Object.fromEntries(entries);
}

/** Takes the place of a result of a call that deloop refused (AI SDK 6). */
export class RefusedCallError extends Error {
  override readonly name = "RefusedCallError";
}
