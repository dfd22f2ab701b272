import { Command } from "@langchain/langgraph";
import { AIMessage } from "langchain";
import type { Adapter } from "./adapter.js";
import { callsOf, returnedBy, textOf, usageOf } from "./langchain-messages.js";
import type { Watch } from "./watch.js";

declare const crypto: { randomUUID(): string };

/** What the graph's state keeps for deloop, under `_deloop`: private, so not in the output of a run. */
interface KeptState {
  readonly session: string;
  /** Differs with each write, so that a state of another process, or of an earlier point in time, is noticed. */
  readonly mark: string;
  readonly state: string;
}

type SessionOption = string | ((runtime: any) => string | null | undefined) | undefined;

/** Follows the threads of one agent: turns its requests into steps and keeps the state with the checkpointer. */
export class Threads {
  readonly #adapter: Adapter;
  readonly #session: SessionOption;

  constructor(adapter: Adapter, session: SessionOption) {
    this.#adapter = adapter;
    this.#session = session;
  }

  /** Reports what is new in the conversation before the model is asked. */
  asked(request: any): Watch {
    const watch = this.#watchOf(request);
    const messages: readonly any[] = request.messages;
    if (messages.length < ((watch.notes.messages as number | undefined) ?? 0)) watch.compact();
    watch.notes.messages = messages.length;
    for (const id of watch.open) {
      const message = messages.findLast((each) => each.tool_call_id === id);
      if (message !== undefined) watch.result(id, watch.refusal(id) === undefined ? returnedBy(message, id) : { outcome: "denied" });
    }
    this.#newText(watch, messages);
    return watch;
  }

  /** Reports the model's answer. Returns it with the state to keep. */
  answered(watch: Watch, response: any): any {
    const message = AIMessage.isInstance(response) ? response : response?.messages?.find(AIMessage.isInstance);
    if (message === undefined) return response;
    watch.answered(textOf(message.content), callsOf(message), usageOf(message));
    if (message !== response) return response;
    const mark = crypto.randomUUID();
    const before = watch.notes.mark;
    watch.notes.mark = mark;
    const state = watch.checkpoint();
    if (state === null) {
      watch.notes.mark = before;
      return response;
    }
    const _deloop: KeptState = { session: watch.session, mark, state };
    return new Command({ update: { _deloop } });
  }

  /** Returns the watch of a call that is about to run. */
  calling(request: any): Watch {
    const watch = this.#watchOf(request);
    const { id } = request.toolCall;
    if (watch.calls.includes(id)) return watch;
    const messages: readonly any[] = request.state?.messages ?? [];
    const turn = messages.findLast((message) => message.tool_calls?.some((call: any) => call.id === id));
    if (turn !== undefined) watch.answered(textOf(turn.content), callsOf(turn), usageOf(turn));
    return watch;
  }

  /** Reports a message to the agent. One that follows results directly is by the program, not by a person. */
  #newText(watch: Watch, messages: readonly any[]): void {
    const last = messages.at(-1);
    if (last?.getType?.() !== "human") return;
    const text = textOf(last.content);
    const key = last.id ?? `${messages.length}: ${text.slice(0, 200)}`;
    if (watch.notes.user === key) return;
    watch.notes.user = key;
    watch.user(text, messages.at(-2)?.getType?.() === "tool" ? "harness" : "human");
  }

  #watchOf(request: any): Watch {
    const kept: KeptState | undefined = request.state?._deloop;
    const given = typeof this.#session === "function" ? this.#session(request.runtime) : this.#session;
    const watch = this.#adapter.watch(given ?? threadOf(request.runtime) ?? kept?.session);
    if (kept !== undefined) watch.restoreIfOther(kept.state);
    return watch;
  }
}

/** Returns the thread of a run. An agent inside a tool of another runs on the same thread, but is a session of its own. */
function threadOf(runtime: any): string | undefined {
  const { thread_id: thread, checkpoint_ns: place = "" } = runtime?.configurable ?? {};
  if (thread === undefined || thread === null) return undefined;
  const outer = String(place).split("|").slice(0, -1).join("|");
  return outer === "" ? String(thread) : `${thread}/${outer}`;
}
