"""Reads the items of OpenAI's Responses API, as the Agents SDK keeps them, into what a Watch is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from deloop._adapter import ToolCall

MARK = "[deloop]"
JOIN = "\n\n"


@dataclass
class Entry:
    """A message by a person, an answer of the model with its calls, or the result of a call."""

    kind: str
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    call_id: str = ""
    at: int = 0
    """The index of the entry's last item."""

    @property
    def key(self) -> tuple[str, ...]:
        """What an answer is recognized by when it comes back as history."""
        return tuple(call.id for call in self.calls) or (self.text,)


def entries(items: Iterable[Any]) -> list[Entry]:
    """Returns the entries of a request's items or of a response's output, in order."""
    return list(_entries(items))


def _entries(items: Iterable[Any]) -> Iterator[Entry]:
    answer: Entry | None = None
    for at, item in enumerate(items):
        kind, role = item_field(item, "type") or "message", item_field(item, "role")
        made = _call(item, kind)
        if made is not None or (kind == "message" and role == "assistant"):
            answer = answer or Entry("answer")
            answer.at = at
            if made is not None:
                answer.calls.append(made)
            else:
                answer.text += text_of(item_field(item, "content"))
            continue
        if kind == "message" or kind.endswith("_output"):
            if answer is not None:
                yield answer
                answer = None
            if role == "user":
                yield Entry("user", text_of(item_field(item, "content")), at=at)
            elif kind.endswith("_output"):
                yield Entry("result", text_of(item_field(item, "output")), call_id=str(item_field(item, "call_id")), at=at)
    if answer is not None:
        yield answer


def _call(item: Any, kind: str) -> ToolCall | None:
    """Returns the call that an item makes. Calls that the provider runs itself have no `call_id` and no result."""
    id = item_field(item, "call_id")
    if not kind.endswith("_call") or not id:
        return None
    raw = next((value for name in ("arguments", "input", "action", "operation") if (value := item_field(item, name)) is not None), None)
    return ToolCall(str(id), str(item_field(item, "name") or kind.removesuffix("_call")), arguments(raw))


def arguments(raw: Any) -> object:
    """Returns arguments as an object, or as the text that the model wrote if that isn't one."""
    if isinstance(raw, str):
        try:
            return json.loads(raw)
        except ValueError:
            return raw
    dump = getattr(raw, "model_dump", None)
    return dump() if callable(dump) else raw


def without_nudge(text: str) -> str:
    """Returns a result as the tool gave it: without what deloop appended."""
    return text.partition(f"{JOIN}{MARK} ")[0]


def text_of(content: Any) -> str:
    """Returns the text of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else str(content)
    parts = cast(Iterable[Any], content)
    return "\n".join(part if isinstance(part, str) else str(item_field(part, "text") or "") for part in parts)


def item_field(item: Any, name: str) -> Any:
    """Returns a field of an item, which is a dict or an object."""
    return cast(dict[str, Any], item).get(name) if isinstance(item, dict) else getattr(item, name, None)
