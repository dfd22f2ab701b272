"""Checks the order of messages as the model providers do; each check returns the reason of a 400, or None.

Where providers that speak the same API differ, the stricter rule holds: a system message only at the beginning,
roles that alternate, nothing between a call and its result.
"""

from __future__ import annotations

from typing import Any

from model_wire import response_items

NEWEST = "claude-newest"


def wrong_order(api: str, body: dict[str, Any], earlier: list[Any]) -> str | None:
    """Returns why a provider would refuse the messages of this request, or None if it wouldn't."""
    if api == "chat":
        return _chat(body.get("messages"))
    if api == "responses":
        return _responses(response_items(body, earlier))
    return _anthropic(body)


def _chat(messages: Any) -> str | None:
    if not messages:
        return "messages must not be empty"
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        role, at = message.get("role"), f"messages[{index}]"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"{at}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            if not isinstance(message.get("content"), (str, list)):
                return f"{at}: a tool message needs content"
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return (
                f"{at}: an assistant message with 'tool_calls' must be followed by tool messages responding to each"
                f" 'tool_call_id'; these had none: {', '.join(open_calls)}"
            )
        if role == "assistant":
            calls = message.get("tool_calls")
            if calls is not None and not calls:
                return f"{at}: tool_calls must not be an empty list"
            if not calls and not message.get("content"):
                return f"{at}: an assistant message needs content or tool_calls"
            open_calls = [call.get("id") for call in calls or []]
            if len(set(open_calls)) != len(open_calls) or not all(open_calls):
                return f"{at}: the ids of tool_calls must be there and differ"
        elif role in ("system", "developer"):
            if any(before.get("role") not in ("system", "developer") for before in messages[:index]):
                return f"{at}: a {role} message is valid only at the beginning"
        elif role != "user":
            return f"{at}: unknown role {role!r}"
    if open_calls:
        return f"the last tool_calls have no tool messages: {', '.join(open_calls)}"
    if messages[-1].get("role") == "assistant":
        return "the last message must not be the assistant's"
    return None


def _responses(items: list[Any]) -> str | None:
    if not items:
        return "input must not be empty"
    open_calls: list[str] = []
    answering = False
    for index, item in enumerate(items):
        kind, at = item.get("type", "message"), f"input[{index}]"
        if kind == "function_call":
            if answering and open_calls:
                return f"{at}: no tool output found for function call {open_calls[0]}"
            answering = False
            open_calls.append(item.get("call_id"))
        elif kind == "function_call_output":
            if item.get("call_id") not in open_calls:
                return f"{at}: no tool call found for function call output with call_id {item.get('call_id')}"
            open_calls.remove(item["call_id"])
            answering = True
        elif kind == "message":
            if open_calls:
                return f"{at}: no tool output found for function call {open_calls[0]}"
            answering = False
            if item.get("role") not in ("user", "assistant", "system", "developer"):
                return f"{at}: unknown role {item.get('role')!r}"
    if open_calls:
        return f"no tool output found for function call {open_calls[0]}"
    return None


def _anthropic(body: dict[str, Any]) -> str | None:
    messages = body.get("messages")
    if not messages:
        return "messages: at least one message is required"
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: field required"
    if str(body.get("model")).startswith(NEWEST):
        # These models take a system message after the user's turn; without it the order is as for all others.
        before = [None, *messages]
        messages = [m for m, b in zip(messages, before, strict=False) if m.get("role") != "system" or not b or b.get("role") != "user"]
    awaited: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        role, at = message.get("role"), f"messages.{index}"
        if role != ("assistant" if index % 2 else "user"):
            return f"{at}: roles must alternate between user and assistant, beginning with user; found {role!r}"
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            return f"{at}: content must not be empty"
        if any(block.get("type") == "text" and not block.get("text") for block in blocks):
            return f"{at}: text content blocks must be non-empty"
        reason = _results(blocks, awaited) if role == "user" else None
        if reason:
            return f"{at}: {reason}"
        awaited = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if seen.intersection(awaited) or len(set(awaited)) != len(awaited):
            return f"{at}: `tool_use` ids must be unique"
        seen.update(awaited)
    if messages[-1].get("role") != "user":
        return "the last message must be the user's"
    return None


def _results(blocks: list[Any], awaited: list[str]) -> str | None:
    results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    unknown = [call for call in results if call not in awaited]
    if unknown:
        return f"unexpected `tool_use_id` in `tool_result` blocks: {', '.join(map(str, unknown))}"
    missing = [call for call in awaited if call not in results]
    if missing:
        return f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
    if len(set(results)) != len(results):
        return "each tool_use must have a single result"
    if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        return "`tool_result` blocks must come first in the content"
    return None
