"""Guards LangChain agents and LangGraph graphs.

    agent = create_agent(model, tools, middleware=[DeloopMiddleware()])

`wrap_tool_call` is for graphs of your own. See docs/frameworks/langchain.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired, Unpack

from deloop import Decision, Guard, StopError
from deloop._adapter import Adapter, ExitBehavior, GuardOptions, OnDecision, Watch

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelCallResult,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
    from langgraph.config import get_config
    from langgraph.managed.is_last_step import RemainingStepsManager
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise ImportError('deloop.langchain needs LangChain 1.4 or later: pip install "deloop[langchain]"') from error

from deloop import _langchain_messages as read
from deloop._langchain_graph import GraphGuard, GraphStopError, wrap_tool_call
from deloop._langchain_tools import ToolResult, place_of, refuse, returned

__all__ = ["DeloopMiddleware", "DeloopState", "GraphGuard", "GraphStopError", "StopError", "wrap_tool_call"]


class DeloopState(AgentState[Any]):
    """What the middleware keeps in the agent's state, and so in its checkpointer. Not part of the output."""

    deloop: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    deloop_remaining: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]


class DeloopMiddleware(AgentMiddleware[DeloopState, Any, Any]):
    """Detects loops of an agent made by `create_agent`, messages it, refuses calls and ends the run.

    Put it first in the list: then a call that another middleware retries counts once. One object serves all threads of
    an agent, and several agents. It wraps calls of the model and of tools and adds no node, so `recursion_limit` means
    what it means without it. The session is the thread; a run without a thread is a session of its own.

    `exit_behavior`: "end" ends a stopped run with an answer that says why, whose `response_metadata["deloop"]` is the
    decision; "error" raises `deloop.StopError`. `on_decision` is called with every decision but `continue`. The other
    options are those of `deloop.Guard`; to share one between agents, pass it as `guard`.
    """

    state_schema = DeloopState

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        session: str | None = None,
        exit_behavior: ExitBehavior = "end",
        on_decision: OnDecision | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        super().__init__()
        self._adapter = Adapter(guard, session=session, exit_behavior=exit_behavior, on_decision=on_decision, **options)

    @property
    def guard(self) -> Guard:
        """The guard that decides."""
        return self._adapter.guard

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Reports the conversation and the model's answer; ends a stopped run."""
        watch, late = self._before_model(request)
        if watch is not None and watch.stop is not None:
            return self._end(watch, watch.stop, [])
        response = handler(request if late is None else _with_result(request, late))
        return self._after_model(watch, response, late)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        """Does the same as `wrap_model_call` in an asynchronous run."""
        watch, late = self._before_model(request)
        if watch is not None and watch.stop is not None:
            return self._end(watch, watch.stop, [])
        response = await handler(request if late is None else _with_result(request, late))
        return self._after_model(watch, response, late)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        """Refuses a call, or runs it and appends a nudge to what it returned."""
        watch = self._tool_watch(request)
        answer = refuse(watch, request)
        if answer is not None:
            return answer
        return returned(watch, request, handler(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Does the same as `wrap_tool_call` in an asynchronous run."""
        watch = self._tool_watch(request)
        answer = refuse(watch, request)
        if answer is not None:
            return answer
        return returned(watch, request, await handler(request))

    def _before_model(self, request: ModelRequest[Any]) -> tuple[Watch | None, ToolMessage | None]:
        unknown: tuple[Watch | None, ToolMessage | None] = (None, None)
        return self._adapter.safely("request", lambda: self._synchronized(request), unknown)

    def _synchronized(self, request: ModelRequest[Any]) -> tuple[Watch | None, ToolMessage | None]:
        """Reports the conversation. Returns the watch, and a result whose nudge couldn't be placed when it came."""
        state: dict[str, Any] = {**request.state}
        watch = self._watch(state, request.runtime)
        run = _run_of(state)
        fresh = "deloop" not in state or run is None or run != watch.notes.get("run")
        with watch.lock:
            watch.notes["run"] = run
            read.synchronize(watch, state["messages"], fresh)
            late = read.late_nudge(watch, state["messages"]) if watch.stop is None else None
        return watch, late

    def _tool_watch(self, request: ToolCallRequest) -> Watch | None:
        return self._adapter.safely("session", lambda: self._watch(request.state, request.runtime), None)

    def _watch(self, state: Any, runtime: Any) -> Watch:
        """Returns the watch of the run, as the checkpointer has it if another process went on in between."""
        kept = state.get("deloop") or {} if isinstance(state, dict) else {}
        session, agent = place_of(runtime, self._adapter.session)
        watch = self._adapter.watch(session or kept.get("session"), agent)
        saved = kept.get("saved")
        with watch.lock:
            if saved is None:
                if watch.turns == 0 and kept:
                    read.synchronize(watch, state["messages"], new_input=False)
            elif (watch.turns, watch.turn_id) != (saved["turns"], saved["turn_id"]):
                watch.restore(saved)
        return watch

    def _after_model(
        self, watch: Watch | None, response: ModelResponse[Any], late: ToolMessage | None
    ) -> ModelCallResult[Any]:
        if watch is None:
            return response
        stop = self._adapter.safely("answer", lambda: self._answered(watch, response), None)
        if stop is not None:
            return self._end(watch, stop, response.result, late)
        return self._keep(watch, response, late)

    def _answered(self, watch: Watch, response: ModelResponse[Any]) -> Decision | None:
        for message in response.result:
            if isinstance(message, AIMessage):
                read.answered(watch, message)
        return watch.stop

    def _end(
        self, watch: Watch, stop: Decision, said: list[BaseMessage], late: ToolMessage | None = None
    ) -> ModelCallResult[Any]:
        """Ends the run with an answer. Every open call gets a result, or the thread's next request would be invalid."""
        if self._adapter.exit_behavior == "error":
            raise StopError(stop)
        result = [*said, *_results(watch, said), read.stop_answer(stop)]
        return self._keep(watch, ModelResponse(result=result), late)

    def _keep(self, watch: Watch, response: ModelResponse[Any], late: ToolMessage | None) -> ModelCallResult[Any]:
        """Stores the state with the answer, and a nudged result in the place of the one with the same id."""
        kept: dict[str, Any] = {"session": watch.session}
        if watch.agent is None and not watch.unnamed:
            kept["saved"] = watch.checkpoint()
        update: dict[str, Any] = {"deloop": kept}
        if late is not None:
            update["messages"] = [late]
        return ExtendedModelResponse(model_response=response, command=Command(update=update))


def _with_result(request: ModelRequest[Any], late: ToolMessage) -> ModelRequest[Any]:
    return request.override(messages=[late if message.id == late.id else message for message in request.messages])


def _results(watch: Watch, said: list[BaseMessage]) -> list[BaseMessage]:
    """Returns a refusal for each call of an answer that has no result yet."""
    answered = {message.tool_call_id for message in said if isinstance(message, ToolMessage)}
    calls = [call for message in said if isinstance(message, AIMessage) for call in read.calls_of(message)]
    results: list[BaseMessage] = []
    for call in calls:
        if call.id not in answered:
            watch.result(call.id, outcome="denied")
            results.append(read.refused(watch, call.id, call.tool, watch.refusal(call.id) or ""))
    return results


def _run_of(state: dict[str, Any]) -> int | None:
    """Returns a number that all requests of one run share: the step at which the run would reach its limit."""
    remaining = state.get("deloop_remaining")
    try:
        step = get_config().get("metadata", {}).get("langgraph_step")
    except RuntimeError:
        return None
    return remaining + step if isinstance(remaining, int) and isinstance(step, int) else None
