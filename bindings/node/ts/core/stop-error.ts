import type { Decision } from "./decision.js";

/** Thrown by adapters that end a run with an error. `decision` says why. */
export class StopError extends Error {
  override readonly name = "StopError";
  /** The Decision that ended the run. */
  readonly decision: Decision;

  constructor(decision: Decision, message?: string) {
    super(message ?? decision.user_message ?? decision.message ?? "deloop stopped the run");
    this.decision = decision;
  }
}
