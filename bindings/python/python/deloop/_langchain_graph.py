"""Guards the tool node of a graph that isn't made by `create_agent`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END
from langgraph.prebuilt.tool_node import ToolCallRequest

from deloop import Decision, Guard, StopError
from deloop import _langchain_messages as read
from deloop._adapter import Adapter, ExitBehavior, GuardOptions, OnDecision, Watch
from deloop._fork import survive_fork
from deloop._langchain_tools import ToolResult, place_of, refuse, returned, run_of


RUNS = 1_000
"""How many runs without a thread are told apart at a time."""


class GraphStopError(StopError, GraphBubbleUp):
    """Ends a run from inside a tool node. The node turns other exceptions into results if it handles errors."""


class GraphGuard:
    """Guards a `ToolNode`: pass it as `wrap_tool_call`, and `awrap` as `awrap_tool_call`.

    It reads the turn from the `messages` of the graph's state, and after a restart it reads the whole conversation again,
    so it needs no state of its own. The session is the thread; a run without a `thread_id` is a session of its own. A
    tool node can't end a graph, so let `route`, `check` or `model` do that. If none is used, the first call after the stop
    raises `GraphStopError`.
    """

    def __init__(self, adapter: Adapter, messages_key: str = "messages") -> None:
        self._adapter = adapter
        self._key = messages_key
        self._lock = threading.Lock()
        self._runs: OrderedDict[int, tuple[object, str]] = OrderedDict()
        survive_fork(self)

    def after_fork(self) -> None:
        """Makes a lock that no thread holds: in a forked process, the thread that held it doesn't exist."""
        self._lock = threading.Lock()

    @property
    def guard(self) -> Guard:
        """The guard that decides."""
        return self._adapter.guard

    def __call__(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        """Refuses a call, or runs it and appends a nudge to what it returned."""
        watch = self._watch(request)
        answer = refuse(watch, request)
        if answer is not None:
            return answer
        return returned(watch, request, execute(request))

    async def awrap(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Does the same in an asynchronous run."""
        watch = self._watch(request)
        answer = refuse(watch, request)
        if answer is not None:
            return answer
        return returned(watch, request, await execute(request))

    def route(self, then: str) -> Callable[[Any], str]:
        """Returns a condition for the edge after the tool node: `then`, or the end if deloop stopped the run.

        graph.add_conditional_edges("tools", guard.route("model"))
        """

        def after_tools(state: Any) -> str:
            return then if self._stop(state) is None else END

        return after_tools

    def check(self, state: Any) -> None:
        """Raises `deloop.StopError` if deloop stopped the run. Call it before you call the model.

        In the edge after the tool node an exception would lose the results of the calls, and with them a valid thread.
        """
        stop = self._stop(state)
        if stop is not None:
            raise StopError(stop)

    def model(self, model: Runnable[Any, Any]) -> Callable[[Any, Any], Runnable[Any, Any]]:
        """Returns a model for `create_react_agent` that answers in a stopped run with the reason instead of a request.

        Bind the tools first: `create_react_agent(guard.model(llm.bind_tools(tools)), ToolNode(tools, ...))`.
        """

        def select(state: Any, runtime: Any) -> Runnable[Any, Any]:
            if self._adapter.exit_behavior == "error":
                self.check(state)
            stop = self._stop(state)
            return model if stop is None else RunnableLambda(lambda _: read.stop_answer(stop))

        return select

    def _stop(self, state: Any) -> Decision | None:
        return self._adapter.safely("stop", lambda: read.stop_of(self._messages(state)), None)

    def _watch(self, request: ToolCallRequest) -> Watch | None:
        watch = self._adapter.safely("session", lambda: self._synchronized(request), None)
        if watch is not None and watch.notes.pop("over", False):
            if watch.stop is not None:
                raise GraphStopError(watch.stop)
        return watch

    def _synchronized(self, request: ToolCallRequest) -> Watch:
        messages = self._messages(request.state)
        last = max(n for n, message in enumerate(messages) if isinstance(message, AIMessage))
        turn = messages[last]
        assert isinstance(turn, AIMessage)
        session, agent = place_of(request.runtime, self._adapter.session)
        watch = self._adapter.watch(session or self._unnamed(), agent)
        at = [turn.id, last]
        with watch.lock:
            if watch.turns == 0 or watch.notes.get("turn") != at:
                watch.notes["turn"] = at
                read.synchronize(watch, messages[:last], new_input=True)
                stopped = watch.stop is not None
                read.answered(watch, turn)
                watch.notes["over"] = stopped and watch.stop is not None
        return watch

    def _unnamed(self) -> str | None:
        """Returns the session of a run without a thread, or None for a new one.

        Nothing in the conversation says whose it is: a graph may start each one with the same message. If the run can't be
        told from others, each call of the tool node reads its conversation anew.
        """
        run = run_of()
        if run is None:
            return None
        with self._lock:
            # The entry keeps the run alive, so that no other gets its id.
            known = self._runs.setdefault(id(run), (run, self._adapter.new_name()))
            self._runs.move_to_end(id(run))
            while len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        return known[1]

    def _messages(self, state: Any) -> Sequence[AnyMessage]:
        if isinstance(state, list):
            return state
        found = state.get(self._key) if isinstance(state, dict) else getattr(state, self._key, None)
        return found or []


def wrap_tool_call(
    guard: Guard | None = None,
    *,
    session: str | None = None,
    exit_behavior: ExitBehavior = "end",
    on_decision: OnDecision | None = None,
    messages_key: str = "messages",
    **options: Unpack[GuardOptions],
) -> GraphGuard:
    """Returns a wrapper for the `ToolNode` of your own graph.

        guard = wrap_tool_call()
        ToolNode(tools, wrap_tool_call=guard, awrap_tool_call=guard.awrap)

    `exit_behavior` says what `GraphGuard.model` does in a stopped run; in a graph of your own, use `GraphGuard.route` to
    end it and `GraphGuard.check` to raise.
    """
    adapter = Adapter(guard, session=session, exit_behavior=exit_behavior, on_decision=on_decision, **options)
    return GraphGuard(adapter, messages_key)
