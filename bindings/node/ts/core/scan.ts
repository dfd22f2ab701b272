import type { Action } from "./decision.js";
import { command } from "./platform.js";

/** Tokens and their cost. */
export interface Spend {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  /** Cost in dollars of the tokens whose price is known. */
  readonly usd: number;
  /** Tokens of models whose price is unknown; they are not in `usd`. */
  readonly unpriced_tokens: number;
}

/** An action that deloop would have taken. */
export interface ActionRow {
  readonly step: number;
  /** The turn, from 1; 0 before the first. */
  readonly turn: number;
  readonly action: Action;
  readonly level: number;
  readonly detector: string;
}

/** One loop in a stored session. */
export interface LoopRow {
  readonly session: string;
  readonly file: string;
  readonly format: string;
  readonly agent: string | null;
  readonly model: string | null;
  readonly project: string | null;
  readonly started: string | null;
  readonly ended: string | null;
  /** A summary: what repeats and how often. */
  readonly pattern: string;
  readonly detector: string;
  readonly also: readonly string[];
  readonly tool: string | null;
  readonly count: number;
  readonly period: number;
  readonly step: number;
  readonly last_step: number;
  readonly first_turn: number;
  readonly last_turn: number;
  readonly of_turns: number;
  readonly repeated: readonly number[];
  readonly line: number;
  /** The strongest action. */
  readonly action: Action;
  readonly level: number;
  readonly actions: readonly ActionRow[];
  readonly minutes: number;
  readonly spend: Spend;
  readonly spend_after: Spend;
}

/** One session that was read. */
export interface SessionRow {
  readonly session: string;
  readonly file: string;
  readonly format: string;
  readonly model: string | null;
  readonly project: string | null;
  readonly started: string | null;
  readonly ended: string | null;
  readonly steps: number;
  readonly turns: number;
  readonly calls: number;
  readonly loops: number;
  readonly repeated_turns: number;
  readonly minutes: number;
  readonly spend: Spend;
  readonly loop_spend: Spend;
  readonly actions: readonly ActionRow[];
}

/** The result of a scan; `deloop schema scan` describes every field. */
export interface ScanReport {
  readonly version: number;
  readonly profile: string;
  readonly since: string | null;
  readonly older: number;
  readonly examples: boolean;
  readonly prices: string;
  readonly totals: {
    readonly files: number;
    readonly bytes: number;
    readonly sessions: number;
    readonly sessions_with_loops: number;
    readonly loops: number;
    readonly turns: number;
    readonly repeated_turns: number;
    readonly minutes: number;
    readonly spend: Spend;
    readonly loop_spend: Spend;
  };
  /** The loops, most expensive first. */
  readonly loops: readonly LoopRow[];
  /** Every session that was read, latest first. */
  readonly sessions: readonly SessionRow[];
  /** Files that couldn't be read, or not completely. */
  readonly problems: readonly { readonly path: string; readonly problem: string; readonly lost: boolean }[];
}

/** The options of a scan, as of `deloop scan`. */
export interface ScanOptions {
  /** Reads every file as this format instead of detecting it. */
  format?: string;
  /** Only sessions active since then: `30d`, `12h`, `2w`, or a date like `2026-01-31`. */
  since?: string;
  /** A profile's name or the path of a TOML file. */
  profile?: string;
  /** The path of a configuration file. */
  config?: string;
  /** Only loops that reached this level: a rung or an action. */
  minLevel?: number | Action;
  /** Only the costliest loops. */
  top?: number;
  /** Hides arguments and results. */
  redact?: boolean;
}

/**
 * Finds loops in stored sessions, most expensive first. Without paths it reads the agents' own folders.
 *
 * @throws after the last loop if a path couldn't be read; at once if the scan couldn't run
 */
export async function* scan(
  paths: string | readonly string[] = [],
  options: ScanOptions = {},
): AsyncGenerator<LoopRow, void, undefined> {
  const { report, failure } = await run(paths, options);
  yield* report.loops;
  if (failure !== undefined) throw failure;
}

/**
 * Does the same as `scan` and returns the whole report, whose `problems` lists what couldn't be read.
 *
 * @throws if the scan couldn't run
 */
export async function scanReport(
  paths: string | readonly string[] = [],
  options: ScanOptions = {},
): Promise<ScanReport> {
  return (await run(paths, options)).report;
}

function argumentsOf(paths: string | readonly string[], options: ScanOptions): string[] {
  const given: [string, string | number | undefined][] = [
    ["--format", options.format],
    ["--since", options.since],
    ["--profile", options.profile],
    ["--config", options.config],
    ["--min-level", options.minLevel],
    ["--top", options.top],
  ];
  const named = given.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
  const flags = options.redact === true ? ["--redact"] : [];
  return ["scan", "--json", ...named, ...flags, "--", ...(typeof paths === "string" ? [paths] : paths)];
}

async function run(
  paths: string | readonly string[],
  options: ScanOptions,
): Promise<{ report: ScanReport; failure: Error | undefined }> {
  // Loaded when it is needed: most programs only use a Guard.
  const { spawn } = require("node:child_process") as typeof import("node:child_process");
  const child = spawn(command(), argumentsOf(paths, options), { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  const [output, problems, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const failure = code === 0 ? undefined : new Error(problems.trim() || `deloop scan ended with code ${code}`);
  if (failure !== undefined && output.trim() === "") throw failure;
  return { report: JSON.parse(output) as ScanReport, failure };
}

async function text(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}
