import { Adapter, type AdapterOptions } from "./adapter.js";
import { type Decision, type Origin, StopError } from "./core/index.js";
import { errorText, errorType, parsedArguments, plain } from "./plain.js";
import { messageOf, type Nudge, type Returned, type TokenUsage, type ToolCall, type Watch } from "./watch.js";

/** Runs a tool: takes its name and its arguments, and returns its output. */
export type RunTool = (name: string, args: any) => unknown;

/** The options of a `ToolLoop`, with those of every adapter. */
export interface ToolLoopOptions extends Omit<AdapterOptions, "store"> {
  /** The name of the conversation; a new one by default. */
  session?: string;
}

/** One answer of a model, whatever the API. */
export interface LoopAnswer {
  readonly type: "answer";
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly usage?: TokenUsage | null;
}

/** What a history shows, in its order: answers, messages to the agent, and results. */
export type LoopEvent =
  | LoopAnswer
  | { readonly type: "said"; readonly text: string }
  | { readonly type: "returned"; readonly id: string; readonly output: unknown; readonly failed?: boolean };

/** Reads and writes the shapes of one API. */
export interface LoopWire {
  /** Reads a response. */
  answer(response: any): LoopAnswer;
  /** Reads the messages of a request. */
  history(messages: readonly any[]): LoopEvent[];
  /** Returns the result of a call as the API takes it. */
  result(call: ToolCall, content: any, failed: boolean): any;
}

/** One answer of the model: what to do with its calls, and whether the loop is over. */
export class Turn<Result> {
  /** The calls of the turn. */
  readonly calls: readonly ToolCall[];
  readonly #adapter: Adapter;
  readonly #watch: Watch;
  readonly #wire: LoopWire;
  readonly #answer: LoopAnswer;

  constructor(adapter: Adapter, watch: Watch, wire: LoopWire, answer: LoopAnswer) {
    this.#adapter = adapter;
    this.#watch = watch;
    this.#wire = wire;
    this.#answer = answer;
    this.calls = answer.calls;
    watch.answered(answer.text, answer.calls, answer.usage);
  }

  /** The decision that ends the loop, if deloop stopped it. */
  get stop(): Decision | null {
    return this.#watch.stop;
  }

  /** What the model said, or why deloop stopped the loop. */
  get text(): string {
    return this.stop === null ? this.#answer.text : messageOf(this.stop);
  }

  /**
   * Returns whether the loop is over: the model made no calls, or deloop stopped it. Ask after the results are in the
   * history, because every call needs one.
   *
   * @throws {StopError} on a stop, with `exitBehavior: "error"`
   */
  done(): boolean {
    if (this.stop !== null && this.#adapter.exitBehavior === "error") throw new StopError(this.stop);
    return this.stop !== null || this.calls.length === 0;
  }

  /** Returns the text that answers a call that must not run, or undefined if it may run. */
  refusal(id: string): string | undefined {
    return this.#watch.refusal(id);
  }

  /**
   * Reports what a call returned, and returns what to put into the history: the same, or with a nudge at its end.
   *
   * For a refused call, pass what `refusal` returned. If the tool threw, pass what it threw as `error`.
   */
  result(id: string, output: any, error?: unknown): any {
    const refused = this.#watch.refusal(id) !== undefined;
    this.#watch.result(id, refused ? { outcome: "denied" } : error === undefined ? { output } : { error });
    const nudge = this.#watch.takeNudge();
    if (nudge === null) return output;
    const placed = withNudge(output, nudge);
    this.#watch.delivered(nudge, placed !== null);
    return placed ?? output;
  }

  /**
   * Runs the calls that may run, all at the same time, and returns the results of all calls for the history.
   *
   * What `run` returns becomes the result, as JSON if it isn't a text. If it throws, the result is the error's text.
   */
  async results(run: RunTool): Promise<Result[]> {
    const outcomes = await Promise.all(this.calls.map((call) => this.#run(call, run)));
    return this.calls.map((call, index) => this.#settled(call, outcomes[index] as Outcome));
  }

  async #run(call: ToolCall, run: RunTool): Promise<Outcome> {
    const refusal = this.refusal(call.id);
    if (refusal !== undefined) return { output: refusal, failed: true };
    try {
      const args = parsedArguments(call.args);
      if (typeof args === "string") throw new SyntaxError("the arguments aren't JSON");
      return { output: await run(call.tool, args), failed: false };
    } catch (error) {
      return { output: `${errorType(error) ?? "Error"}: ${errorText(error)}`, error: error ?? "error", failed: true };
    }
  }

  #settled(call: ToolCall, { output, error, failed }: Outcome): Result {
    const content = typeof output === "string" || Array.isArray(output) ? output : JSON.stringify(plain(output));
    return this.#wire.result(call, this.result(call.id, content, error), failed);
  }
}

interface Outcome {
  readonly output: unknown;
  readonly error?: unknown;
  readonly failed: boolean;
}

/** Guards one conversation. What extends it knows the API. */
export class BaseToolLoop {
  readonly #adapter: Adapter;
  readonly #watch: Watch;

  constructor(options: ToolLoopOptions = {}) {
    const { session, ...others } = options;
    this.#adapter = new Adapter(others, "tool");
    this.#watch = this.#adapter.watch(session);
  }

  /** The decision that stopped the loop, until a person writes again. */
  get decision(): Decision | null {
    return this.#watch.stop;
  }

  /** Reports a message to the agent, if you don't pass the history to `answered`. */
  user(text: string, origin: Origin = "human"): void {
    this.#watch.user(text, origin);
  }

  /** Reports that you cut or summarized the history. If you pass the history to `answered`, deloop finds out itself. */
  compact(): void {
    this.#watch.compact();
  }

  /** Returns the state as JSON, to be stored with the conversation; null if there is none. */
  checkpoint(): string | null {
    return this.#watch.checkpoint();
  }

  /** Continues from a checkpoint. Without one, the first `answered` reads the history that it is given. */
  restore(state: string): boolean {
    return this.#watch.restore(state);
  }

  protected turn<Result>(wire: LoopWire, response: any, messages: readonly any[] | undefined): Turn<Result> {
    const answer = wire.answer(response);
    if (messages !== undefined) this.#adapter.safely("history", () => synchronize(this.#watch, wire, messages), undefined);
    return new Turn<Result>(this.#adapter, this.#watch, wire, answer);
  }
}

/** Reports what the history shows that wasn't reported yet. It may end with the answer that is reported next. */
function synchronize(watch: Watch, wire: LoopWire, messages: readonly any[]): void {
  const events = wire.history(messages);
  if (events.at(-1)?.type === "answer") events.pop();
  const last = events.findLastIndex((event) => event.type === "answer");
  if (watch.turns === 0 && last >= 0) readAgain(watch, events.slice(0, last + 1));
  else if (messages.length < ((watch.notes.messages as number | undefined) ?? 0)) watch.compact();
  watch.notes.messages = messages.length;
  for (const event of events.slice(last + 1)) {
    if (event.type === "said") watch.user(event.text);
    else if (event.type === "returned" && !watch.reported(event.id)) returned(watch, event);
  }
}

/** Reads a conversation from before this process in silence, so that it continues where it was. */
function readAgain(watch: Watch, events: readonly LoopEvent[]): void {
  watch.quiet = true;
  try {
    for (const event of events) {
      if (event.type === "said") watch.user(event.text);
      else if (event.type === "answer") watch.answered(event.text, event.calls);
      else returned(watch, event);
    }
  } finally {
    watch.quiet = false;
  }
}

function returned(watch: Watch, { id, output, failed }: LoopEvent & { type: "returned" }): void {
  const refusal = watch.refusal(id);
  const text = contentText(output);
  const denied = refusal !== undefined && text.startsWith(refusal);
  const result: Returned = { output: withoutNudge(output), ...(failed ? { ok: false } : {}) };
  watch.result(id, denied ? { outcome: "denied" } : result);
  const nudge = watch.takeNudge();
  if (nudge !== null) watch.delivered(nudge, text.endsWith(nudge.text));
}

const OURS = "\n\n[deloop] ";

function withoutNudge(output: unknown): unknown {
  if (Array.isArray(output)) {
    return output.length > 1 && contentText(output.at(-1)?.text).startsWith(OURS.trimStart()) ? output.slice(0, -1) : output;
  }
  const at = typeof output === "string" ? output.lastIndexOf(OURS) : -1;
  return at > 0 ? (output as string).slice(0, at) : output;
}

/** Returns an output with a nudge at its end; null if it's neither a text nor a list of content blocks. */
function withNudge(output: any, nudge: Nudge): any {
  if (typeof output === "string") return `${output}\n\n${nudge.text}`;
  if (!Array.isArray(output)) return null;
  const type = output.some((block) => block?.type === "input_text") ? "input_text" : "text";
  return [...output, { type, text: nudge.text }];
}

/** Returns the text of a content: a text, or a list of parts. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part) => (typeof part?.text === "string" ? [part.text] : [])).join("\n\n");
}
