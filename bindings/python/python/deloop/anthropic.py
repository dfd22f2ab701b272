"""Guards tool loops around the Anthropic client.

    loop = deloop.anthropic.ToolLoop()
    while True:
        response = client.messages.create(model=..., max_tokens=..., messages=messages, tools=...)
        messages.append({"role": "assistant", "content": response.content})
        turn = loop.answered(response, messages)
        if turn.calls:
            messages.append({"role": "user", "content": turn.results(run_tool)})
        if turn.done():
            break

See docs/frameworks/anthropic.md.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from deloop import StopError
from deloop._adapter import Origin, TokenUsage, ToolCall
from deloop._tool_loop import Answer, BaseToolLoop, Event, Returned, Said, Turn, Wire, field_of, joined

__all__ = ["Collected", "StopError", "ToolLoop", "Turn", "collect"]


class ToolLoop(BaseToolLoop):
    """Guards one conversation with the Messages API.

    `exit_behavior`: "end" makes `Turn.done` return True in a stopped loop, "error" makes it raise `deloop.StopError`.
    `on_decision` is called with every decision but `continue`. `session` names the conversation and `agent` a subagent
    in it. The other options are those of `deloop.Guard`; to share one between conversations, pass it as `guard`.
    """

    def answered(self, response: Any, messages: Sequence[Any] | None = None, *, origin: Origin = "human") -> Turn:
        """Reports an answer, before any of its tools runs.

        `response` is a `Message`, what `collect` has collected, or a dict of the same shape. `messages` is the history,
        with or without the answer itself. deloop finds new messages of the person there, and the past of a conversation
        that another process began. Without it, report these with `user`.

        If your program wrote the new messages of the user, an automatic "Continue." for example, pass `origin="harness"`:
        they neither lift a stop nor end an episode.
        """
        if field_of(response, "content") is None:
            raise TypeError(f"answered takes a message, not {type(response).__name__}")
        return self._turn(MESSAGES, response, messages, origin)


class _Messages(Wire):
    def answer(self, response: Any) -> Answer:
        usage = field_of(response, "usage")
        used = None
        if usage is not None:
            names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            used = TokenUsage(*(field_of(usage, name) or 0 for name in names))
        content = field_of(response, "content")
        return Answer(joined(content), _calls(content), used, field_of(response, "model"))

    def history(self, messages: Sequence[Any]) -> list[Event]:
        events: list[Event] = []
        for message in messages:
            content = field_of(message, "content")
            if field_of(message, "role") == "assistant":
                events.append(Answer(joined(content), _calls(content)))
                continue
            blocks = content if isinstance(content, (list, tuple)) else []
            for block in blocks:
                if field_of(block, "type") == "tool_result":
                    failed = field_of(block, "is_error") is True
                    events.append(Returned(field_of(block, "tool_use_id"), field_of(block, "content"), failed))
            said = joined([block for block in blocks if field_of(block, "type") == "text"] if blocks else content)
            if said:
                events.append(Said(said))
        return events

    def result(self, call: ToolCall, content: Any, failed: bool) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": content}
        if failed:
            block["is_error"] = True
        return block


MESSAGES = _Messages()


def _calls(content: Any) -> list[ToolCall]:
    if not isinstance(content, (list, tuple)):
        return []
    blocks = [block for block in content if field_of(block, "type") == "tool_use"]
    return [ToolCall(field_of(block, "id"), field_of(block, "name"), field_of(block, "input")) for block in blocks]


def collect(events: Any) -> Collected:
    """Returns the stream of `create(stream=True)`, to be iterated as before, that keeps the whole answer.

        stream = collect(client.messages.create(..., stream=True))
        for event in stream: ...
        messages.append({"role": "assistant", "content": stream.response["content"]})
        turn = loop.answered(stream.response, messages)

    `client.messages.stream(...)` has the whole answer already: use its `get_final_message()`.
    """
    return Collected(events)


class Collected:
    """A stream that keeps the whole answer while it's read. Iterate it with `for` or `async for`, as the client's."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, str] = {}
        self._usage: dict[str, int] = {}
        self._model: str | None = None

    def __iter__(self) -> Iterator[Any]:
        events: Iterable[Any] = self._events
        for event in events:
            self._add(event)
            yield event

    async def __aiter__(self) -> AsyncIterator[Any]:
        events: AsyncIterable[Any] = self._events
        async for event in events:
            self._add(event)
            yield event

    @property
    def response(self) -> dict[str, Any]:
        """The answer so far, as `ToolLoop.answered` takes it."""
        content = [self._blocks[index] for index in sorted(self._blocks)]
        return {"role": "assistant", "content": content, "usage": self._usage, "model": self._model}

    def _add(self, event: Any) -> None:
        kind, index = field_of(event, "type"), field_of(event, "index")
        if kind == "message_start":
            message = field_of(event, "message")
            self._model = field_of(message, "model")
            self._count(field_of(message, "usage"))
        elif kind == "message_delta":
            self._count(field_of(event, "usage"))
        elif kind == "content_block_start":
            self._blocks[index] = _as_dict(field_of(event, "content_block"))
        elif kind == "content_block_delta":
            self._add_delta(index, field_of(event, "delta"))

    def _add_delta(self, index: int, delta: Any) -> None:
        block, kind = self._blocks[index], field_of(delta, "type")
        if kind == "input_json_delta":
            self._json[index] = self._json.get(index, "") + field_of(delta, "partial_json")
            try:
                block["input"] = json.loads(self._json[index])
            except ValueError:
                pass
            return
        for delta_kind, name in (("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")):
            if kind == delta_kind:
                block[name] = (block.get(name) or "") + field_of(delta, name)

    def _count(self, usage: Any) -> None:
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            self._usage[name] = field_of(usage, name) or self._usage.get(name, 0)


def _as_dict(block: Any) -> dict[str, Any]:
    return dict(block) if isinstance(block, dict) else dict(block.model_dump(exclude_none=True))
