"""What the tests of LangChain share: agents against the fake model, and a guard that notes what it is shown."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import deloop
from deloop.langchain import DeloopMiddleware
from fake_model import FakeModel
from harness import Workspace
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_openai import ChatOpenAI

os.environ["LANGSMITH_TRACING"] = "false"

NUDGE = "[deloop] You ran `fetch https://example.test/data` 3 times"
SECOND = "[deloop] This is the second warning."
BLOCKED = "[deloop] Blocked."
STOPPED = "[deloop] Stopped:"
HELLO = {"messages": [("user", "Fetch the data.")]}


def chat(model: FakeModel, **options: Any) -> ChatOpenAI:
    """Returns a chat model that talks to the fake one."""
    return ChatOpenAI(model="fake-model", base_url=model.url, api_key="fake", max_retries=0, **options)


def agent_for(model: FakeModel, tools: list[Any], *middleware: Any, **options: Any) -> Any:
    """Returns an agent that talks to the fake model."""
    return create_agent(chat(model), tools, middleware=list(middleware), **options)


def healthy_agent(model: FakeModel, *middleware: Any) -> Any:
    """Returns an agent with the tools of the healthy run; errors of tools become results."""
    told = ToolErrorMiddleware(on_error=lambda error, request: f"{type(error).__name__}: {error}")
    return agent_for(model, Workspace().tools, *middleware, told)


def thread(name: str) -> Any:
    """Returns the config of a thread."""
    return {"configurable": {"thread_id": name}}


class Notebook:
    """A real guard that notes all steps and decisions."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("deliver", "tool")
        self._guard = deloop.Guard(**options)
        self._lock = threading.Lock()
        self.steps: list[dict[str, Any]] = []
        self.decisions: list[Any] = []

    def observe(self, step: dict[str, Any]) -> Any:
        """Notes a step and its decision."""
        decision = self._guard.observe(step)
        with self._lock:
            self.steps.append(json.loads(json.dumps(step, default=str)))
            self.decisions.append(decision)
        return decision

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


def watched(**options: Any) -> tuple[DeloopMiddleware, Notebook]:
    """Returns a middleware and the notebook of its guard."""
    notebook = Notebook()
    return DeloopMiddleware(guard=notebook, **options), notebook  # type: ignore[arg-type]
