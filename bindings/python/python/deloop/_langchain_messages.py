"""Reads LangChain's messages as steps, and places nudges in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from deloop import Decision
from deloop._adapter import Nudge, Origin, Outcome, TokenUsage, ToolCall, Watch, stop_text

MARK = "deloop"
"""The key in `response_metadata`, which no provider is sent, that marks what deloop wrote."""
REJECTED = "User rejected the tool call"
"""How the answer begins that `HumanInTheLoopMiddleware` gives for a person."""
REMEMBERED = 16


def calls_of(message: AIMessage) -> list[ToolCall]:
    """Returns the calls of an answer, those with malformed arguments included."""
    calls = [
        ToolCall(call["id"] or f"{message.id}:{n}", call["name"], call["args"]) for n, call in enumerate(message.tool_calls)
    ]
    for n, bad in enumerate(message.invalid_tool_calls):
        calls.append(ToolCall(bad.get("id") or f"{message.id}:bad{n}", bad.get("name") or "", bad.get("args")))
    return calls


def usage_of(message: AIMessage) -> TokenUsage | None:
    """Returns what the request of an answer used, if the provider says so."""
    usage = message.usage_metadata
    if usage is None:
        return None
    details = usage.get("input_token_details") or {}
    read, written = details.get("cache_read") or 0, details.get("cache_creation") or 0
    return TokenUsage(max(0, usage["input_tokens"] - read - written), usage["output_tokens"], read, written)


def model_of(message: AIMessage) -> str | None:
    """Returns the name of the model that answered."""
    name = message.response_metadata.get("model_name") or message.response_metadata.get("model")
    return name if isinstance(name, str) else None


def answered(watch: Watch, message: AIMessage) -> None:
    """Reports an answer."""
    watch.answered(message.text, calls_of(message), usage_of(message), model_of(message), message.id)


def result_messages(result: object, call_id: str) -> list[ToolMessage]:
    """Returns the messages that answer a call: a tool returns a message, a Command, or a list of them."""
    if isinstance(result, ToolMessage):
        return [result] if result.tool_call_id == call_id else []
    if isinstance(result, Command):
        update = result.update
        return result_messages(update.get("messages") or [], call_id) if isinstance(update, dict) else []
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [message for item in result for message in result_messages(item, call_id)]
    return []


def report(watch: Watch, message: ToolMessage, invalid: bool = False) -> Nudge | None:
    """Reports a result. A returned error text has the status "success", so success says nothing."""
    mark = message.response_metadata.get(MARK) or {}
    if mark.get("action") in ("block", "stop"):
        return watch.result(message.tool_call_id, outcome="denied")
    failed = message.status == "error"
    outcome: Outcome | None = "invalid" if invalid and failed else None
    if failed and message.text.startswith(REJECTED):
        outcome = "denied"
    return watch.result(message.tool_call_id, _without_nudge(message, mark), ok=False if failed else None, outcome=outcome)


def _without_nudge(message: ToolMessage, mark: dict[str, Any]) -> object:
    if mark.get("action") != "nudge":
        return message.content
    return message.content[: -mark["chars"]] if isinstance(message.content, str) else message.content[:-1]


def with_nudge(result: Any, call_id: str, nudge: Nudge) -> Any | None:
    """Returns a tool's result with a nudge at the end of what answers the call, or None if nothing in it does."""
    if isinstance(result, ToolMessage):
        return _nudged(result, nudge) if result.tool_call_id == call_id else None
    if isinstance(result, Command):
        if not isinstance(result.update, dict):
            return None
        messages = with_nudge(result.update.get("messages") or [], call_id, nudge)
        if messages is None:
            return None
        return Command(
            graph=result.graph, update={**result.update, "messages": messages}, resume=result.resume, goto=result.goto
        )
    if isinstance(result, list):
        for place in reversed(range(len(result))):
            placed = with_nudge(result[place], call_id, nudge)
            if placed is not None:
                return [*result[:place], placed, *result[place + 1 :]]
    return None


def _nudged(message: ToolMessage, nudge: Nudge) -> ToolMessage:
    suffix = f"\n\n{nudge}"
    content: Any = message.content
    content = content + suffix if isinstance(content, str) else [*content, {"type": "text", "text": str(nudge)}]
    metadata = {**message.response_metadata, MARK: {"action": "nudge", "chars": len(suffix)}}
    return message.model_copy(update={"content": content, "response_metadata": metadata})


def late_nudge(watch: Watch, messages: Sequence[AnyMessage]) -> ToolMessage | None:
    """Returns the latest result with the nudge that couldn't be placed when it came, under the same message id."""
    nudge = watch.take_nudge()
    if nudge is None:
        return None
    last = messages[-1]
    possible = isinstance(last, ToolMessage) and last.id is not None and MARK not in last.response_metadata
    watch.delivered(nudge, ok=possible)
    return _nudged(last, nudge) if possible and isinstance(last, ToolMessage) else None


def refused(watch: Watch, call_id: str, tool: str, text: str, nudge: Nudge | None = None) -> ToolMessage:
    """Returns the answer to a call that deloop refused."""
    content = f"{text}\n\n{nudge}" if nudge else text
    mark = watch.stop.to_dict() if watch.stop is not None else {"action": "block"}
    return ToolMessage(content, tool_call_id=call_id, name=tool, status="error", response_metadata={MARK: mark})


def stop_answer(stop: Decision) -> AIMessage:
    """Returns the answer that ends a stopped run."""
    return AIMessage(stop_text(stop), response_metadata={MARK: stop.to_dict()})


def stop_of(messages: Sequence[BaseMessage]) -> Decision | None:
    """Returns the stop that the latest results carry, if deloop stopped the run."""
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            return None
        mark = message.response_metadata.get(MARK) or {}
        if mark.get("action") == "stop":
            return Decision.from_json(json.dumps(mark))
    return None


def synchronize(watch: Watch, messages: Sequence[AnyMessage], new_input: bool) -> None:
    """Reports what the conversation shows that wasn't reported yet: results, messages to the agent, a compaction.

    `new_input` says whether a message to the agent that is new came from outside, rather than from another middleware.
    Without any memory of the conversation, its past is read again in silence, so that a run continues where it was.
    """
    last = max((n for n, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    if watch.turns == 0 and last >= 0:
        _read_again(watch, messages[: last + 1])
    elif len(messages) < watch.notes.get("length", 0):
        watch.compact()
    watch.notes["length"] = len(messages)
    seen: list[str] = watch.notes.setdefault("seen", [])
    for place, message in enumerate(messages[last + 1 :], last + 1):
        if isinstance(message, ToolMessage) and not watch.reported(message.tool_call_id):
            nudge = report(watch, message)
            if MARK in message.response_metadata:
                watch.delivered(nudge)
            else:
                watch.keep(nudge)
        elif isinstance(message, HumanMessage) and _name(message, place) not in seen:
            _say(watch, message, place, "human" if new_input and watch.agent is None else "harness")
    del seen[:-REMEMBERED]


def _name(message: HumanMessage, place: int) -> str:
    return message.id or f"#{place}"


def _say(watch: Watch, message: HumanMessage, place: int, origin: Origin) -> None:
    watch.notes.setdefault("seen", []).append(_name(message, place))
    if "lc_source" not in message.additional_kwargs:
        watch.user(message.text, origin)


def _read_again(watch: Watch, messages: Sequence[AnyMessage]) -> None:
    quiet, watch.quiet = watch.quiet, True
    try:
        for place, message in enumerate(messages):
            if isinstance(message, HumanMessage):
                _say(watch, message, place, "human" if watch.agent is None else "harness")
            elif isinstance(message, AIMessage) and MARK not in message.response_metadata:
                answered(watch, message)
            elif isinstance(message, ToolMessage):
                watch.delivered(report(watch, message))
    finally:
        watch.quiet = quiet
