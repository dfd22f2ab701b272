import { type Decision, Guard, type GuardOptions } from "./core/index.js";
import { Watch } from "./watch.js";

declare const console: Logger;
declare const crypto: { randomUUID(): string };

/** Where deloop logs: nudges and blocks as warnings, stops and its own failures as errors. `console` is one. */
export interface Logger {
  warn(message: string): void;
  error(message: string): void;
}

/** What an adapter needs of a guard. */
export type GuardLike = Pick<Guard, "observe" | "checkpoint" | "restore">;

/** Keeps the state of sessions. A `Map` is one; for a database, give two functions that read and write one row. */
export interface SessionStore {
  get(session: string): string | null | undefined | PromiseLike<string | null | undefined>;
  set(session: string, state: string): unknown;
}

/** The options that every adapter takes, with those of a guard. */
export interface AdapterOptions extends GuardOptions {
  /** A guard to share with other adapters, instead of the options of a guard. */
  guard?: GuardLike;
  /** The name of a subagent, if this adapter guards one inside the session of another. */
  agent?: string;
  /** How a stop ends a run: `end` (the default) with a final answer, `error` with a `StopError`. */
  exitBehavior?: "end" | "error";
  /** Called with each decision that isn't `continue`. Return false to refuse the calls of an `ask`. */
  onDecision?: (decision: Decision) => unknown;
  /** Called with the decision that ends a run. */
  onStop?: (decision: Decision) => unknown;
  /** Where to log; `console` by default, null for nowhere. */
  logger?: Logger | null;
  /** Where to keep the state of sessions, so that another process can continue them. */
  store?: SessionStore;
}

const GUARD_OPTIONS = ["profile", "mode", "attended", "config", "deliver", "rollback", "maxSessions"] as const;
const WATCHES = 10_000;

/** Holds the guard, the options and the watches of one adapter. A failure inside deloop never reaches the run. */
export class Adapter {
  readonly guard: GuardLike;
  readonly exitBehavior: "end" | "error";
  /** Whether no other adapter uses the guard. */
  readonly ownsGuard: boolean;
  /** The stop that ended a run last, until a person writes again in its session. */
  lastStop: Decision | null = null;
  readonly #options: AdapterOptions;
  readonly #logger: Logger | null;
  readonly #watches = new Map<string, Watch>();
  readonly #logged = new Set<string>();

  /** @param deliver where this adapter can put a nudge */
  constructor(options: AdapterOptions, deliver: "tool" | "user") {
    const { exitBehavior = "end", guard } = options;
    if (exitBehavior !== "end" && exitBehavior !== "error") {
      throw new TypeError(`exitBehavior is "end" or "error", not ${JSON.stringify(exitBehavior)}`);
    }
    const given = GUARD_OPTIONS.filter((name) => options[name] !== undefined);
    if (guard !== undefined && given.length > 0) {
      throw new TypeError(`pass either guard or the options of a guard (${given.join(", ")}), not both`);
    }
    this.#options = options;
    this.#logger = options.logger === undefined ? console : options.logger;
    this.exitBehavior = exitBehavior;
    this.ownsGuard = guard === undefined;
    this.guard = guard ?? new Guard({ deliver, ...Object.fromEntries(given.map((name) => [name, options[name]])) });
  }

  /** Returns the watch of a session, the same one each time. Without a session, a new one starts. */
  watch(session: string | null | undefined): Watch {
    const id = session || `run-${crypto.randomUUID()}`;
    const watch = this.#watches.get(id) ?? new Watch(this, id, this.#options.agent);
    this.#watches.delete(id);
    this.#watches.set(id, watch);
    if (this.#watches.size > WATCHES) {
      const [oldest] = this.#watches.keys();
      this.#watches.delete(oldest as string);
    }
    return watch;
  }

  /** Returns whether a session has a watch. */
  knows(session: string): boolean {
    return this.#watches.has(session);
  }

  /** Returns the watch of a session, in the state that the store has, if another process wrote a newer one. */
  async load(session: string | null | undefined): Promise<Watch> {
    const { store } = this.#options;
    if (store === undefined || !session) return this.watch(session);
    const state = await this.safelyAsync("store.get", async () => store.get(this.#key(session)), null);
    const watch = this.watch(session);
    if (state != null) watch.restoreIfOther(state);
    return watch;
  }

  /** Writes the state of a session to the store. */
  async save(watch: Watch): Promise<void> {
    const { store } = this.#options;
    if (store === undefined) return;
    const before = watch.notes.mark;
    watch.notes.mark = crypto.randomUUID();
    const state = watch.checkpoint();
    const write = async (): Promise<boolean> => {
      if (state !== null) await store.set(this.#key(watch.session), state);
      return state !== null;
    };
    if (!(await this.safelyAsync("store.set", write, false))) watch.notes.mark = before;
  }

  /** Forgets the stop of a session. */
  lift(session: string): void {
    if (this.lastStop?.session === session) this.lastStop = null;
  }

  /** Logs a decision and calls the callbacks. Returns what `onDecision` says to an `ask`; null if there is none. */
  report(decision: Decision): boolean | null {
    const text = `${decision.user_message ?? decision.message ?? "deloop"} (session ${decision.session})`;
    const stop = decision.action === "stop";
    this.safely("logger", () => (stop ? this.#logger?.error(text) : this.#logger?.warn(text)), undefined);
    if (stop) {
      this.lastStop = decision;
      this.#call("onStop", this.#options.onStop, decision);
    }
    if (this.#options.onDecision === undefined) return null;
    return this.#call("onDecision", this.#options.onDecision, decision) !== false;
  }

  /** Runs something of deloop's; if it throws, logs that once per kind and returns `neutral`. */
  safely<T>(kind: string, work: () => T, neutral: T): T {
    try {
      return work();
    } catch (error) {
      this.failed(kind, error);
      return neutral;
    }
  }

  /** Does the same for something asynchronous. */
  async safelyAsync<T>(kind: string, work: () => PromiseLike<T>, neutral: T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.failed(kind, error);
      return neutral;
    }
  }

  /** Logs that something is set up in a way that doesn't work, once. */
  warnOnce(text: string): void {
    if (this.#logged.has(text)) return;
    this.#logged.add(text);
    this.safely("logger", () => this.#logger?.warn(text), undefined);
  }

  /** Logs a failure inside deloop, once per kind. */
  failed(kind: string, error: unknown): void {
    const name = `${kind}: ${error instanceof Error ? error.name : typeof error}`;
    if (this.#logged.has(name)) return;
    this.#logged.add(name);
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    try {
      this.#logger?.error(`deloop failed (${name}), the run continues without it: ${text}`);
    } catch {
      // A logger that throws has nowhere to report to.
    }
  }

  /** Returns the key of a session in the store. A subagent has a state of its own. */
  #key(session: string): string {
    return this.#options.agent === undefined ? session : `${session}/${this.#options.agent}`;
  }

  #call(kind: string, callback: ((decision: Decision) => unknown) | undefined, decision: Decision): unknown {
    const answer = this.safely(kind, () => callback?.(decision), undefined);
    if (typeof (answer as PromiseLike<unknown> | undefined)?.then === "function") {
      Promise.resolve(answer).catch((error: unknown) => this.failed(kind, error));
    }
    return answer;
  }
}
