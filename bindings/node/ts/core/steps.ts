import { deepFreeze } from "./decision.js";
import { native } from "./native.js";
import type { Step } from "./step.js";

/** How many steps cross at once. */
const PIECE = 256;

/** How a file of steps is read. */
export interface StepsOptions {
  /** Reads the file as this format (see `deloop formats`) instead of detecting it. */
  format?: string;
}

/**
 * Reads the session in a file, in any format that deloop knows, as Steps.
 *
 * @throws if the file can't be read or its format isn't known
 */
export function* steps(path: string, options: StepsOptions = {}): Generator<Step, void, undefined> {
  const { Steps } = native();
  const reader = new Steps(path, options.format ?? null);
  for (let piece = reader.next(PIECE); piece !== null; piece = reader.next(PIECE)) {
    for (const step of JSON.parse(piece) as Step[]) yield deepFreeze(step);
  }
}
