import { type Call, type Decision, type Origin, type Outcome, type Step, StopError, type UsageStep } from "./core/index.js";
import type { Adapter } from "./adapter.js";
import { errorText, errorType, plain } from "./plain.js";

/** One call of a turn, as the framework has it. */
export interface ToolCall {
  readonly id: string;
  readonly tool: string;
  readonly args?: unknown;
}

/** What a request to the model used, as a usage step has it. */
export type TokenUsage = Omit<UsageStep, "type" | "session">;

/** A message for the model. Report with `Watch.delivered` whether it was placed. */
export interface Nudge {
  readonly text: string;
  /** The steps of the decisions that the message comes from. */
  readonly steps: readonly number[];
}

/** What to do with a turn before any of its tools runs. */
export interface TurnPlan {
  /** The calls that must not run, with the text that answers each. */
  readonly refuse: ReadonlyMap<string, string>;
  /** The calls that a person should be asked about, with the question. Without a way to ask, look at `refuse`. */
  readonly ask: ReadonlyMap<string, string>;
  /** The stop, if the run ends here. Then `refuse` has all calls of the turn. */
  readonly stop: Decision | null;
}

/** How a call came back. Pass what a tool threw as `error`; report a call that deloop refused as outcome `denied`. */
export interface Returned {
  readonly output?: unknown;
  readonly error?: unknown;
  readonly ok?: boolean;
  readonly outcome?: Outcome;
  readonly errorType?: string;
}

/** What an adapter itself keeps with a session: small, plain JSON. */
export type Notes = Record<string, unknown>;

type StepBody = Step extends infer S ? (S extends Step ? Omit<S, "session" | "agent"> : never) : never;

interface SavedWatch {
  readonly v: 1;
  readonly guard: string | null;
  readonly turns: number;
  readonly turnId: string | null;
  readonly names: readonly [string, string][];
  readonly answered: readonly string[];
  readonly refuse: readonly [string, string][];
  readonly pending: readonly Nudge[];
  readonly stop: Decision | null;
  readonly reused: boolean;
  readonly notes: Notes;
}

const NOTHING: TurnPlan = { refuse: new Map(), ask: new Map(), stop: null };
const RECENT_IDS = 1_024;

/**
 * Watches one session, or one subagent in it. It never throws, and changes nothing about a run without a finding.
 *
 * The order of events is: `user`, then for each request `answered` and one `result` per call. Look at `stop` before
 * each request.
 */
export class Watch {
  readonly session: string;
  /** What the adapter keeps with the session; part of the checkpoint. */
  notes: Notes = {};
  /** Whether decisions are kept from the log and the callbacks, while the past of a conversation is read again. */
  quiet = false;
  readonly #adapter: Adapter;
  readonly #agent: string | undefined;
  #stop: Decision | null = null;
  #pending: Nudge[] = [];
  #plan: TurnPlan = NOTHING;
  #turns = 0;
  #turnId: string | null = null;
  #names = new Map<string, string>();
  #answered = new Set<string>();
  #recent = new Set<string>();
  #reused = false;

  constructor(adapter: Adapter, session: string, agent?: string) {
    this.#adapter = adapter;
    this.session = session;
    this.#agent = agent;
  }

  /** The decision that ended the run, until a person writes again. */
  get stop(): Decision | null {
    return this.#stop;
  }

  /** The number of turns so far. */
  get turns(): number {
    return this.#turns;
  }

  /** The calls of the latest turn, in its order. */
  get calls(): string[] {
    return [...this.#names.keys()];
  }

  /** The calls of the latest turn that haven't come back. */
  get open(): string[] {
    return this.calls.filter((id) => !this.#answered.has(id));
  }

  /** Returns the error for `exitBehavior: "error"`. Call it only after a stop. */
  stopError(): StopError {
    return new StopError(this.#stop as Decision);
  }

  /** Returns the text that answers a call instead of its tool, or undefined if the tool may run. */
  refusal(id: string): string | undefined {
    return this.#plan.refuse.get(id);
  }

  /** Returns the question for a person about a call, if there is one. */
  question(id: string): string | undefined {
    return this.#plan.ask.get(id);
  }

  /** Reports a message to the agent. Text by a person lifts a stop. */
  user(text: string, origin: Origin = "human"): void {
    const decision = this.#observe({ type: "user", text, origin });
    if (origin === "human") {
      for (const nudge of this.#pending.splice(0)) this.delivered(nudge, false);
      if (decision?.action !== "stop") this.#lift();
      this.#plan = NOTHING;
    }
    this.#act(decision);
  }

  /** Reports the model's answer with all its calls, before any of them runs. The same turn twice counts once. */
  answered(text: string, calls: readonly ToolCall[], usage?: TokenUsage | null): TurnPlan {
    return this.#adapter.safely("turn", () => this.#turn(text, calls, usage ?? null), NOTHING);
  }

  /** Reports one call of a turn whose calls come one by one, before it runs. `turnId` is the same for all of them. */
  called(call: ToolCall, turnId: string): TurnPlan {
    return this.#adapter.safely("call", () => this.#call(call, turnId), NOTHING);
  }

  /** Reports how a call came back, without any text of deloop's. */
  result(id: string, returned: Returned): void {
    const { error } = returned;
    const failed = error !== undefined;
    const step: StepBody = {
      type: "result",
      id: this.#names.get(id) ?? id,
      output: failed ? errorText(error) : returned.output,
      ok: failed ? false : returned.ok,
      outcome: returned.outcome ?? (failed ? (isTimeout(error) ? "timeout" : "error") : undefined),
      error_type: returned.errorType ?? (failed ? errorType(error) : undefined),
    };
    this.#answered.add(id);
    this.#act(this.#observe(step));
  }

  /** Returns whether a call of the latest turn has come back. */
  reported(id: string): boolean {
    return this.#answered.has(id);
  }

  /** Returns what is to be said to the model and wasn't placed yet. */
  takeNudge(): Nudge | null {
    const pending = this.#pending.splice(0);
    if (pending.length === 0) return null;
    return { text: pending.map((nudge) => nudge.text).join("\n\n"), steps: pending.flatMap((nudge) => nudge.steps) };
  }

  /** Reports whether a nudge was placed. One that wasn't is given again instead of escalated. */
  delivered(nudge: Nudge, ok: boolean): void {
    for (const step of nudge.steps) this.#observe({ type: "delivery", step, ok });
  }

  /** Reports that the history was cut or summarized. */
  compact(): void {
    this.#act(this.#observe({ type: "compact" }));
  }

  /** Reports that a person stepped in outside the conversation. Lifts a stop. */
  intervention(): void {
    this.#lift();
    this.#plan = NOTHING;
    this.#observe({ type: "intervention" });
  }

  /** Returns the state of the session as JSON; null if there is none. */
  checkpoint(): string | null {
    return this.#adapter.safely("checkpoint", () => JSON.stringify(this.#saved()), null);
  }

  /** Continues from a checkpoint. Returns whether it could be read. */
  restore(state: string): boolean {
    return this.#adapter.safely("restore", () => this.#load(JSON.parse(state)), false);
  }

  /** Continues from a checkpoint unless it is the one that was written last here. The mark in the notes tells. */
  restoreIfOther(state: string): void {
    const load = (): boolean => {
      const saved = JSON.parse(state) as SavedWatch;
      return saved.notes.mark !== this.notes.mark && this.#load(saved);
    };
    this.#adapter.safely("restore", load, false);
  }

  #lift(): void {
    this.#stop = null;
    this.#adapter.lift(this.session);
  }

  #turn(text: string, calls: readonly ToolCall[], usage: TokenUsage | null): TurnPlan {
    const ids = calls.map((call) => call.id);
    if (this.#sameTurn(ids)) return this.#plan;
    this.#turns += 1;
    this.#turnId = null;
    this.#answered.clear();
    this.#names = new Map(ids.map((id) => [id, this.#name(id)]));
    if (usage !== null) this.#act(this.#observe({ type: "usage", ...usage }));
    const listed: Call[] = calls.map(({ id, tool, args }) => ({ id: this.#names.get(id) ?? id, tool, args }));
    const decision = this.#observe({ type: "turn", text, calls: listed });
    this.#plan = this.#planned(ids, decision, this.#act(decision));
    return this.#plan;
  }

  #call({ id, tool, args }: ToolCall, turnId: string): TurnPlan {
    if (turnId !== this.#turnId) {
      this.#turns += 1;
      this.#turnId = turnId;
      this.#answered.clear();
      this.#names.clear();
      this.#plan = NOTHING;
    }
    if (this.#names.has(id)) return this.#plan;
    const name = this.#name(id);
    this.#names.set(id, name);
    const decision = this.#observe({ type: "call", id: name, tool, args, turn_id: turnId });
    const { refuse, ask, stop } = this.#planned([id], decision, this.#act(decision));
    this.#plan = { refuse: new Map([...this.#plan.refuse, ...refuse]), ask: new Map([...this.#plan.ask, ...ask]), stop };
    return this.#plan;
  }

  /** @param allowed what `onDecision` says to an `ask`; null if there is none */
  #planned(ids: readonly string[], decision: Decision | null, allowed: boolean | null): TurnPlan {
    const stop = this.#stop;
    if (stop !== null) return { refuse: new Map(ids.map((id) => [id, messageOf(stop)])), ask: new Map(), stop };
    if (decision === null) return NOTHING;
    const named = ids.filter((id) => decision.calls.includes(this.#names.get(id) ?? id));
    const asks = decision.action === "ask";
    const refuses = decision.action === "block" || (asks && allowed !== true);
    return {
      refuse: new Map(refuses ? named.map((id) => [id, messageOf(decision)]) : []),
      ask: new Map(asks && allowed !== false ? named.map((id) => [id, decision.user_message ?? messageOf(decision)]) : []),
      stop: null,
    };
  }

  #sameTurn(ids: readonly string[]): boolean {
    if (ids.length === 0 || this.#answered.size > 0) return false;
    const known = this.calls;
    return known.length === ids.length && ids.every((id, index) => id === known[index]);
  }

  /** Returns the id under which deloop has a call: some providers use the same ids in every turn. */
  #name(id: string): string {
    this.#reused ||= this.#recent.has(id);
    this.#recent.delete(id);
    this.#recent.add(id);
    if (this.#recent.size > RECENT_IDS) {
      const [oldest] = this.#recent;
      this.#recent.delete(oldest as string);
    }
    return this.#reused ? `${id}@${this.#turns}` : id;
  }

  #observe(body: StepBody): Decision | null {
    const step = { ...body, session: this.session, agent: this.#agent } as Step;
    const observe = (): Decision => {
      try {
        return this.#adapter.guard.observe(step);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        return this.#adapter.guard.observe(plain(step) as Step);
      }
    };
    return this.#adapter.safely<Decision | null>(`${body.type} step`, observe, null);
  }

  /** Notes what a decision asks for. Returns what `onDecision` says to an `ask`; null if there is none. */
  #act(decision: Decision | null): boolean | null {
    if (decision === null || decision.action === "continue") return null;
    if (decision.action === "stop" && this.#stop !== null) return null;
    const allowed = this.quiet ? null : this.#adapter.report(decision);
    if (decision.action === "stop") this.#stop = decision;
    if (decision.action === "nudge" && decision.message !== null) {
      this.#pending.push({ text: decision.message, steps: [decision.step] });
    }
    return allowed;
  }

  /** A subagent that shares the guard of its parent leaves the session's state to the parent. */
  get #savesGuard(): boolean {
    return this.#agent === undefined || this.#adapter.ownsGuard;
  }

  #saved(): SavedWatch {
    return {
      v: 1,
      guard: this.#savesGuard ? this.#adapter.guard.checkpoint(this.session) : null,
      turns: this.#turns,
      turnId: this.#turnId,
      names: [...this.#names],
      answered: [...this.#answered],
      refuse: [...this.#plan.refuse],
      pending: this.#pending,
      stop: this.#stop,
      reused: this.#reused,
      notes: this.notes,
    };
  }

  #load(saved: SavedWatch): boolean {
    if (saved.v !== 1) throw new Error(`a checkpoint of an unknown version: ${JSON.stringify(saved.v)}`);
    if (saved.guard !== null && this.#savesGuard) this.#adapter.guard.restore(this.session, saved.guard);
    this.#turns = saved.turns;
    this.#turnId = saved.turnId;
    this.#names = new Map(saved.names);
    this.#answered = new Set(saved.answered);
    this.#pending = [...saved.pending];
    this.#stop = saved.stop;
    this.#plan = { refuse: new Map(saved.refuse), ask: new Map(), stop: saved.stop };
    this.#recent = new Set(this.#names.keys());
    this.#reused = saved.reused;
    this.notes = saved.notes;
    return true;
  }
}

/** Returns the text of a decision for the model, or for the caller of a run that was stopped. */
export function messageOf(decision: Decision): string {
  return decision.message ?? decision.user_message ?? "[deloop] Stopped.";
}

function isTimeout(error: unknown): boolean {
  const type = errorType(error);
  return type === "TimeoutError" || type === "ETIMEDOUT";
}
