"""What the tests of plain tool loops share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import deloop
from harness import HANGS, Tools, Workspace

NUDGE = "[deloop] You ran `convert https://example.test/data` 3 times"
SECOND = "[deloop] This is the second warning."
BLOCKED = "[deloop] Blocked."
STOPPED = "[deloop] Stopped:"
TASK = "Fetch the data."
PARAMETERS = {
    "convert": ["url"],
    "read_file": ["path"],
    "edit_file": ["path", "text"],
    "run_tests": ["name"],
    "search": ["pattern"],
}


def schema(name: str) -> dict[str, Any]:
    """Returns the JSON schema of a tool's arguments."""
    names = PARAMETERS[name]
    return {"type": "object", "properties": {key: {"type": "string"} for key in names}, "required": names}


def runner(tools: Tools | Workspace) -> Callable[[str, Any], Any]:
    """Returns a function that runs a tool by name. The failing one raises, because what an output says is not declared."""

    def run(name: str, args: Any) -> Any:
        output = getattr(tools, name)(**args)
        if name == "convert":
            raise ValueError(output)
        return output

    return run


def offered(tools: Tools | Workspace) -> list[str]:
    """Lists the tools to offer."""
    return ["convert"] if isinstance(tools, Tools) else ["read_file", "edit_file", "run_tests", "search"]


def attempt(run: Callable[[str, Any], Any], name: str, arguments: Any) -> tuple[str, Exception | None]:
    """Runs a tool as a loop does that knows whether it failed. Returns the text for the model, and the error."""
    try:
        output = run(name, json.loads(arguments) if isinstance(arguments, str) else arguments)
        return output if isinstance(output, str) else json.dumps(output), None
    except Exception as error:
        return f"{type(error).__name__}: {error}", error


def by_hand(run: Callable[[str, Any], Any], name: str, arguments: Any) -> str:
    """Runs a tool as a loop without deloop does, with the same texts for errors."""
    return attempt(run, name, arguments)[0]


class Notebook:
    """A real guard that notes all steps and decisions."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("deliver", "tool")
        self._guard = deloop.Guard(**options)
        self._noted = threading.Condition()
        self.steps: list[dict[str, Any]] = []
        self.decisions: list[Any] = []

    def observe(self, step: dict[str, Any]) -> Any:
        """Notes a step and its decision."""
        decision = self._guard.observe(step)
        with self._noted:
            self.steps.append(json.loads(json.dumps(step, default=str)))
            self.decisions.append(decision)
            self._noted.notify_all()
        return decision

    def wait_for(self, kind: str, count: int) -> None:
        """Waits until this many steps of a kind are noted; fails instead of hanging."""
        with self._noted:
            assert self._noted.wait_for(lambda: len(self.all(kind)) >= count, HANGS), f"{kind}: {self.all(kind)}"

    def checkpoint(self, session: str) -> Any:
        """Passes the call on."""
        return self._guard.checkpoint(session)

    def restore(self, session: str, text: str) -> Any:
        """Passes the call on."""
        return self._guard.restore(session, text)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Lists the steps of one kind."""
        return [step for step in self.steps if step["type"] == kind]

    @property
    def actions(self) -> list[str]:
        """Lists what was decided, `continue` aside."""
        return [decision.action for decision in self.decisions if decision.action != "continue"]
