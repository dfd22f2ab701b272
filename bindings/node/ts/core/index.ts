export type * from "./decision.js";
export { Guard, type GuardOptions, type Place } from "./guard.js";
export { command } from "./platform.js";
export * from "./scan.js";
export * from "./step.js";
export * from "./steps.js";
export { StopError } from "./stop-error.js";
export { version } from "./version.js";
