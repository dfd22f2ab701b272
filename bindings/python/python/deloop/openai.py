"""Guards tool loops around the OpenAI client: Chat Completions and Responses.

    loop = deloop.openai.ToolLoop()
    while True:
        response = client.chat.completions.create(model=..., messages=messages, tools=...)
        messages.append(response.choices[0].message)
        turn = loop.answered(response, messages)
        messages += turn.results(run_tool)
        if turn.done():
            break

See docs/frameworks/openai.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from deloop import StopError
from deloop._adapter import Origin, TokenUsage, ToolCall
from deloop._tool_loop import Answer, BaseToolLoop, Event, Returned, Said, Turn, Wire, field_of, joined

__all__ = ["Collected", "StopError", "ToolLoop", "Turn", "collect"]


class ToolLoop(BaseToolLoop):
    """Guards one conversation with Chat Completions or Responses.

    `exit_behavior`: "end" makes `Turn.done` return True in a stopped loop, "error" makes it raise `deloop.StopError`.
    `on_decision` is called with every decision but `continue`. `session` names the conversation and `agent` a subagent
    in it. The other options are those of `deloop.Guard`; to share one between conversations, pass it as `guard`.
    """

    def answered(self, response: Any, messages: Sequence[Any] | None = None, *, origin: Origin = "human") -> Turn:
        """Reports an answer, before any of its tools runs.

        `response` is a `ChatCompletion`, a `Response`, what `collect` has collected, or a dict of the same shape.
        `messages` is the history (`input` of Responses), with or without the answer itself. deloop finds new messages of
        the person there, and the past of a conversation that another process began. Without it, report these with `user`.

        If your program wrote the new messages of the user, an automatic "Continue." for example, pass `origin="harness"`:
        they neither lift a stop nor end an episode.
        """
        if field_of(response, "choices") is not None:
            return self._turn(CHAT, response, messages, origin)
        if field_of(response, "output") is not None:
            return self._turn(RESPONSES, response, messages, origin)
        raise TypeError(f"answered takes a chat completion or a response, not {type(response).__name__}")


class _Chat(Wire):
    def answer(self, response: Any) -> Answer:
        choices = field_of(response, "choices")
        message = field_of(choices[0], "message") if choices else {}
        return Answer(_said(message), _chat_calls(message), _chat_usage(response), field_of(response, "model"))

    def history(self, messages: Sequence[Any]) -> list[Event]:
        events: list[Event] = []
        for message in messages:
            role = field_of(message, "role")
            if role == "user":
                events.append(Said(joined(field_of(message, "content"))))
            elif role == "assistant":
                events.append(Answer(_said(message), _chat_calls(message)))
            elif role == "tool":
                events.append(Returned(field_of(message, "tool_call_id"), field_of(message, "content")))
        return events

    def result(self, call: ToolCall, content: Any, failed: bool) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call.id, "content": content}


class _Responses(Wire):
    def answer(self, response: Any) -> Answer:
        items = field_of(response, "output") or []
        usage = field_of(response, "usage")
        cached = field_of(field_of(usage, "input_tokens_details"), "cached_tokens") or 0
        spent = (field_of(usage, "input_tokens") or 0, field_of(usage, "output_tokens") or 0)
        used = TokenUsage(max(0, spent[0] - cached), spent[1], cached) if usage is not None else None
        return Answer(_items_text(items), _items_calls(items), used, field_of(response, "model"))

    def history(self, messages: Sequence[Any]) -> list[Event]:
        events: list[Event] = []
        answer: list[Any] = []
        for item in [*messages, None]:
            kind, role = field_of(item, "type") or "message", field_of(item, "role")
            if item is not None and (role == "assistant" or kind in ("function_call", "custom_tool_call", "reasoning")):
                answer.append(item)
                continue
            if answer:
                events.append(Answer(_items_text(answer), _items_calls(answer)))
                answer = []
            if kind in ("function_call_output", "custom_tool_call_output"):
                events.append(Returned(field_of(item, "call_id"), field_of(item, "output")))
            elif role == "user":
                events.append(Said(joined(field_of(item, "content"))))
        return events

    def result(self, call: ToolCall, content: Any, failed: bool) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call.id, "output": content}


CHAT = _Chat()
RESPONSES = _Responses()


def _said(message: Any) -> str:
    return joined(field_of(message, "content")) or field_of(message, "refusal") or ""


def _chat_calls(message: Any) -> list[ToolCall]:
    calls = []
    for call in field_of(message, "tool_calls") or []:
        function = field_of(call, "function")
        custom = field_of(call, "custom")
        if function is not None:
            calls.append(ToolCall(field_of(call, "id"), field_of(function, "name"), field_of(function, "arguments")))
        elif custom is not None:
            calls.append(ToolCall(field_of(call, "id"), field_of(custom, "name"), {"input": field_of(custom, "input")}))
    return calls


def _chat_usage(response: Any) -> TokenUsage | None:
    usage = field_of(response, "usage")
    if usage is None:
        return None
    cached = field_of(field_of(usage, "prompt_tokens_details"), "cached_tokens") or 0
    return TokenUsage(
        max(0, (field_of(usage, "prompt_tokens") or 0) - cached), field_of(usage, "completion_tokens") or 0, cached
    )


def _items_text(items: Sequence[Any]) -> str:
    return "\n".join(
        filter(None, (joined(field_of(item, "content")) for item in items if field_of(item, "role") == "assistant"))
    )


def _items_calls(items: Sequence[Any]) -> list[ToolCall]:
    calls = []
    for item in items:
        if field_of(item, "type") == "function_call":
            calls.append(ToolCall(field_of(item, "call_id"), field_of(item, "name"), field_of(item, "arguments")))
        elif field_of(item, "type") == "custom_tool_call":
            calls.append(ToolCall(field_of(item, "call_id"), field_of(item, "name"), {"input": field_of(item, "input")}))
    return calls


def collect(chunks: Any) -> Collected:
    """Returns the stream of `create(stream=True)`, to be iterated as before, that keeps the whole answer.

    stream = collect(client.chat.completions.create(..., stream=True))
    for chunk in stream: ...
    messages.append(stream.message)
    turn = loop.answered(stream.response, messages)
    """
    return Collected(chunks)


class Collected:
    """A stream that keeps the whole answer while it's read. Iterate it with `for` or `async for`, as the client's."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks
        self._whole: Any = None
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self._model: str | None = None

    def __iter__(self) -> Iterator[Any]:
        chunks: Iterable[Any] = self._chunks
        for chunk in chunks:
            self._add(chunk)
            yield chunk

    async def __aiter__(self) -> AsyncIterator[Any]:
        chunks: AsyncIterable[Any] = self._chunks
        async for chunk in chunks:
            self._add(chunk)
            yield chunk

    @property
    def message(self) -> dict[str, Any]:
        """The answer so far as a message for the history of Chat Completions."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text) or None}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return message

    @property
    def response(self) -> Any:
        """The answer so far, as `ToolLoop.answered` takes it."""
        if self._whole is not None:
            return self._whole
        return {"choices": [{"message": self.message}], "usage": self._usage, "model": self._model}

    def _add(self, chunk: Any) -> None:
        if field_of(chunk, "type") in ("response.completed", "response.incomplete", "response.failed"):
            self._whole = field_of(chunk, "response")
        self._usage = field_of(chunk, "usage") or self._usage
        self._model = field_of(chunk, "model") or self._model
        for choice in field_of(chunk, "choices") or []:
            delta = field_of(choice, "delta")
            self._text.append(field_of(delta, "content") or "")
            for part in field_of(delta, "tool_calls") or []:
                self._add_call(part)

    def _add_call(self, part: Any) -> None:
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(field_of(part, "index") or 0, empty)
        function = field_of(part, "function")
        call["id"] = field_of(part, "id") or call["id"]
        call["function"]["name"] += field_of(function, "name") or ""
        call["function"]["arguments"] += field_of(function, "arguments") or ""
