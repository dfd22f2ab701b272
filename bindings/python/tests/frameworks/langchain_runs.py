"""What the tests of LangChain share: agents against the fake model."""

from __future__ import annotations

import os
from typing import Any

from deloop.langchain import DeloopMiddleware
from fake_model import FakeModel
from harness import Workspace
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_openai import ChatOpenAI
from plain_loops import BLOCKED, NUDGE, SECOND, STOPPED, Notebook

os.environ["LANGSMITH_TRACING"] = "false"

__all__ = [
    "BLOCKED",
    "HELLO",
    "NUDGE",
    "SECOND",
    "STOPPED",
    "DeloopMiddleware",
    "Notebook",
    "agent_for",
    "chat",
    "healthy_agent",
    "thread",
    "watched",
]
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


def watched(**options: Any) -> tuple[DeloopMiddleware, Notebook]:
    """Returns a middleware and the notebook of its guard."""
    notebook = Notebook()
    return DeloopMiddleware(guard=notebook, **options), notebook  # type: ignore[arg-type]
