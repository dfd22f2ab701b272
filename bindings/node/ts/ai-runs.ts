import type { Adapter } from "./adapter.js";
import type { Approval, ApprovalRequest } from "./ai-approval.js";
import { latestUserText, type PlacedNudge, resultsIn, withNudges, withoutNudges } from "./ai-messages.js";
import { type AnyModel, finalAnswer, type ModelAnswer, watchedModel } from "./ai-model.js";
import { messageOf, type Returned, type Watch } from "./watch.js";

/** What the AI SDK gives to `prepareStep`. */
export interface StepRequest {
  readonly steps: readonly any[];
  readonly stepNumber: number;
  readonly model: AnyModel;
  readonly messages: readonly any[];
  readonly runtimeContext?: unknown;
  readonly experimental_context?: unknown;
}

/** What `prepareStep` returns. */
export type PreparedStep = Record<string, any> | undefined;

type SessionOption = string | ((run: { context: any; messages: readonly any[] }) => string | null | undefined) | undefined;

/** One call of `generateText` or `streamText`. */
interface Run {
  readonly watch: Watch;
  /** Names the turn whose calls come one by one, if the model's answers can't be watched. */
  looseTurn: string | null;
}

const CALLS = 4_096;
const UNPREPARED = 3;
const NOT_CALLED =
  "deloop doesn't guard this run: its prepareStep isn't called. If you have your own, pass it to deloop({ prepareStep }) " +
  "instead of generateText, streamText or ToolLoopAgent.";

/** Follows the runs of one settings object: many may be under way at once, and no hook says which one it belongs to. */
export class Runs {
  readonly #adapter: Adapter;
  readonly #session: SessionOption;
  readonly #bySteps = new WeakMap<object, Run>();
  readonly #byMessages = new WeakMap<object, Run>();
  readonly #byCall = new Map<string, Run>();
  #approves = false;
  #prepared = false;
  #unpreparedCalls = 0;

  constructor(adapter: Adapter, session: SessionOption) {
    this.#adapter = adapter;
    this.#session = session;
  }

  /** Prepares the next request: reports what came back, places nudges, and ends the run if it was stopped. */
  async prepare(step: StepRequest, own: PreparedStep): Promise<{ settings: PreparedStep; error: Error | null }> {
    this.#prepared = true;
    const run = this.#known(step) ?? (await this.#begun(step));
    const { watch } = run;
    const given: readonly any[] = own?.messages ?? step.messages;
    const nudges = (watch.notes.nudges ??= []) as PlacedNudge[];
    const bare = withoutNudges(given, nudges);
    if (bare.length < ((watch.notes.messages as number | undefined) ?? 0)) watch.compact();
    watch.notes.messages = bare.length;
    const last = this.#absorb(run, step, bare);
    if (step.stepNumber === 0) {
      const text = latestUserText(bare);
      if (text !== null) watch.user(text);
    }
    const messages = this.#place(watch, bare, last, given);
    await this.#adapter.save(watch);
    this.#bySteps.set(step.steps, run);
    for (const list of [messages, step.messages]) this.#byMessages.set(list, run);
    const model = own?.model ?? step.model;
    const error = watch.stop !== null && this.#adapter.exitBehavior === "error" ? watch.stopError() : null;
    return { settings: { ...own, messages, ...this.#model(model, run) }, error };
  }

  /** Returns what deloop says about a call before it runs (AI SDK 7); undefined if it has nothing to say. */
  approval(request: ApprovalRequest): Approval {
    this.#approves = true;
    const { toolCallId: id, toolName, input } = request.toolCall;
    const run = this.#of(request.messages, id);
    if (run === undefined) return this.#missed();
    this.#decide(run, id, toolName, input);
    const question = run.watch.question(id);
    if (question !== undefined) return { type: "user-approval", reason: question };
    const reason = run.watch.refusal(id);
    return reason === undefined ? undefined : { type: "denied", reason };
  }

  /** Returns why a call must not run (AI SDK 6); undefined if it may. */
  refusal(tool: string, input: unknown, options: any): string | undefined {
    const id: string = options?.toolCallId;
    if (this.#approves) return undefined;
    const run = this.#of(options?.messages, id);
    if (run === undefined) return this.#missed();
    this.#decide(run, id, tool, input);
    return run.watch.refusal(id);
  }

  /** Returns whether the run of these steps was stopped. */
  stopped(steps: readonly any[]): boolean {
    const run = this.#bySteps.get(steps) ?? this.#of(undefined, steps.at(-1)?.toolCalls?.[0]?.toolCallId);
    return run !== undefined && run.watch.stop !== null;
  }

  #known(step: StepRequest): Run | undefined {
    if (step.stepNumber === 0) return undefined;
    return this.#bySteps.get(step.steps) ?? this.#of(undefined, step.steps.at(-1)?.toolCalls?.[0]?.toolCallId);
  }

  async #begun(step: StepRequest): Promise<Run> {
    const context: unknown = step.runtimeContext ?? step.experimental_context;
    const session =
      typeof this.#session === "function" ? this.#session({ context, messages: step.messages }) : this.#session;
    return { watch: await this.#adapter.load(session), looseTurn: null };
  }

  #of(messages: unknown, call: string | undefined): Run | undefined {
    const run = typeof messages === "object" && messages !== null ? this.#byMessages.get(messages) : undefined;
    return run ?? (call === undefined ? undefined : this.#byCall.get(call));
  }

  /** Reports the results of the last step, and those that came with the messages. Returns the last call of the turn. */
  #absorb(run: Run, step: StepRequest, messages: readonly any[]): string | undefined {
    const { watch } = run;
    const content: readonly any[] = step.steps.at(-1)?.content ?? [];
    const invalid = new Set(content.flatMap((part) => (part.type === "tool-call" && part.invalid ? [part.toolCallId] : [])));
    for (const part of content) {
      const id = part.toolCallId ?? part.toolCall?.toolCallId;
      const returned = id === undefined || watch.reported(id) ? null : returnedBy(part, invalid.has(id));
      if (returned !== null) watch.result(id, watch.refusal(id) === undefined ? returned : { outcome: "denied" });
    }
    const given = watch.open.length > 0 ? resultsIn(messages) : new Map<string, Returned>();
    for (const id of watch.open) {
      const returned = given.get(id);
      if (returned !== undefined) watch.result(id, watch.refusal(id) === undefined ? returned : { outcome: "denied" });
    }
    run.looseTurn = null;
    return watch.calls.at(-1);
  }

  #place(watch: Watch, bare: any[], last: string | undefined, given: readonly any[]): readonly any[] {
    const nudges = watch.notes.nudges as PlacedNudge[];
    const nudge = watch.stop === null ? watch.takeNudge() : null;
    const fresh: PlacedNudge[] = nudge === null || last === undefined ? [] : [{ after: last, text: nudge.text }];
    const { messages, lost } = withNudges(bare, [...nudges, ...fresh]);
    watch.notes.nudges = [...nudges, ...fresh].filter((each) => !lost.includes(each));
    if (nudge !== null) watch.delivered(nudge, fresh.some((each) => !lost.includes(each)));
    return messages.length === bare.length && bare.length === given.length ? given : messages;
  }

  #model(model: AnyModel, run: Run): { model?: AnyModel } {
    if (typeof model !== "object" || model === null) return {};
    const { stop } = run.watch;
    if (stop !== null) this.#adapter.lastStop = stop;
    if (stop !== null) return { model: finalAnswer(model, messageOf(stop)) };
    const answered = (answer: ModelAnswer): Promise<void> =>
      this.#adapter.safelyAsync("answer", () => this.#answered(run, answer), undefined);
    return { model: watchedModel(model, answered) };
  }

  async #answered(run: Run, answer: ModelAnswer): Promise<void> {
    for (const call of answer.calls) this.#remember(call.id, run);
    run.watch.answered(answer.text, answer.calls, answer.usage);
    await this.#adapter.save(run.watch);
  }

  /** Decides about a call whose turn deloop hasn't seen: the model was given by its name in your `prepareStep`. */
  #decide(run: Run, id: string, tool: string, args: unknown): void {
    if (run.watch.calls.includes(id)) return;
    run.looseTurn ??= `loose-${run.watch.turns}`;
    this.#remember(id, run);
    run.watch.called({ id, tool, args }, run.looseTurn);
  }

  /** Notices calls of runs that were never prepared. A call that was approved earlier may come before the first step. */
  #missed(): undefined {
    if (this.#prepared) return;
    this.#unpreparedCalls += 1;
    if (this.#unpreparedCalls >= UNPREPARED) this.#adapter.warnOnce(NOT_CALLED);
  }

  #remember(call: string, run: Run): void {
    this.#byCall.delete(call);
    this.#byCall.set(call, run);
    if (this.#byCall.size > CALLS) {
      const [oldest] = this.#byCall.keys();
      this.#byCall.delete(oldest as string);
    }
  }
}

/** Returns how a call came back if this part of a step says so. */
function returnedBy(part: any, invalid: boolean): Returned | null {
  switch (part.type) {
    case "tool-result":
      return part.preliminary ? null : { output: part.output, ...(part.output?.isError === true ? { ok: false } : {}) };
    case "tool-error":
      return { error: part.error ?? "error", ...(invalid ? { outcome: "invalid" } : {}) };
    case "tool-approval-response":
      return part.approved === false ? { outcome: "denied" } : null;
    case "tool-output-denied":
      return { outcome: "denied" };
    default:
      return null;
  }
}
