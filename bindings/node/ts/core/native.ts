import { join } from "node:path";

import { platformFolder } from "./platform.js";

/** A native guard. */
export interface GuardHandle {
  readonly handle: unique symbol;
}

/** Steps of a file, in pieces. */
export interface NativeSteps {
  /** Returns a JSON list of the next steps; null at the end. */
  next(most: number): string | null;
  close(): void;
  /** Returns what couldn't be read, once the file is over. */
  notes(): string[];
}

/** The native addon. Steps and answers are one value each, because that is cheaper than many. */
export interface NativeAddon {
  /** Creates a guard that reads steps from these bytes. */
  createGuard(settings: string, bytes: Uint8Array): GuardHandle;
  /**
   * Adds the step whose JSON is the first `length` of the guard's bytes. Returns the step of a decision that is just `continue`,
   * or `STEP SESSION` if the session isn't that of the last such answer. Otherwise returns the decision's JSON, or `!` and
   * the reason why the text isn't a Step.
   */
  observeBytes(guard: GuardHandle, length: number): number | string;
  /** Does the same for a text. */
  observeText(guard: GuardHandle, step: string): number | string;
  /** Returns `{"decision":…,"events":[…]}`, or `!` and the reason. */
  observeAll(guard: GuardHandle, step: string): string;
  checkpoint(guard: GuardHandle, session: string): string | null;
  restore(guard: GuardHandle, session: string, text: string): void;
  reset(guard: GuardHandle, session: string): void;
  sessionCount(guard: GuardHandle): number;
  Steps: new (path: string, format: string | null) => NativeSteps;
}

let addon: NativeAddon | undefined;

/** Loads the addon when it is first needed, so that importing deloop works, and is fast, on every machine. */
export function native(): NativeAddon {
  addon ??= require(join(platformFolder(), "deloop.node")) as NativeAddon;
  return addon;
}
