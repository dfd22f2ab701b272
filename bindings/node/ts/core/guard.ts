import { type Decision, type Event, deepFreeze, goOn } from "./decision.js";
import { BYTES, jsonBytes } from "./json-bytes.js";
import { jsonText } from "./json-text.js";
import { type GuardHandle, type NativeAddon, native } from "./native.js";
import { refusal } from "./refusal.js";
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
  /** How many sessions are kept, rounded up to a multiple of 16 (default 10,000); the least recently used are dropped. */
  maxSessions?: number;
}

/** A place where a nudge can be put. */
export type Place = "user" | "tool" | "system" | "developer";

const isText = (value: unknown): boolean => typeof value === "string";
const isFlag = (value: unknown): boolean => typeof value === "boolean";

/** What each option must be. The native side checks the names in them. */
const OPTIONS: Readonly<Record<keyof GuardOptions, readonly [expected: string, fits: (value: unknown) => boolean]>> = {
  profile: ["a string", isText],
  mode: ["a string", isText],
  attended: ["true or false", isFlag],
  config: ["an object", (value) => typeof value === "object" && value !== null && !Array.isArray(value)],
  deliver: ["a string or a list of strings", (value) => isText(value) || (Array.isArray(value) && value.every(isText))],
  rollback: ["true or false", isFlag],
  maxSessions: ["a whole number from 1", (value) => Number.isSafeInteger(value) && (value as number) > 0],
};

function checkOptions(options: GuardOptions): void {
  if (typeof options !== "object" || options === null) throw new TypeError("the options of a Guard are an object");
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(OPTIONS, name)) {
      throw new TypeError(`unknown option \`${name}\`: one of ${Object.keys(OPTIONS).join(", ")}`);
    }
    const [expected, fits] = OPTIONS[name as keyof GuardOptions];
    if (value !== undefined && !fits(value)) throw new TypeError(`\`${name}\` must be ${expected}`);
  }
}

/**
 * Watches any number of sessions in this process and returns a Decision after each Step.
 *
 * @example
 * const guard = new Guard();
 * const decision = guard.observe({ type: "call", session: "s1", id: "c1", tool: "bash", args: { command: "ls" } });
 * if (decision.action === "stop") throw new StopError(decision);
 */
export class Guard {
  readonly #native: NativeAddon;
  readonly #guard: GuardHandle;
  /** The session of the last decision that was just `continue`. */
  #session = "";

  /** @throws if an option is wrong; the message names it */
  constructor(options: GuardOptions = {}) {
    checkOptions(options);
    const { maxSessions: max_sessions, deliver, ...others } = options;
    const places = typeof deliver === "string" ? [deliver] : deliver;
    this.#native = native();
    this.#guard = this.#native.createGuard(jsonText({ ...others, deliver: places, max_sessions }), BYTES);
  }

  /**
   * Adds a step to its session and returns what to do.
   *
   * @param step an object or its JSON
   * @throws {TypeError} if it isn't a Step; the message names the field. What an agent does never throws.
   */
  observe(step: Step | string): Decision {
    const answer = typeof step === "string" ? this.#ofText(step) : this.#ofObject(step);
    if (typeof answer === "number") return goOn(this.#session, answer);
    const first = answer.charCodeAt(0);
    if (first === BRACE) return deepFreeze(JSON.parse(answer));
    if (first === EXCLAMATION) throw refusal(typeof step === "string" ? step : jsonText(step), answer.slice(1));
    const space = answer.indexOf(" ");
    this.#session = answer.slice(space + 1);
    return goOn(this.#session, Number(answer.slice(0, space)));
  }

  #ofObject(step: Step): number | string {
    const length = typeof step === "object" && step !== null ? jsonBytes(step) : -1;
    return length < 0 ? this.#ofText(jsonText(step)) : this.#native.observeBytes(this.#guard, length);
  }

  #ofText(text: string): number | string {
    if (text.length <= LONGEST_COPIED) {
      const { read, written } = ENCODER.encodeInto(text, BYTES);
      if (read === text.length) return this.#native.observeBytes(this.#guard, written);
    }
    return this.#native.observeText(this.#guard, text);
  }

  /** Does the same as `observe` and also returns the events. */
  observeAll(step: Step | string): { readonly decision: Decision; readonly events: readonly Event[] } {
    const text = typeof step === "string" ? step : jsonText(step);
    const answer = this.#native.observeAll(this.#guard, text);
    if (answer.charCodeAt(0) === EXCLAMATION) throw refusal(text, answer.slice(1));
    return deepFreeze(JSON.parse(answer));
  }

  /** Returns the state of a session as JSON; null if there is no such session. */
  checkpoint(session: string): string | null {
    return this.#native.checkpoint(this.#guard, session);
  }

  /** Restores a session from its checkpoint and replaces any state it has. */
  restore(session: string, text: string): void {
    this.#native.restore(this.#guard, session, text);
  }

  /** Deletes the state of a session. */
  reset(session: string): void {
    this.#native.reset(this.#guard, session);
  }

  /** The number of sessions that are kept. */
  get sessionCount(): number {
    return this.#native.sessionCount(this.#guard);
  }
}

/** Longer texts cross as a string: most of them wouldn't fit into `BYTES`. */
const LONGEST_COPIED = 12 << 10;
const ENCODER = new TextEncoder();

const BRACE = 0x7b;
const EXCLAMATION = 0x21;
