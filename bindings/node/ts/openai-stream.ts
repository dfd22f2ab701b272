/**
 * Returns the stream of `create({ stream: true })`, to be iterated as before, that keeps the whole answer.
 *
 * @example
 * const stream = collect(await client.chat.completions.create({ ...request, stream: true }));
 * for await (const chunk of stream) show(chunk);
 * messages.push(stream.message);
 * const turn = loop.answered(stream.response, messages);
 */
export function collect<Chunk>(chunks: AsyncIterable<Chunk>): CollectedAnswer<Chunk> {
  return new CollectedAnswer(chunks);
}

/** A stream that keeps the whole answer while it is read. */
export class CollectedAnswer<Chunk> implements AsyncIterable<Chunk> {
  readonly #chunks: AsyncIterable<Chunk>;
  readonly #calls = new Map<number, { id: string; type: "function"; function: { name: string; arguments: string } }>();
  #whole: any;
  #text = "";
  #usage: unknown;
  #model: string | undefined;

  constructor(chunks: AsyncIterable<Chunk>) {
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    for await (const chunk of this.#chunks) {
      this.#add(chunk);
      yield chunk;
    }
  }

  /** The answer so far as a message for the history of Chat Completions. */
  get message(): any {
    const tool_calls = [...this.#calls.entries()].sort(([a], [b]) => a - b).map(([, call]) => call);
    return { role: "assistant", content: this.#text || null, ...(tool_calls.length > 0 ? { tool_calls } : {}) };
  }

  /** The answer so far, as `ToolLoop.answered` takes it. */
  get response(): any {
    return this.#whole ?? { choices: [{ message: this.message }], usage: this.#usage, model: this.#model };
  }

  #add(chunk: any): void {
    if (["response.completed", "response.incomplete", "response.failed"].includes(chunk.type)) this.#whole = chunk.response;
    this.#usage = chunk.usage ?? this.#usage;
    this.#model = chunk.model ?? this.#model;
    const delta = chunk.choices?.[0]?.delta;
    this.#text += delta?.content ?? "";
    for (const part of delta?.tool_calls ?? []) {
      const index: number = part.index ?? 0;
      const call = this.#calls.get(index) ?? { id: "", type: "function", function: { name: "", arguments: "" } };
      this.#calls.set(index, call);
      call.id = part.id ?? call.id;
      call.function.name += part.function?.name ?? "";
      call.function.arguments += part.function?.arguments ?? "";
    }
  }
}
