/** What every Step can carry. */
export interface StepFields {
  /** The session; `default` if absent. */
  session?: string | null;
  /** The worker or subagent. Each one in a session has its own history. */
  agent?: string | null;
  /** The swarm: a group of workers with one goal, across sessions. */
  swarm?: string | null;
  /** The session that started this one and is responsible for it. */
  controller?: string | null;
  /** The task the session works on. */
  task?: string | null;
  /** The project the session works on. What keeps failing is remembered per project, across sessions. */
  project?: string | null;
  /** The time: RFC 3339, milliseconds since 1970, or a Date. */
  ts?: string | number | Date | null;
}

/** One tool call of a turn. */
export interface Call {
  /** The id that the result refers to. The same id twice in a session is the same call. */
  id?: string | number | null;
  /** The tool. */
  tool: string;
  /** Its arguments: any JSON, or the raw text where the model wrote something that isn't JSON. */
  args?: unknown;
}

/** How a call ended. `invalid`: it never ran, because the tool doesn't exist or its arguments failed the schema. */
export type Outcome = "ok" | "error" | "denied" | "cancelled" | "timeout" | "running" | "invalid";

/** Who wrote a message to the agent: a person, or the program around the agent (an automatic "continue"). */
export type Origin = "human" | "harness" | "notice" | "schedule";

/** The model answered: text, calls or both. Parallel calls are one turn. */
export interface TurnStep extends StepFields {
  type: "turn";
  text?: string | null;
  calls?: readonly Call[] | null;
  /** Names the turn. Steps with the same id are one turn, so parallel calls may arrive one by one. */
  turn_id?: string | number | null;
  /** The text's embedding, for profiles that compare turns by meaning. */
  embedding?: readonly number[] | null;
}

/** The same as a turn with one call and no text. */
export interface CallStep extends StepFields {
  type: "call";
  id?: string | number | null;
  tool: string;
  args?: unknown;
  turn_id?: string | number | null;
}

/** A call came back. */
export interface ResultStep extends StepFields {
  type: "result";
  /** The call's id; without one, the result belongs to the oldest unanswered call of the latest turn that has any. */
  id?: string | number | null;
  /** Whether the call succeeded, if known. */
  ok?: boolean | null;
  /** How the call ended; more specific than `ok`. */
  outcome?: Outcome | null;
  /** What the tool returned, without anything you appended for deloop. */
  output?: unknown;
  /** The kind of error, as the tool or framework names it: `ENOENT`, `TypeError`, `rate_limited`. */
  error_type?: string | null;
}

/** A message to the agent. */
export interface UserStep extends StepFields {
  type: "user";
  text?: string | null;
  /** Who wrote it; `human` if absent. */
  origin?: Origin | null;
}

/** What a request to the model used. */
export interface UsageStep extends StepFields {
  type: "usage";
  model?: string | null;
  /** Input tokens, without those from the cache. */
  input_tokens?: number | null;
  output_tokens?: number | null;
  cache_read_tokens?: number | null;
  cache_write_tokens?: number | null;
  /** The part of `cache_write_tokens` that was written for one hour. */
  cache_write_1h_tokens?: number | null;
  /** The cost in dollars; if absent, it is computed from the list price of the model. */
  cost_usd?: number | null;
  /** All tokens as input tokens of the same price. Set by deloop. */
  weighted_tokens?: number | null;
}

/** A piece of a message that is still streaming. The complete turn follows. */
export interface ChunkStep extends StepFields {
  type: "chunk";
  text: string;
}

/** The agent's context was cut or summarized. */
export interface CompactStep extends StepFields {
  type: "compact";
}

/** Whether the message of the Decision at `step` reached the agent. */
export interface DeliveryStep extends StepFields {
  type: "delivery";
  step: number;
  ok: boolean;
}

/** The embedding of the turn at `step`, if it wasn't known with the turn. */
export interface EmbeddingStep extends StepFields {
  type: "embedding";
  step: number;
  embedding: readonly number[];
}

/** A person stepped in outside the conversation: episodes end, and a stop is lifted. */
export interface InterventionStep extends StepFields {
  type: "intervention";
}

/** The session is over. */
export interface EndStep extends StepFields {
  type: "end";
}

/** The swarm has finished: its counts are cleared. */
export interface SwarmEndStep extends StepFields {
  type: "swarm_end";
  swarm: string;
}

/** You want to know the current state. Nothing happened, and nothing changes. */
export interface StateStep extends StepFields {
  type: "state";
}

/** One thing that happened in an agent's session; `type` determines which fields apply. */
export type Step =
  | TurnStep
  | CallStep
  | ResultStep
  | UserStep
  | UsageStep
  | ChunkStep
  | CompactStep
  | DeliveryStep
  | EmbeddingStep
  | InterventionStep
  | EndStep
  | SwarmEndStep
  | StateStep;

/** The fields of a Step that a function doesn't take as arguments. */
type Rest<S extends Step, Named extends string = never> = Omit<S, "type" | "session" | Named>;

/** Functions that build Steps. Each returns a plain object with the fields that are sent. */
export const Step = {
  /** Builds a turn: `Step.turn("s1", { text: "Let me look.", calls: [{ id: "c1", tool: "bash", args }] })`. */
  turn: (session: string, fields?: Rest<TurnStep>): TurnStep => ({ type: "turn", session, ...fields }),

  /** Builds a turn with one call and no text: `Step.call("s1", "bash", { command: "ls" }, { id: "c1" })`. */
  call: (session: string, tool: string, args?: unknown, fields?: Rest<CallStep, "tool" | "args">): CallStep => ({
    type: "call",
    session,
    tool,
    args,
    ...fields,
  }),

  /** Builds the result of a call: `Step.result("s1", "c1", { ok: false, output: "no such file" })`. */
  result: (session: string, id: string | number | null, fields?: Rest<ResultStep, "id">): ResultStep => ({
    type: "result",
    session,
    id,
    ...fields,
  }),

  /** Builds a message to the agent. */
  user: (session: string, text: string, fields?: Rest<UserStep, "text">): UserStep => ({
    type: "user",
    session,
    text,
    ...fields,
  }),

  /** Builds what a request to the model used. */
  usage: (session: string, fields?: Rest<UsageStep>): UsageStep => ({ type: "usage", session, ...fields }),

  /** Builds a piece of a message that is still streaming. */
  chunk: (session: string, text: string, fields?: Rest<ChunkStep, "text">): ChunkStep => ({
    type: "chunk",
    session,
    text,
    ...fields,
  }),

  /** Reports that the agent's context was cut or summarized. */
  compact: (session: string, fields?: Rest<CompactStep>): CompactStep => ({ type: "compact", session, ...fields }),

  /** Reports whether the message of the Decision at `step` reached the agent. */
  delivery: (session: string, step: number, ok: boolean, fields?: Rest<DeliveryStep, "step" | "ok">): DeliveryStep => ({
    type: "delivery",
    session,
    step,
    ok,
    ...fields,
  }),

  /** Adds the embedding of the turn at `step`. */
  embedding: (
    session: string,
    step: number,
    embedding: readonly number[],
    fields?: Rest<EmbeddingStep, "step" | "embedding">,
  ): EmbeddingStep => ({ type: "embedding", session, step, embedding, ...fields }),

  /** Reports that a person stepped in outside the conversation. */
  intervention: (session: string, fields?: Rest<InterventionStep>): InterventionStep => ({
    type: "intervention",
    session,
    ...fields,
  }),

  /** Ends a session. */
  end: (session: string, fields?: Rest<EndStep>): EndStep => ({ type: "end", session, ...fields }),

  /** Ends a swarm. */
  swarmEnd: (session: string, swarm: string, fields?: Rest<SwarmEndStep, "swarm">): SwarmEndStep => ({
    type: "swarm_end",
    session,
    swarm,
    ...fields,
  }),

  /** Asks for the state of a session; with `agent`, of one of its subagents, and with `swarm`, also of that swarm. */
  state: (session: string, fields?: Rest<StateStep>): StateStep => ({ type: "state", session, ...fields }),
} as const;
