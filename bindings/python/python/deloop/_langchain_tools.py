"""What the middleware and the tool-node wrapper do around one tool call, and how both name the session.

A tool that raises isn't reported here: if another middleware retries it or answers for it, the conversation shows that
before the next request; otherwise the run ends, and a resumed run calls the tool again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import get_runtime
from langgraph.types import Command

from deloop import _langchain_messages as read
from deloop._adapter import Watch

ToolResult = ToolMessage | Command[Any]


class Place(NamedTuple):
    """Where a run takes place: its thread, and what it is inside of."""

    session: str | None
    agent: str | None


def place_of(runtime: Any, session: str | None = None) -> Place:
    """Returns the session and the agent of a run.

    The session is the thread. An agent that a tool of another agent calls is a subagent in it; one that is a node of
    another graph is a session of its own, because each visit of the node is a new conversation.
    """
    info = getattr(runtime, "execution_info", None)
    thread = session or (info.thread_id if info is not None else None)
    outer = info.checkpoint_ns.rpartition("|")[0] if info is not None else ""
    if not outer or any(part.startswith("tools:") for part in outer.split("|")):
        return Place(thread, outer or None)
    return Place(f"{thread}/{outer}" if thread else None, None)


def run_of() -> object | None:
    """Returns an object that all steps of a run share and no other run has, or None outside of a run."""
    try:
        return getattr(get_runtime(), "control", None)
    except Exception:
        return None


def refuse(watch: Watch | None, request: ToolCallRequest) -> ToolMessage | None:
    """Returns the answer to a call that must not run, or None if it may."""
    return watch.adapter.safely("refusal", lambda: _refuse(watch, request), None) if watch is not None else None


def _refuse(watch: Watch, request: ToolCallRequest) -> ToolMessage | None:
    call = request.tool_call
    id = call["id"] or ""
    text = watch.refusal(id)
    if text is None:
        return None
    nudge = watch.result(id, outcome="denied")
    watch.delivered(nudge)
    return read.refused(watch, id, call["name"], text, nudge)


def returned(watch: Watch | None, request: ToolCallRequest, result: ToolResult) -> ToolResult:
    """Reports what a tool returned, and returns it with a nudge if there is one."""
    return (
        watch.adapter.safely("result", lambda: _returned(watch, request, result), result) if watch is not None else result
    )


def _returned(watch: Watch, request: ToolCallRequest, result: ToolResult) -> ToolResult:
    id = request.tool_call["id"] or ""
    messages = read.result_messages(result, id)
    nudge = read.report(watch, messages[-1], invalid=request.tool is None) if messages else watch.result(id)
    if nudge is None:
        return result
    placed: ToolResult | None = read.with_nudge(result, id, nudge)
    if placed is None:
        watch.keep(nudge)
        return result
    watch.delivered(nudge)
    return placed
