"""deloop for Pydantic AI: `Agent(model, capabilities=[Deloop()])`.

The message history is the record: before each request everything new in it is reported, and a run that continues a stored
history reports that history first. So a resumed run stands on the rung where it stood, without any storage of its own.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack, cast
from weakref import WeakKeyDictionary

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import AgentRunError, SkipModelRequest, ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT, RunContext, ToolDefinition

from deloop import Decision, Guard, StopError
from deloop._adapter import Adapter, ExitBehavior, GuardOptions, Nudge, OnDecision, Outcome, TokenUsage, ToolCall, Watch, stop_text
from deloop._fork import survive_fork

__all__ = ["Deloop", "DeloopStop"]

MARK = "[deloop]"
MODEL = "deloop"

T = TypeVar("T")


class DeloopStop(StopError, AgentRunError):
    """Ends a run with `exit_behavior="error"`. Has the `decision`; `capture_run_messages` has the messages so far."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        AgentRunError.__init__(self, message or stop_text(decision))
        StopError.__init__(self, decision, self.message)


class Deloop(AbstractCapability[AgentDepsT]):
    """Detects loops of an agent, nudges the model, refuses calls and ends the run.

    Takes a `guard` to share, or the options of one. The session is the conversation id unless you pass `session`.
    A stop is the run's output with `exit_behavior="end"`, or a `DeloopStop` with "error"; an agent whose output can't be
    text always gets the `DeloopStop`.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        session: str | None = None,
        exit_behavior: ExitBehavior = "end",
        on_decision: OnDecision | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        if guard is None:
            options.setdefault("deliver", "user")
        self.adapter = Adapter(guard, session=session, exit_behavior=exit_behavior, on_decision=on_decision, **options)
        self._sessions = _Sessions(self.adapter)
        self._run: _Run | None = None

    def get_ordering(self) -> CapabilityOrdering:
        """Puts deloop outermost, so that a call which another capability retries counts once."""
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractCapability[AgentDepsT]:
        """Returns a copy that watches this run."""
        mine = copy.copy(self)
        mine._run = self.adapter.safely("run", lambda: self._sessions.enter(ctx.conversation_id, ctx.run_id), None)
        return mine

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: Callable[[], Any]) -> AgentRunResult[Any]:
        """Frees the session when the run is over."""
        try:
            result: AgentRunResult[Any] = await handler()
            return result
        finally:
            self._safely("end of run", lambda run: self._sessions.leave(run), None)

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Reports what is new in the history, then ends the run or adds the nudges to this request."""
        asked = request_context.model_request_parameters
        finals = {tool.name for tool in asked.output_tools}
        stop = self._safely("history", lambda run: run.read(ctx.messages, finals), None)
        if stop is not None:
            if self.adapter.exit_behavior == "error" or not (asked.allow_text_output and asked.output_mode in ("text", "tool")):
                raise DeloopStop(stop)
            raise SkipModelRequest(ModelResponse(parts=[TextPart(stop_text(stop))], model_name=MODEL))
        self._safely("nudge", lambda run: run.deliver(ctx), None)
        return request_context

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Reports the model's answer before any of its tools runs."""
        finals = {tool.name for tool in request_context.model_request_parameters.output_tools}
        self._safely("request", lambda run: run.sent(request_context.messages, ctx.messages), None)
        self._safely("turn", lambda run: run.answered(response, finals), None)
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Any],
    ) -> Any:
        """Refuses the calls that the guard blocks; `ToolFailed` doesn't use up the tool's retries."""
        refusal = self._safely("call", lambda run: run.watch.refusal(call.tool_call_id), None)
        if refusal is not None:
            raise ToolFailed(refusal)
        return await handler(args)

    def _safely(self, kind: str, work: Callable[[_Run], T], neutral: T) -> T:
        run = self._run
        return neutral if run is None else self.adapter.safely(kind, lambda: work(run), neutral)


class _Run:
    """One run of an agent: how far its history has been reported, and the nudges that aren't placed yet."""

    def __init__(self, watch: Watch, progress: _Progress) -> None:
        self.watch = watch
        self.progress = progress
        self.nudges: list[Nudge] = []
        self._sent = 0
        self._read = 0

    def read(self, messages: Sequence[ModelMessage], finals: set[str]) -> Decision | None:
        """Reports the messages that are new, and returns the stop if there is one."""
        answers = [index for index, message in enumerate(messages) if isinstance(message, ModelResponse)]
        start = self.progress.end_in(messages)
        replayed = answers[-1] if start is None and answers else -1
        if start is None and not self.progress.shared:
            self._restart()
        elif start is None and self.progress.latest is not None:
            start, replayed = replayed + 1, -1
        for index in range(start or 0, len(messages)):
            self.watch.quiet = index <= replayed or (start is None and bool(_nudges_after(messages, index)))
            self._message(messages, index, finals)
        self.watch.quiet = False
        self._read = len(messages)
        return self.watch.stop

    def _restart(self) -> None:
        """Forgets the session: this history is new here, or another branch of it, and is reported from the beginning."""
        adapter, session = self.watch.adapter, self.watch.session
        adapter.guard.reset(session)
        adapter.forget(self.watch)
        self.watch = adapter.watch(session)

    def _message(self, messages: Sequence[ModelMessage], index: int, finals: set[str]) -> None:
        message = messages[index]
        if isinstance(message, ModelResponse):
            if message.model_name != MODEL:
                self.answered(message, finals)
            return
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                self._result(part, _nudges_after(messages, index))
            elif isinstance(part, RetryFeedbackPart):
                self.watch.user(_text(part.content), "harness")
            elif isinstance(part, UserPromptPart) and not _text(part.content).startswith(MARK):
                self.watch.user(_text(part.content))

    def answered(self, response: ModelResponse, finals: set[str]) -> None:
        """Reports an answer of the model. The calls of output tools are its text: they end the run and can't be refused."""
        calls = [part for part in response.tool_calls if part.tool_name not in finals]
        text = [response.text or "", *(part.args_as_json_str() for part in response.tool_calls if part.tool_name in finals)]
        usage = response.usage
        cached, written = usage.cache_read_tokens, usage.cache_write_tokens
        self.progress.latest = _key(response)
        self.progress.open_calls = {part.tool_call_id for part in calls}
        self.watch.answered(
            "\n".join(filter(None, text)),
            [ToolCall(part.tool_call_id, part.tool_name, _args(part)) for part in calls],
            TokenUsage(max(0, usage.input_tokens - cached - written), usage.output_tokens, cached, written),
            response.model_name,
        )

    def _result(self, part: ToolReturnPart, placed: str) -> None:
        if part.tool_call_id not in self.progress.open_calls:
            return
        self.progress.open_calls.discard(part.tool_call_id)
        outcome, ok = _outcome(part)
        nudge = self.watch.result(part.tool_call_id, part.content, ok=ok, outcome=outcome)
        if nudge is not None and str(nudge) in placed:
            self.watch.delivered(nudge)
        elif nudge is not None:
            self.nudges.append(nudge)

    def deliver(self, ctx: RunContext[Any]) -> None:
        """Adds the nudges to the request that is being prepared, and with it to the history."""
        while self.nudges:
            ctx.enqueue(str(self.nudges[0]))
            self.watch.delivered(self.nudges.pop(0))

    def sent(self, request: Sequence[ModelMessage], messages: Sequence[ModelMessage]) -> None:
        """Reports what was enqueued for this request after `read`, and whether the model got less than before."""
        for index in range(self._read, len(messages)):
            if isinstance(messages[index], ModelRequest):
                self._message(messages, index, set())
        if len(request) < self._sent:
            self.watch.compact()
        self._sent = len(request)

    def close(self) -> None:
        """Reports the nudges that no request carried."""
        for nudge in self.nudges:
            self.watch.delivered(nudge, ok=False)
        self.nudges.clear()


class _Progress:
    """How far the history of a session has been reported: up to its latest answer."""

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        """Whether the session was named by the caller, so that several conversations may belong to it."""
        self.latest: tuple[object, ...] | None = None
        self.open_calls: set[str] = set()

    def end_in(self, messages: Sequence[ModelMessage]) -> int | None:
        """Returns where a history continues after the latest answer, or None if it doesn't hold that answer."""
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if isinstance(message, ModelResponse) and _key(message) == self.latest:
                return index + 1
        return None


class _Sessions:
    """Knows which session each run belongs to. Two runs at a time never share one."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._progress: WeakKeyDictionary[Watch, _Progress] = WeakKeyDictionary()
        survive_fork(self)

    def after_fork(self) -> None:
        """Makes a lock that no thread holds: in a forked process, the thread that held it doesn't exist."""
        self._lock = threading.Lock()

    def enter(self, conversation: str | None, run: str | None) -> _Run:
        """Returns the watch of a run that begins."""
        session = self.adapter.session or conversation or f"run-{run}"
        with self._lock:
            if session in self._busy:
                session = f"{session}/{run}"
            self._busy.add(session)
            watch = self.adapter.watch(session)
            return _Run(watch, self._progress.setdefault(watch, _Progress(session == self.adapter.session)))

    def leave(self, run: _Run) -> None:
        """Frees the session of a run that is over."""
        run.close()
        with self._lock:
            self._busy.discard(run.watch.session)
            self._progress[run.watch] = run.progress


def _key(response: ModelResponse) -> tuple[object, ...]:
    return (response.timestamp, response.text, *(part.tool_call_id for part in response.tool_calls))


def _args(part: ToolCallPart) -> object:
    """Returns the arguments as an object, or as the text that the model wrote if that isn't one."""
    try:
        return json.loads(part.args) if isinstance(part.args, str) else part.args
    except ValueError:
        return part.args


def _outcome(part: ToolReturnPart) -> tuple[Outcome | None, bool | None]:
    """Returns how a call ended, as far as Pydantic AI knows: of a tool that returned, only its words may say that it failed."""
    if part.outcome == "denied" or (isinstance(part.content, str) and part.content.startswith(MARK)):
        return "denied", False
    if part.outcome == "interrupted":
        return "cancelled", False
    if part.outcome == "failed":
        return "error", False
    if part.outcome == "retried":
        return ("error" if part.retry is None or part.retry.cause == "model_retry" else "invalid"), False
    return None, None


def _nudges_after(messages: Sequence[ModelMessage], index: int) -> str:
    """Returns the texts of deloop between this request and the next answer."""
    found: list[str] = []
    for message in messages[index:]:
        if not isinstance(message, ModelRequest):
            break
        found += [_text(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
    return "\n".join(text for text in found if text.startswith(MARK))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast(Sequence[object], content) if isinstance(content, Sequence) else [content]
    return "\n".join(part if isinstance(part, str) else str(getattr(part, "content", None) or "") for part in parts)
