"""One run of the OpenAI Agents SDK, as deloop follows it."""

from __future__ import annotations

import json
from typing import Any

from deloop import Decision
from deloop._adapter import Nudge, TokenUsage, ToolCall, Watch
from deloop._openai_items import MARK, Entry, entries, item_field, without_nudge

DEFAULT_ERROR = "An error occurred while running the tool. Please try again."
NOT_APPROVED = "Tool execution was not approved."


class Run:
    """Reports the requests, answers and results of one run to its watch."""

    def __init__(self, watch: Watch, shared: bool) -> None:
        self.watch = watch
        self.shared = shared
        """Whether the session was named by the caller, so that the watch may know more than this run's history."""
        self.errors: dict[str, Exception] = {}
        self._latest: tuple[str, ...] | None = watch.notes.get("latest")
        self._calls: dict[str, ToolCall] = {}
        self._unseen: dict[str, str | None] = {}
        self._later: list[Nudge] = []
        self._inserted: list[tuple[str, str]] = []
        self._length = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Run:
        return self

    def asked(self, items: list[Any]) -> Decision | None:
        """Reports what is new in the input of a request, and returns the stop if the run should have ended."""
        found = entries(items)
        answers = [index for index, entry in enumerate(found) if entry.kind == "answer"]
        known = [index for index in answers if found[index].key == self._latest]
        fresh = self.watch.turns == 0 and bool(answers)
        if known:
            start = known[-1] + 1
            if len(items) < self._length:
                self.watch.compact()
        else:
            start = 0 if fresh or not answers else answers[-1] + 1
        self._length = len(items)
        for index in range(start, len(found)):
            entry = found[index]
            self.watch.quiet = fresh and (index <= answers[-1] or without_nudge(entry.text) != entry.text)
            self._report(entry, replayed=fresh)
        self.watch.quiet = False
        return self.watch.stop

    def _report(self, entry: Entry, replayed: bool) -> None:
        if entry.kind == "answer":
            self.answered(entry)
        elif entry.kind == "user" and not entry.text.startswith(MARK):
            self.watch.user(entry.text)
        elif entry.kind == "result" and entry.call_id in self._calls and not self.watch.reported(entry.call_id):
            self._stored_result(entry, replayed)

    def _stored_result(self, entry: Entry, replayed: bool) -> None:
        """Reports a result that is known from the history only."""
        text = without_nudge(entry.text)
        if entry.text.startswith(MARK) or text == NOT_APPROVED:
            nudge = self.watch.result(entry.call_id, entry.text, ok=False, outcome="denied")
        elif text == DEFAULT_ERROR:
            key = _key(self._calls[entry.call_id])
            self._unseen[key] = None
            nudge = self.watch.result(entry.call_id, text, ok=False, outcome="error", error_type=key)
        elif text == f"Tool '{self._calls[entry.call_id].tool}' not found.":
            nudge = self.watch.result(entry.call_id, text, ok=False, outcome="invalid")
        else:
            nudge = self._returned(entry.call_id, text)
        if nudge is None:
            return
        if str(nudge) in entry.text:
            self.watch.delivered(nudge)
        elif not replayed:
            self.later(nudge)
        else:
            self.watch.delivered(nudge, ok=False)

    def answered(self, answer: Entry | None, usage: TokenUsage | None = None, model: str | None = None) -> None:
        """Reports an answer of the model before any of its tools runs."""
        answer = answer or Entry("answer")
        self._latest = self.watch.notes["latest"] = answer.key
        self._calls = {call.id: call for call in answer.calls}
        self.errors.clear()
        self.watch.answered(answer.text, answer.calls, usage, model)

    def result(self, id: str, output: object) -> Nudge | None:
        """Reports what a tool returned or raised, and returns the nudge to append to it."""
        error = self.errors.pop(id, None)
        if error is None:
            return self._returned(id, output)
        key = _key(self._calls[id]) if id in self._calls else ""
        if output == DEFAULT_ERROR and self._as_before(key, error):
            return self.watch.result(id, output, ok=False, outcome="error", error_type=key)
        return self.watch.result(id, error=error)

    def _returned(self, id: str, output: object) -> Nudge | None:
        if isinstance(output, str) and output.startswith("Tool '") and "' timed out after " in output:
            return self.watch.result(id, output, ok=False, outcome="timeout")
        return self.watch.result(id, output)

    def _as_before(self, key: str, error: Exception) -> bool:
        """Tells whether a failure counts as the one in the history, which says nothing but that the call failed."""
        if key not in self._unseen:
            return False
        now = f"{type(error).__name__}: {error}"
        if self._unseen[key] is None:
            self._unseen[key] = now
        return self._unseen[key] == now

    def later(self, nudge: Nudge) -> None:
        """Keeps a nudge that has no result to be appended to."""
        self._later.append(nudge)

    def insert(self, items: list[Any]) -> None:
        """Puts nudges that belong to no result into a request, as a user message after the results.

        The SDK doesn't store these, so each stands at the same place in every later request of the run.
        """
        anchor = next((call for call in reversed(self._calls)), "")
        self._inserted += [(anchor, str(nudge)) for nudge in self._later]
        for nudge in self._later:
            self.watch.delivered(nudge)
        self._later.clear()
        for anchor, text in self._inserted:
            ids = [item_field(item, "call_id") for item in items]
            found = [index for index, id in enumerate(ids) if id == anchor]
            at = found[-1] + 1 if found else len(items)
            while at < len(items) and str(item_field(items[at], "type")).endswith("_output"):
                at += 1
            items.insert(at, {"role": "user", "content": text})


def _key(call: ToolCall) -> str:
    return f"{call.tool} {json.dumps(call.args, sort_keys=True, default=str)}"
