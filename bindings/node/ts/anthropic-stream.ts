/**
 * Returns the stream of `create({ stream: true })`, to be iterated as before, that keeps the whole answer.
 * `client.messages.stream(…)` has it already: use its `finalMessage()`.
 *
 * @example
 * const stream = collect(await client.messages.create({ ...request, stream: true }));
 * for await (const event of stream) show(event);
 * messages.push({ role: "assistant", content: stream.response.content });
 * const turn = loop.answered(stream.response, messages);
 */
export function collect<Event>(events: AsyncIterable<Event>): CollectedAnswer<Event> {
  return new CollectedAnswer(events);
}

/** A stream that keeps the whole answer while it is read. */
export class CollectedAnswer<Event> implements AsyncIterable<Event> {
  readonly #events: AsyncIterable<Event>;
  readonly #blocks: any[] = [];
  readonly #json = new Map<number, string>();
  #message: any = {};

  constructor(events: AsyncIterable<Event>) {
    this.#events = events;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    for await (const event of this.#events) {
      this.#add(event);
      yield event;
    }
  }

  /** The answer so far, as `ToolLoop.answered` takes it. */
  get response(): any {
    return { ...this.#message, role: "assistant", content: this.#blocks };
  }

  #add(event: any): void {
    if (event.type === "message_start") this.#message = { ...event.message };
    if (event.type === "message_delta") {
      this.#message = { ...this.#message, ...event.delta, usage: { ...this.#message.usage, ...event.usage } };
    }
    if (event.type === "content_block_start") this.#blocks[event.index] = { ...event.content_block };
    if (event.type === "content_block_delta") this.#addDelta(event.index, event.delta);
    if (event.type === "content_block_stop" && this.#json.has(event.index)) {
      this.#blocks[event.index].input = JSON.parse(this.#json.get(event.index) || "{}");
    }
  }

  #addDelta(index: number, delta: any): void {
    const block = this.#blocks[index];
    if (delta.type === "input_json_delta") this.#json.set(index, (this.#json.get(index) ?? "") + delta.partial_json);
    if (delta.type === "text_delta") block.text += delta.text;
    if (delta.type === "thinking_delta") block.thinking = (block.thinking ?? "") + delta.thinking;
    if (delta.type === "signature_delta") block.signature = (block.signature ?? "") + delta.signature;
  }
}
