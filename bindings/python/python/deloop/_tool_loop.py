"""Guards loops that people write themselves around a model's client.

Nothing here imports a client: answers may be objects of the client, or dicts of the same shape.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from deloop import Decision, Guard, StopError
from deloop._adapter import (
    Adapter,
    ExitBehavior,
    GuardOptions,
    Nudge,
    OnDecision,
    Origin,
    TokenUsage,
    ToolCall,
    Watch,
    stop_text,
)

RunTool = Callable[[str, Any], object]
"""Runs a tool: takes its name and its arguments, and returns its output."""
OURS = "\n\n[deloop] "


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model, whatever the API."""

    text: str
    calls: Sequence[ToolCall]
    usage: TokenUsage | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message to the agent, as the history shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Returned:
    """A result, as the history shows it."""

    call_id: str
    output: Any
    failed: bool = False
    """Whether a field beside the output says that the call failed."""


Event = Answer | Said | Returned


class Wire(ABC):
    """Knows the shapes of one API."""

    @abstractmethod
    def answer(self, response: Any) -> Answer:
        """Reads a response."""

    @abstractmethod
    def history(self, messages: Sequence[Any]) -> list[Event]:
        """Reads the messages of a request."""

    @abstractmethod
    def result(self, call: ToolCall, content: Any, failed: bool) -> dict[str, Any]:
        """Returns the result of a call as the API takes it."""


class Turn:
    """One answer of the model: what to do with its calls, and whether the loop is over."""

    def __init__(self, watch: Watch, wire: Wire, answer: Answer) -> None:
        self._watch = watch
        self._wire = wire
        self._answer = answer
        self._plan = watch.answered(answer.text, answer.calls, answer.usage, answer.model)

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls of the turn."""
        return self._answer.calls

    @property
    def stop(self) -> Decision | None:
        """The decision that ends the loop, if deloop stopped it."""
        return self._watch.stop

    @property
    def text(self) -> str:
        """What the model said, or why deloop stopped the loop."""
        return self._answer.text if self.stop is None else stop_text(self.stop)

    def done(self) -> bool:
        """Returns whether the loop is over: the model made no calls, or deloop stopped it.

        With `exit_behavior="error"` a stop raises `deloop.StopError` instead. Ask after the results are in the history:
        every call needs one.
        """
        if self.stop is not None and self._watch.adapter.exit_behavior == "error":
            raise StopError(self.stop)
        return self.stop is not None or not self.calls

    def nudge(self) -> str | None:
        """Returns what to tell the model after an answer without calls, for programs that let it continue by themselves.

        messages.append({"role": "user", "content": turn.nudge() or "Continue."})
        """
        nudge = self._watch.take_nudge() if not self.calls else None
        if nudge is None:
            return None
        self._watch.notes["nudge"] = str(nudge)
        self._watch.delivered(nudge)
        return str(nudge)

    def refusal(self, call_id: str) -> str | None:
        """Returns the text that answers a call that must not run, or None if it may run."""
        return self._watch.refusal(call_id)

    def result(self, call_id: str, output: Any, *, error: BaseException | None = None, ok: bool | None = None) -> Any:
        """Reports what a call returned, and returns what to put into the history: the same, or with a nudge at the end.

        For a refused call, pass what `refusal` returned. If the tool raised, pass the exception as `error`.
        """
        if self._watch.refusal(call_id) is not None:
            nudge = self._watch.result(call_id, outcome="denied")
        else:
            nudge = self._watch.result(call_id, output, error=error, ok=ok)
        if nudge is None:
            return output
        placed = with_nudge(output, nudge)
        self._watch.delivered(nudge, ok=placed is not None)
        return output if placed is None else placed

    def results(self, run: RunTool) -> list[dict[str, Any]]:
        """Runs the calls that may run, one after the other, and returns the results of all for the history.

        `run` takes a tool's name and its arguments. What it returns becomes the result, as JSON if it isn't a text. If it
        raises, the result is the error's type and text.
        """
        return [self._settled(call, self._run(call, run)) for call in self.calls]

    async def aresults(self, run: Callable[[str, Any], Awaitable[object]]) -> list[dict[str, Any]]:
        """Does the same as `results` with a coroutine function, and runs the calls at the same time."""
        outcomes = await asyncio.gather(*(self._arun(call, run) for call in self.calls))
        return [self._settled(call, outcome) for call, outcome in zip(self.calls, outcomes, strict=True)]

    def _run(self, call: ToolCall, run: RunTool) -> tuple[Any, Exception | None]:
        refusal = self.refusal(call.id)
        if refusal is not None:
            return refusal, None
        try:
            output = run(call.tool, arguments(call))
            if inspect.isawaitable(output):
                raise TypeError("the tool is a coroutine function: use aresults")
            return output, None
        except Exception as error:
            return f"{type(error).__name__}: {error}", error

    async def _arun(self, call: ToolCall, run: Callable[[str, Any], Awaitable[object]]) -> tuple[Any, Exception | None]:
        refusal = self.refusal(call.id)
        if refusal is not None:
            return refusal, None
        try:
            return await run(call.tool, arguments(call)), None
        except Exception as error:
            return f"{type(error).__name__}: {error}", error

    def _settled(self, call: ToolCall, outcome: tuple[Any, Exception | None]) -> dict[str, Any]:
        output, error = outcome
        if not isinstance(output, (str, list)):
            output = json.dumps(output, default=str, ensure_ascii=False)
        content = self.result(call.id, output, error=error)
        return self._wire.result(call, content, failed=error is not None or self.refusal(call.id) is not None)


class BaseToolLoop:
    """Guards one conversation. Subclasses know the API."""

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        session: str | None = None,
        agent: str | None = None,
        exit_behavior: ExitBehavior = "end",
        on_decision: OnDecision | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        adapter = Adapter(guard, session=session, exit_behavior=exit_behavior, on_decision=on_decision, **options)
        self._watch = adapter.watch(agent=agent)

    @property
    def guard(self) -> Guard:
        """The guard that decides."""
        return self._watch.adapter.guard

    @property
    def stop(self) -> Decision | None:
        """The decision that ended the loop, until a person writes again."""
        return self._watch.stop

    def user(self, text: str, origin: Origin = "human") -> None:
        """Reports a message to the agent, if you don't pass the history to `answered`."""
        self._watch.user(text, origin)

    def compact(self) -> None:
        """Reports that you cut or summarized the history. `answered` finds out if you pass it a shorter one."""
        self._watch.compact()

    def checkpoint(self) -> str | None:
        """Returns the state as JSON text, to be stored with the conversation."""
        state = self._watch.checkpoint()
        return None if state is None else json.dumps(state)

    def restore(self, text: str) -> bool:
        """Continues from a checkpoint. Without one, the first `answered` reads the history that it is given."""
        state = self._watch.adapter.safely("restore", lambda: json.loads(text), None)
        return isinstance(state, dict) and self._watch.restore(state)

    def _turn(self, wire: Wire, response: Any, messages: Sequence[Any] | None, origin: Origin) -> Turn:
        answer = wire.answer(response)
        if messages is not None:
            self._watch.adapter.safely("history", lambda: synchronize(self._watch, wire, messages, origin), None)
        return Turn(self._watch, wire, answer)


def synchronize(watch: Watch, wire: Wire, messages: Sequence[Any], origin: Origin) -> None:
    """Reports what the history shows that wasn't reported yet. It may end with the answer that is reported next."""
    events = wire.history(messages)
    if events and isinstance(events[-1], Answer):
        events.pop()
    last = max((n for n, event in enumerate(events) if isinstance(event, Answer)), default=-1)
    with watch.lock:
        if watch.turns == 0 and last >= 0:
            _read_again(watch, events[: last + 1], origin)
        elif len(messages) < watch.notes.get("length", 0):
            watch.compact()
        watch.notes["length"] = len(messages)
        for event in events[last + 1 :]:
            if isinstance(event, Said):
                _said(watch, event, origin)
            elif isinstance(event, Returned) and not watch.reported(event.call_id):
                _returned(watch, event)


def _said(watch: Watch, event: Said, origin: Origin) -> None:
    """Reports a message to the agent, unless deloop wrote it."""
    nudge = watch.take_nudge()
    if nudge is not None and event.text == nudge:
        watch.delivered(nudge)
        return
    watch.keep(nudge)
    if event.text != watch.notes.get("nudge"):
        watch.user(event.text, origin)


def _read_again(watch: Watch, events: Sequence[Event], origin: Origin) -> None:
    """Reads a conversation from before this process in silence, so that it continues where it was."""
    quiet, watch.quiet = watch.quiet, True
    try:
        for event in events:
            if isinstance(event, Said):
                _said(watch, event, origin)
            elif isinstance(event, Answer):
                watch.answered(event.text, event.calls)
            else:
                _returned(watch, event)
    finally:
        watch.quiet = quiet


def _returned(watch: Watch, event: Returned) -> None:
    refusal = watch.refusal(event.call_id)
    if refusal is not None and _text_of(event.output).startswith(refusal):
        watch.delivered(watch.result(event.call_id, outcome="denied"))
        return
    nudge = watch.result(event.call_id, _without_nudge(event.output), ok=False if event.failed else None)
    placed = nudge is not None and _text_of(event.output).endswith(nudge)
    watch.delivered(nudge, ok=placed)


def _text_of(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return "\n\n".join(str(block.get("text", "")) for block in output if isinstance(block, dict))
    return ""


def _without_nudge(output: Any) -> Any:
    if isinstance(output, str):
        return output.rpartition(OURS)[0] or output
    if isinstance(output, list) and len(output) > 1 and f"\n\n{_text_of(output[-1:])}".startswith(OURS):
        return output[:-1]
    return output


def with_nudge(output: Any, nudge: Nudge) -> Any | None:
    """Returns an output with a nudge at its end, or None if it's neither a text nor a list of content blocks."""
    if isinstance(output, str):
        return f"{output}\n\n{nudge}"
    if isinstance(output, list):
        return [*output, {"type": "text", "text": str(nudge)}]
    return None


def arguments(call: ToolCall) -> Any:
    """Returns the arguments of a call as an object; a text that isn't JSON raises ValueError."""
    return json.loads(call.args or "{}") if isinstance(call.args, str) else call.args


def field_of(value: Any, name: str) -> Any:
    """Returns a field of an object of the client or of a dict, or None."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def joined(content: Any) -> str:
    """Returns the text of a message's content, which is a text or a list of parts."""
    if not isinstance(content, (list, tuple)):
        return content if isinstance(content, str) else ""
    return "\n".join(text for part in content if isinstance(text := field_of(part, "text"), str))
