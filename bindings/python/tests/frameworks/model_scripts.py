"""Scripts of the fake model: functions of a request that return its answer.

They look only at the conversation in the request, so a resumed run meets the answers of an uninterrupted one.
"""

from __future__ import annotations

import json
from typing import Any

from fake_model import Failure, Request, Script
from model_wire import Reply

URL = {"url": "https://example.test/data"}


def text(**_: Any) -> Script:
    """Answers everything with one sentence."""
    return lambda request: "I am done."


def same_failing_call(tool: str | None = None, args: Any = None, turns: int | None = None) -> Script:
    """Makes the same call in every turn, up to `turns` turns of the conversation."""
    return same_batch([(tool, URL if args is None else args)], turns)


def same_failing_batch(tool: str | None = None, turns: int | None = None, **_: Any) -> Script:
    """Makes the same three parallel calls in every turn."""
    return same_batch([(tool, {"url": f"https://example.test/{name}"}) for name in "abc"], turns)


def same_batch(calls: list[tuple[str | None, Any]], turns: int | None = None) -> Script:
    """Makes the same calls in every turn; a call without a tool takes the first tool that is offered."""

    def script(request: Request) -> Reply | str:
        if not request.tools or (turns is not None and request.turns >= turns):
            return "I am done."
        return Reply(calls=[(tool or request.tools[0], args) for tool, args in calls])

    return script


def failing_once(script: Script, number: int = 2, status: int = 503) -> Script:
    """Answers one request with an HTTP error, so that the client sends it again, and follows the script otherwise."""
    return lambda request: Failure(status, "overloaded") if request.number == number else script(request)


def healthy(turns: int = 30, prefix: str = "", **_: Any) -> Script:
    """Works for `turns` turns as an agent does that makes progress: reads, edits, failing and passing tests.

    It uses the tools of `harness.Workspace`: read_file, edit_file, run_tests and search. Some turns have several calls,
    some have text, some calls fail, and no two turns are alike.
    """

    def script(request: Request) -> Reply | str:
        n = request.turns
        if n >= turns:
            return "All tests pass now."
        return Reply(text=f"Step {n}." if n % 3 == 0 else "", calls=[(prefix + tool, args) for tool, args in _work(n)])

    return script


def _work(n: int) -> list[tuple[str, dict[str, Any]]]:
    name = f"src/part{n // 5}.py"
    return [
        [("read_file", {"path": name}), ("search", {"pattern": f"def part{n // 5}"})],
        [("run_tests", {"name": f"part{n // 5}"})],
        [("edit_file", {"path": name, "text": f"def part{n // 5}():\n    return {n}\n"})],
        [("run_tests", {"name": f"part{n // 5}"}), ("read_file", {"path": name}), ("read_file", {"path": f"missing{n}.txt"})],
        [("edit_file", {"path": f"docs/part{n // 5}.md", "text": f"part {n // 5} returns {n - 2}\n"})],
    ][n % 5]


NAMED = {
    "text": text,
    "same-failing-call": same_failing_call,
    "same-failing-batch": same_failing_batch,
    "healthy": healthy,
}


def arguments(raw: Any) -> Any:
    """Returns the arguments of a call in the conversation as an object."""
    return json.loads(raw) if isinstance(raw, str) else raw
