/** What deloop does about a step, from weakest to strongest. */
export type Action = "continue" | "warn" | "nudge" | "ask" | "block" | "stop";

/** The role under which a message is added to the conversation; `tool` is the end of a tool result. */
export type Role = "user" | "system" | "developer" | "tool";

/** What a finding is about. */
export type Repeats =
  | "call"
  | "target"
  | "variants"
  | "cycle"
  | "failure"
  | "everything"
  | "tests"
  | "commands"
  | "edit"
  | "search"
  | "turn"
  | "talk"
  | "message"
  | "swarm"
  | "file"
  | "test-file"
  | "plan-section"
  | "task"
  | "compaction"
  | "request"
  | "spawns"
  | "spawned-task"
  | "known-failure"
  | "budget";

/** How repeated calls ended. */
export type CameBack =
  | "same-failure"
  | "failures"
  | "refused"
  | "timed-out"
  | "same-output"
  | "nothing"
  | "unseen";

/** A call, shortened and sanitized. */
export interface ShortCall {
  readonly tool: string;
  /** The most telling argument, shortened; empty when there is none. */
  readonly about: string;
}

/** A pattern that a detector found. */
export interface Finding {
  /** The detector that found it. */
  readonly detector: string;
  /** The rule that found it, named after the parameter that is its threshold. */
  readonly rule?: string;
  /** The value of that parameter. */
  readonly threshold?: number;
  /** Tells the pattern from others of the same detector. */
  readonly pattern?: string;
  /** What repeats. */
  readonly repeats: Repeats;
  /** Number of occurrences, including the first. */
  readonly count: number;
  /** Number of calls or turns in one cycle. */
  readonly period: number;
  /** How similar the cycles are, 0 to 1. */
  readonly score: number;
  /** The step where the pattern began. */
  readonly since: number;
  /** The tool involved, if there is one. */
  readonly tool: string | null;
  /** How the calls ended each time, if known. */
  readonly outcome?: CameBack;
  /** Whether anything that could affect the outcome changed in between, if known. */
  readonly changed?: boolean;
  /** The steps of the calls that it counts, oldest first, as far as the session remembers them. */
  readonly counted?: readonly number[];
  /** The calls involved, newest last, shortened. */
  readonly calls?: readonly ShortCall[];
  /** A summary for people. */
  readonly summary: string;
}

/** Which finding a decision rests on. */
export interface DecidedBy {
  readonly detector: string;
  readonly rule?: string;
  readonly pattern?: string;
}

/** A message to a controlling agent about an agent that it started. */
export interface ControllerNotice {
  /** The session that the notice is about. */
  readonly session: string;
  /** The worker or subagent, if it is one. */
  readonly agent?: string;
  /** The step of that session. */
  readonly step: number;
  readonly action: Action;
  readonly level: number;
  /** The reason. */
  readonly message: string;
}

/** A range of steps to take out of the conversation, and the line that takes their place. */
export interface Rollback {
  readonly from_step: number;
  readonly to_step: number;
  readonly summary: string;
}

/** What the detectors of repeated calls know of an agent; the answer to a `state` step. */
export interface LoopDetectionState {
  readonly doomLoopDetected: boolean;
  readonly lastTool: string | null;
  readonly consecutiveCount: number;
  readonly threshold: number;
  readonly fuzzyThreshold: number;
  readonly lastWarningTime: number;
}

/** The decision about a step: a frozen object with the fields of `deloop schema decision`. */
export interface Decision {
  /** The session the step belongs to. */
  readonly session: string;
  /** The index of the step in its session, from 0. */
  readonly step: number;
  /** A stable id, unless the action is `continue`. */
  readonly id?: string;
  /** What to do. */
  readonly action: Action;
  /** The rung of the ladder; 0 for `continue`. */
  readonly level: number;
  /** The rung's name, if the profile sets one. */
  readonly rung?: string;
  /** The message: for the model on a nudge or a block, for people otherwise. */
  readonly message: string | null;
  /** One line for the user: what deloop did and why. */
  readonly user_message?: string;
  /** The role under which the message is added to the conversation. */
  readonly role: Role | null;
  /** The ids of the calls to refuse or to ask about. `#N` is the Nth call of a turn without ids. */
  readonly calls: readonly string[];
  /** The repeated steps to take out of the conversation, with the option `rollback`. */
  readonly rollback?: Rollback;
  /** How the run ended, on `stop`. */
  readonly status: string | null;
  /** All findings at this step. */
  readonly findings: readonly Finding[];
  /** The finding that decided, unless the action is `continue`. */
  readonly by?: DecidedBy;
  /** Messages for this agent about agents that it started. */
  readonly notices?: readonly ControllerNotice[];
  /** The decision before the mode capped it. */
  readonly would?: Decision;
  /** The answer to a `state` step; null if there is no such session or the profile doesn't count repeated calls. */
  readonly loop_detection_state?: LoopDetectionState | null;
  /** The answer to a `state` step with a swarm. */
  readonly swarm_state?: unknown;
  /** What the profile `behavioral` adds when it ends a task. */
  readonly task_update?: unknown;
  /** Fields that a profile adds. */
  readonly [field: string]: unknown;
}

/** A notification for people or other programs, sent at most once per level and episode. */
export interface Event {
  readonly event:
    | "loop_detected"
    | "alert"
    | "nudge"
    | "ask"
    | "block"
    | "session.terminated"
    | "task.update"
    | "cost.attributed"
    | "budget.warning";
  readonly session: string;
  readonly agent?: string;
  readonly controller?: string;
  readonly task?: string;
  readonly step: number;
  /** Milliseconds since 1970, if the step has a time. */
  readonly ts?: number;
  readonly action?: Action;
  readonly level?: number;
  readonly reason?: string;
  readonly status?: string;
  readonly finding?: Finding;
  readonly calls?: readonly string[];
  readonly model?: string;
  readonly tokens?: number;
  readonly cost_usd?: number;
  readonly total_tokens?: number;
  readonly total_usd?: number;
  readonly task_update?: unknown;
}

const NONE: readonly never[] = Object.freeze([]);

/** Builds the decision to do nothing about a step. */
export function goOn(session: string, step: number): Decision {
  return Object.freeze({
    session,
    step,
    action: "continue",
    level: 0,
    message: null,
    role: null,
    calls: NONE,
    status: null,
    findings: NONE,
  });
}

/** Freezes a value that was parsed from JSON, and everything in it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
