"""Reads requests of three model APIs into one form, and writes answers in each of them.

The one form of a conversation is a list of entries: `{"role": "system" | "user", "text"}`,
`{"role": "assistant", "text", "calls": [{"id", "tool", "args"}]}` and `{"role": "tool", "id", "text"}`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Entry = dict[str, Any]
ROUTES = {"/chat/completions": "chat", "/responses": "responses", "/messages": "anthropic"}


@dataclass
class Reply:
    """Holds what the fake model answers: text, calls as (tool, args), and the tokens it reports."""

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    tokens: tuple[int, int] = (10, 5)


def text_of(content: Any) -> str:
    """Returns the text of a content that is a string, a list of parts, or absent."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part if isinstance(part, str) else part.get("text") or text_of(part.get("content")) for part in parts)


def conversation(api: str, body: dict[str, Any], earlier: list[Any]) -> list[Entry]:
    """Returns the conversation of a request; `earlier` holds the items that the server stores for it."""
    reader = {"chat": _chat_entries, "responses": _response_entries, "anthropic": _anthropic_entries}[api]
    return list(reader(body, earlier))


def _chat_entries(body: dict[str, Any], _earlier: list[Any]) -> Iterator[Entry]:
    for message in body.get("messages") or []:
        role, text = message.get("role"), text_of(message.get("content"))
        if role == "assistant":
            calls = [
                {"id": call["id"], "tool": call["function"]["name"], "args": call["function"]["arguments"]}
                for call in message.get("tool_calls") or []
            ]
            yield {"role": role, "text": text, "calls": calls}
        elif role == "tool":
            yield {"role": role, "id": message.get("tool_call_id"), "text": text}
        else:
            yield {"role": "system" if role == "developer" else role, "text": text}


def response_items(body: dict[str, Any], earlier: list[Any]) -> list[Any]:
    """Returns all items of a Responses request, with those of the responses before it."""
    given = body.get("input")
    return earlier + ([{"role": "user", "content": given}] if isinstance(given, str) else list(given or []))


def _response_entries(body: dict[str, Any], earlier: list[Any]) -> Iterator[Entry]:
    if body.get("instructions"):
        yield {"role": "system", "text": body["instructions"]}
    answer: Entry | None = None
    for item in response_items(body, earlier):
        kind, role = item.get("type", "message"), item.get("role")
        if kind == "function_call" or (kind == "message" and role == "assistant"):
            answer = answer or {"role": "assistant", "text": "", "calls": []}
            if kind == "function_call":
                answer["calls"].append({"id": item["call_id"], "tool": item["name"], "args": item["arguments"]})
            else:
                answer["text"] += text_of(item.get("content"))
        elif kind in ("message", "function_call_output"):
            if answer:
                yield answer
                answer = None
            if kind == "message":
                yield {"role": "system" if role == "developer" else role, "text": text_of(item.get("content"))}
            else:
                yield {"role": "tool", "id": item.get("call_id"), "text": text_of(item.get("output"))}
    if answer:
        yield answer


def _anthropic_entries(body: dict[str, Any], _earlier: list[Any]) -> Iterator[Entry]:
    if body.get("system"):
        yield {"role": "system", "text": text_of(body["system"])}
    for message in body.get("messages") or []:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if message.get("role") == "assistant":
            calls = [{"id": b["id"], "tool": b["name"], "args": b["input"]} for b in blocks if b.get("type") == "tool_use"]
            yield {"role": "assistant", "text": text_of([b for b in blocks if b.get("type") == "text"]), "calls": calls}
            continue
        for block in blocks:
            if block.get("type") == "tool_result":
                yield {"role": "tool", "id": block.get("tool_use_id"), "text": text_of(block.get("content"))}
            elif block.get("type") == "text":
                yield {"role": message.get("role"), "text": block["text"]}


def tool_names(body: dict[str, Any]) -> list[str]:
    """Returns the names of the tools that a request offers, in order."""
    named = [tool.get("name") or (tool.get("function") or {}).get("name") for tool in body.get("tools") or []]
    return [name for name in named if name]


def _raw(args: Any) -> str:
    return args if isinstance(args, str) else json.dumps(args)


def _halves(text: str) -> list[str]:
    middle = (len(text) + 1) // 2
    return [half for half in (text[:middle], text[middle:]) if half]


class Answer:
    """Writes one Reply in the form of an API, whole or as events of a stream."""

    def __init__(self, api: str, body: dict[str, Any], reply: Reply, number: int, first_call: int) -> None:
        self.api, self.body, self.reply, self.number = api, body, reply, number
        prefix = "toolu" if api == "anthropic" else "call"
        self.calls = [(f"{prefix}_{first_call + k:05d}", tool, args) for k, (tool, args) in enumerate(reply.calls)]
        self.model = body.get("model") or "fake-model"

    def whole(self) -> dict[str, Any]:
        """Returns the answer to a request that doesn't stream."""
        return {"chat": self._chat, "responses": self._response, "anthropic": self._anthropic}[self.api]()

    def events(self) -> Iterator[tuple[str | None, Any]]:
        """Yields the (event name, data) pairs of a stream."""
        return {"chat": self._chat_events, "responses": self._response_events, "anthropic": self._anthropic_events}[self.api]()

    def _chat_base(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.number:05d}", "object": kind, "created": int(time.time()), "model": self.model}

    def _chat_usage(self) -> dict[str, Any]:
        taken, given = self.reply.tokens
        return {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}

    def _chat_finish(self) -> str:
        return "tool_calls" if self.calls else "stop"

    def _chat(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.text or None}
        if self.calls:
            message["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": tool, "arguments": _raw(args)}} for i, tool, args in self.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._chat_finish(), "logprobs": None}
        return {**self._chat_base("chat.completion"), "choices": [choice], "usage": self._chat_usage()}

    def _chat_events(self) -> Iterator[tuple[str | None, Any]]:
        base = self._chat_base("chat.completion.chunk")

        def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[None, dict[str, Any]]:
            return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        for half in _halves(self.reply.text):
            yield chunk({"content": half})
        for index, (i, tool, args) in enumerate(self.calls):
            start = {"index": index, "id": i, "type": "function", "function": {"name": tool, "arguments": ""}}
            yield chunk({"tool_calls": [start]})
            for half in _halves(_raw(args)):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
        yield chunk({}, self._chat_finish())
        if (self.body.get("stream_options") or {}).get("include_usage"):
            yield None, {**base, "choices": [], "usage": self._chat_usage()}
        yield None, "[DONE]"

    def output_items(self) -> list[dict[str, Any]]:
        """Returns the items of a Responses answer; the server stores them for `previous_response_id`."""
        items: list[dict[str, Any]] = []
        if self.reply.text or not self.calls:
            part = {"type": "output_text", "text": self.reply.text, "annotations": [], "logprobs": []}
            items.append(
                {"type": "message", "id": f"msg_{self.number:05d}", "role": "assistant", "status": "completed", "content": [part]}
            )
        for i, tool, args in self.calls:
            items.append(
                {"type": "function_call", "id": f"fc_{i[5:]}", "call_id": i, "name": tool, "arguments": _raw(args), "status": "completed"}
            )
        return items

    def _response(self, status: str = "completed") -> dict[str, Any]:
        taken, given = self.reply.tokens
        done = status == "completed"
        usage = {
            "input_tokens": taken,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": given,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": taken + given,
        }
        kept = {name: self.body.get(name) for name in ("instructions", "metadata", "temperature", "top_p", "previous_response_id")}
        return {
            "id": f"resp_{self.number:05d}",
            "object": "response",
            "created_at": int(time.time()),
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": self.output_items() if done else [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": self.body.get("tools") or [],
            "usage": usage if done else None,
            **kept,
        }

    def _response_events(self) -> Iterator[tuple[str | None, Any]]:
        for sequence, event in enumerate(self._response_event_list()):
            yield event["type"], {**event, "sequence_number": sequence}

    def _response_event_list(self) -> Iterator[dict[str, Any]]:
        yield {"type": "response.created", "response": self._response("in_progress")}
        for index, item in enumerate(self.output_items()):
            place = {"output_index": index, "item_id": item["id"]}
            begun = {**item, "status": "in_progress"}
            if item["type"] == "message":
                part = item["content"][0]
                inside = {**place, "content_index": 0}
                empty = {**part, "text": ""}
                yield {"type": "response.output_item.added", "output_index": index, "item": {**begun, "content": []}}
                yield {"type": "response.content_part.added", **inside, "part": empty}
                for half in _halves(part["text"]):
                    yield {"type": "response.output_text.delta", **inside, "delta": half, "logprobs": []}
                yield {"type": "response.output_text.done", **inside, "text": part["text"], "logprobs": []}
                yield {"type": "response.content_part.done", **inside, "part": part}
            else:
                yield {"type": "response.output_item.added", "output_index": index, "item": {**begun, "arguments": ""}}
                for half in _halves(item["arguments"]):
                    yield {"type": "response.function_call_arguments.delta", **place, "delta": half}
                yield {"type": "response.function_call_arguments.done", **place, "name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": "response.completed", "response": self._response()}

    def _anthropic_blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self.reply.text or not self.calls:
            blocks.append({"type": "text", "text": self.reply.text})
        return blocks + [{"type": "tool_use", "id": i, "name": tool, "input": args} for i, tool, args in self.calls]

    def _anthropic(self, started: bool = False) -> dict[str, Any]:
        taken, given = self.reply.tokens
        return {
            "id": f"msg_{self.number:05d}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [] if started else self._anthropic_blocks(),
            "stop_reason": None if started else "tool_use" if self.calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": taken, "output_tokens": 1 if started else given},
        }

    def _anthropic_events(self) -> Iterator[tuple[str | None, Any]]:
        yield "message_start", {"type": "message_start", "message": self._anthropic(started=True)}
        for index, block in enumerate(self._anthropic_blocks()):
            if block["type"] == "text":
                start = {**block, "text": ""}
                deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
            else:
                start = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": half} for half in _halves(_raw(block["input"]))]
            yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
            for delta in deltas:
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        whole = self._anthropic()
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": self.reply.tokens[1]}}
        yield "message_stop", {"type": "message_stop"}
