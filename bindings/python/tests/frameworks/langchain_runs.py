"""What the tests of LangChain share: agents against the fake model."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from deloop.langchain import DeloopMiddleware
from fake_model import FakeModel
from harness import Tools as PlainTools
from harness import Workspace
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.tools import StructuredTool, ToolException
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
    "Tools",
    "agent_for",
    "chat",
    "healthy_agent",
    "reporting",
    "thread",
    "watched",
]
HELLO = {"messages": [("user", "Fetch the data.")]}


def reporting(function: Callable[..., str]) -> StructuredTool:
    """Returns a tool that reports the text of a function as an error: its results have the status "error"."""

    def fail(*args: Any, **kwargs: Any) -> str:
        raise ToolException(function(*args, **kwargs))

    return StructuredTool.from_function(functools.wraps(function)(fail), handle_tool_error=True)


class Tools(PlainTools):
    """Offers the failing tool as one that reports its error to LangChain."""

    def __init__(self, error: str = "Error: no such table: orders") -> None:
        super().__init__(error)
        self.convert = reporting(super().convert)  # type: ignore[method-assign, assignment]


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
