import { type Decision, type Event, deepFreeze, goOn } from "./decision.js";
import { jsonText } from "./json-text.js";
import { type NativeGuard, native } from "./native.js";
import type { Step } from "./step.js";

/** The settings of a guard. */
export interface GuardOptions {
  /** A profile's name (`default`, `doom-loop`, …), the path of a TOML file, or the TOML itself. */
  profile?: string;
  /** The strongest action: only record (`observe`), only message the agent (`nudge`), or everything (`enforce`). */
  mode?: "observe" | "nudge" | "enforce";
  /** Whether a person is there to answer questions. */
  attended?: boolean;
  /** Settings over those of the profile, as in deloop.yaml. */
  config?: Readonly<Record<string, unknown>>;
  /** Where you can put a nudge; anywhere if absent. */
  deliver?: Place | readonly Place[];
  /** Whether you can take steps out of the conversation. */
  rollback?: boolean;
  /** How many sessions are kept; the least recently used are dropped. */
  maxSessions?: number;
}

/** A place where a nudge can be put. */
export type Place = "user" | "tool" | "system" | "developer";

const OPTIONS = new Set(["profile", "mode", "attended", "config", "deliver", "rollback", "maxSessions"]);

/**
 * Watches any number of sessions in this process and returns a Decision after each Step.
 *
 * @example
 * const guard = new Guard();
 * const decision = guard.observe({ type: "call", session: "s1", id: "c1", tool: "bash", args: { command: "ls" } });
 * if (decision.action === "stop") throw new StopError(decision);
 */
export class Guard {
  readonly #native: NativeGuard;

  /** @throws if an option is wrong; the message names it */
  constructor(options: GuardOptions = {}) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
    if (unknown !== undefined) {
      throw new TypeError(`unknown option ${JSON.stringify(unknown)}: one of ${[...OPTIONS].join(", ")}`);
    }
    const { maxSessions: max_sessions, deliver, ...others } = options;
    const places = typeof deliver === "string" ? [deliver] : deliver;
    const { Guard: NativeClass } = native();
    this.#native = new NativeClass(jsonText({ ...others, deliver: places, max_sessions }));
  }

  /**
   * Adds a step to its session and returns what to do.
   *
   * @param step an object or its JSON
   * @throws {TypeError} if it isn't a Step; the message names the field. What an agent does never throws.
   */
  observe(step: Step | string): Decision {
    const answer = this.#native.observe(typeof step === "string" ? step : jsonText(step));
    const first = answer.charCodeAt(0);
    if (first === BRACE) return deepFreeze(JSON.parse(answer));
    if (first === EXCLAMATION) throw new TypeError(answer.slice(1));
    const space = answer.indexOf(" ");
    return goOn(answer.slice(space + 1), Number(answer.slice(0, space)));
  }

  /** Does the same as `observe` and also returns the events. */
  observeAll(step: Step | string): { readonly decision: Decision; readonly events: readonly Event[] } {
    const answer = this.#native.observeAll(typeof step === "string" ? step : jsonText(step));
    if (answer.charCodeAt(0) === EXCLAMATION) throw new TypeError(answer.slice(1));
    return deepFreeze(JSON.parse(answer));
  }

  /** Returns the state of a session as JSON; null if there is no such session. */
  checkpoint(session: string): string | null {
    return this.#native.checkpoint(session);
  }

  /** Restores a session from its checkpoint and replaces any state it has. */
  restore(session: string, text: string): void {
    this.#native.restore(session, text);
  }

  /** Deletes the state of a session. */
  reset(session: string): void {
    this.#native.reset(session);
  }

  /** The number of sessions that are kept. */
  get sessionCount(): number {
    return this.#native.sessionCount();
  }
}

const BRACE = 0x7b;
const EXCLAMATION = 0x21;
