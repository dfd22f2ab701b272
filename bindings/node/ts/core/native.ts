import { join } from "node:path";

import { platformFolder } from "./platform.js";

/** The native guard. Texts are JSON; each answer is one string, because one string is cheaper than many values. */
export interface NativeGuard {
  /**
   * Returns `STEP SESSION` for a decision that is just `continue`, the decision's JSON if it is more, or `!` and the
   * reason why the text isn't a Step.
   */
  observe(step: string): string;
  /** Returns `{"decision":…,"events":[…]}`, or `!` and the reason. */
  observeAll(step: string): string;
  checkpoint(session: string): string | null;
  restore(session: string, text: string): void;
  reset(session: string): void;
  sessionCount(): number;
}

/** Steps of a file, in pieces. */
export interface NativeSteps {
  /** Returns a JSON list of the next steps; null at the end. */
  next(most: number): string | null;
  close(): void;
  /** Returns what couldn't be read, once the file is over. */
  notes(): string[];
}

/** The native addon. */
export interface NativeAddon {
  Guard: new (settings: string) => NativeGuard;
  Steps: new (path: string, format: string | null) => NativeSteps;
}

let addon: NativeAddon | undefined;

/** Loads the addon when it is first needed, so that importing deloop works, and is fast, on every machine. */
export function native(): NativeAddon {
  addon ??= require(join(platformFolder(), "deloop.node")) as NativeAddon;
  return addon;
}
