import { native } from "./native.js";
import type { Step } from "./step.js";

/** How many steps cross at once. */
const PIECE = 256;

/** How a file of steps is read. */
export interface StepsOptions {
  /** Reads the file as this format (see `deloop formats`) instead of detecting it. */
  format?: string;
  /** Is called at the end for each thing that couldn't be read, such as `skipped 1 unreadable line`. */
  onNote?: (note: string) => void;
}

/**
 * Reads the session in a file, in any format that deloop knows, as Steps.
 *
 * @throws if the file can't be read or its format isn't known
 */
export function* steps(path: string, options: StepsOptions = {}): Generator<Step, void, undefined> {
  const { Steps } = native();
  const reader = new Steps(path, options.format ?? null);
  try {
    for (let piece = reader.next(PIECE); piece !== null; piece = reader.next(PIECE)) {
      yield* JSON.parse(piece) as Step[];
    }
    for (const note of reader.notes()) options.onNote?.(note);
  } finally {
    reader.close();
  }
}
