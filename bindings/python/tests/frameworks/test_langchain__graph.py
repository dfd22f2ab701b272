"""The tool-node wrapper in graphs that aren't made by `create_agent`."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import deloop
import pytest
from deloop.langchain import wrap_tool_call
from fake_model import FakeModel
from harness import BrokenGuard, Workspace, assert_same_requests, first_with, place_of, run_python, write_row
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_runs import BLOCKED, HELLO, NUDGE, STOPPED, Notebook, Tools, chat, reporting, thread
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from model_scripts import healthy, same_failing_batch, same_failing_call


def build(
    model: FakeModel, tools: list[Any], guard: Any = None, route: bool = True, check: bool = False, **options: Any
) -> Any:
    """Returns a hand-written graph: a model node, a tool node, and the edges between them."""
    llm = chat(model).bind_tools(tools)

    def call_model(state: MessagesState) -> dict[str, Any]:
        if check:
            guard.check(state)
        return {"messages": [llm.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", call_model)
    errors = {"handle_tool_errors": lambda error: f"{type(error).__name__}: {error}"}
    wraps = {"wrap_tool_call": guard, "awrap_tool_call": guard.awrap} if guard is not None else {}
    graph.add_node("tools", ToolNode(tools, **errors, **wraps))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    if guard is not None and route:
        graph.add_conditional_edges("tools", guard.route("model"), ["model", "__end__"])
    else:
        graph.add_edge("tools", "model")
    return graph.compile(**options)


def noted(**options: Any) -> tuple[Any, Notebook]:
    """Returns a wrapper and the notebook of its guard."""
    notebook = Notebook()
    return wrap_tool_call(notebook, **options), notebook  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_graph_is_nudged_then_refused_then_ended(how: str) -> None:
    tools = Tools()
    guard, notebook = noted()
    with FakeModel(same_failing_call()) as model:
        app = build(model, [tools.convert], guard)
        out = app.invoke(HELLO) if how == "invoke" else asyncio.run(app.ainvoke(HELLO))
    assert model.refused == []
    assert (first_with(model.requests, NUDGE), place_of(model.requests[3], NUDGE)) == (3, "tool")
    assert first_with(model.requests, BLOCKED) == 6
    assert (len(tools.ran), len(model.requests)) == (5, 8)
    assert notebook.actions[:5] == ["nudge", "nudge", "block", "block", "stop"]
    last = out["messages"][-1]
    assert isinstance(last, ToolMessage) and last.text.startswith(STOPPED)
    assert last.response_metadata["deloop"]["status"] == "LOOP_DETECTED"
    write_row("langchain", own_graph="nudge from request 3, function ran 5 times, ended by `route`")


def test_without_it_the_graph_goes_on_to_its_limit() -> None:
    with FakeModel(same_failing_call()) as model:
        with pytest.raises(GraphRecursionError):
            build(model, [Tools().convert]).invoke(HELLO, {"recursion_limit": 50})
        assert len(model.requests) == 25


def test_parallel_calls_are_one_turn() -> None:
    tools = Tools()
    guard, notebook = noted()
    with FakeModel(same_failing_batch()) as model:
        out = build(model, [tools.convert], guard).invoke(HELLO)
    assert model.refused == [] and all(len(step["calls"]) == 3 for step in notebook.all("turn"))
    assert len(notebook.all("turn")) == len(model.requests)
    assert [message.text[:17] for message in out["messages"][-3:]] == [STOPPED] * 3


def test_error_raises_after_all_calls_are_answered() -> None:
    guard, _ = noted()
    with FakeModel(same_failing_batch()) as model:
        app = build(model, [Tools().convert], guard, route=False, check=True, checkpointer=InMemorySaver())
        with pytest.raises(deloop.StopError) as raised:
            app.invoke(HELLO, thread("t"))
        assert raised.value.decision.status == "LOOP_DETECTED"
        model.script = lambda request: "I can't reach it."
        out = app.invoke({"messages": [("user", "What happened?")]}, thread("t"))
    assert model.refused == [] and out["messages"][-1].text == "I can't reach it."


def test_without_a_route_the_call_after_the_stop_raises() -> None:
    tools = Tools()
    guard, _ = noted()
    with FakeModel(same_failing_call()) as model:
        with pytest.raises(deloop.StopError):
            build(model, [tools.convert], guard, route=False).invoke(HELLO)
    assert (len(tools.ran), len(model.requests), model.refused) == (5, 9, [])


def test_new_text_by_a_person_lifts_the_stop() -> None:
    tools = Tools()
    guard, notebook = noted()
    with FakeModel(same_failing_call()) as model:
        app = build(model, [tools.convert], guard, checkpointer=InMemorySaver())
        app.invoke(HELLO, thread("t"))
        app.invoke({"messages": [("user", "Try again.")]}, thread("t"))
    assert model.refused == [] and len(tools.ran) > 5
    assert [step["text"] for step in notebook.all("user")] == ["Fetch the data.", "Try again."]
    assert {step["session"] for step in notebook.steps} == {"t"}


def test_runs_without_a_thread_are_sessions_of_their_own() -> None:
    guard, notebook = noted()
    with FakeModel(same_failing_call(turns=2)) as model:
        app = build(model, [Tools().convert], guard)
        for _ in range(3):
            app.invoke(HELLO)
    assert len({step["session"] for step in notebook.steps}) == 3 and notebook.actions == []


@pytest.mark.parametrize("named", [True, False])
def test_users_whose_conversations_begin_alike_are_sessions_of_their_own(named: bool) -> None:
    """A graph whose messages begin with one system message, which has one id or none."""
    guard, notebook = noted()
    system = SystemMessage("You convert files.", id="system" if named else None)
    with FakeModel(same_failing_call(turns=2)) as model:
        app = build(model, [Tools().convert], guard)
        for user in range(12):
            app.invoke({"messages": [system, ("user", f"I'm user {user}.")]})
    assert len({step["session"] for step in notebook.steps}) == 12 and notebook.actions == []


def test_runs_at_the_same_time_are_sessions_of_their_own() -> None:
    guard, notebook = noted()
    system = SystemMessage("You convert files.", id="system")
    with FakeModel(same_failing_call(turns=2)) as model:
        app = build(model, [Tools().convert], guard)

        async def all_of_them() -> None:
            await asyncio.gather(*(app.ainvoke({"messages": [system, ("user", f"I'm user {n}.")]}) for n in range(8)))

        asyncio.run(all_of_them())
    assert len({step["session"] for step in notebook.steps}) == 8 and notebook.actions == []


def test_a_run_without_a_thread_is_one_session() -> None:
    guard, notebook = noted()
    with FakeModel(same_failing_call(turns=4)) as model:
        build(model, [Tools().convert], guard).invoke(HELLO)
    assert len({step["session"] for step in notebook.steps}) == 1 and notebook.actions == ["nudge"]


def test_a_healthy_graph_sends_the_same_requests_and_so_does_a_broken_guard() -> None:
    runs = []
    for guard in (None, wrap_tool_call(), wrap_tool_call(BrokenGuard())):  # type: ignore[arg-type]
        with FakeModel(healthy(30)) as model:
            build(model, Workspace().tools, guard).invoke(HELLO)
            runs.append(model.requests)
    assert assert_same_requests(runs[0], runs[1]) == assert_same_requests(runs[0], runs[2]) == 31


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_create_react_agent(how: str) -> None:
    from langgraph.prebuilt import create_react_agent

    tools = Tools()
    guard, _ = noted()
    with FakeModel(same_failing_batch()) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = ToolNode([tools.convert], wrap_tool_call=guard, awrap_tool_call=guard.awrap)
        app = create_react_agent(guard.model(chat(model).bind_tools([tools.convert])), node, checkpointer=InMemorySaver())
        out = app.invoke(HELLO, thread("t")) if how == "invoke" else asyncio.run(app.ainvoke(HELLO, thread("t")))
        ran = len(tools.ran)
        again = app.invoke({"messages": [("user", "Try again.")]}, thread("t"))
    assert model.refused == []
    assert isinstance(out["messages"][-1], AIMessage) and out["messages"][-1].text.startswith(STOPPED)
    assert len(tools.ran) > ran and again["messages"][-1].text.startswith(STOPPED)


def test_create_react_agent_with_error() -> None:
    from langgraph.prebuilt import create_react_agent

    tools = Tools()
    guard, _ = noted(exit_behavior="error")
    with FakeModel(same_failing_call()) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = ToolNode([tools.convert], wrap_tool_call=guard, awrap_tool_call=guard.awrap)
        with pytest.raises(deloop.StopError):
            create_react_agent(guard.model(chat(model).bind_tools([tools.convert])), node).invoke(HELLO)
    assert (len(tools.ran), len(model.requests), model.refused) == (5, 8, [])


RESUMED = """
import os, sys, sqlite3
from test_langchain__graph import *
from langgraph.checkpoint.sqlite import SqliteSaver

path, url, die_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
ran = [0]

@reporting
def convert(url: str) -> str:
    "Convert a page."
    ran[0] += 1
    if ran[0] == die_at:
        os._exit(0)
    return "Error: no such table: orders"

class Model:
    pass

model = Model()
model.url = url
saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
app = build(model, [convert], wrap_tool_call(), checkpointer=saver)
started = saver.get(thread("t")) is not None
print(app.invoke(None if started else HELLO, thread("t"), durability="sync")["messages"][-1].text)
"""


@pytest.mark.parametrize("die_at", [3, 4])
def test_a_new_process_reads_the_conversation_again(tmp_path: Any, die_at: int) -> None:
    with FakeModel(same_failing_call()) as whole:
        run_python(RESUMED, str(tmp_path / "whole.db"), whole.url, "0")
    with FakeModel(same_failing_call()) as model:
        run_python(RESUMED, str(tmp_path / "t.db"), model.url, str(die_at))
        last = run_python(RESUMED, str(tmp_path / "t.db"), model.url, "0")
    assert model.refused == [] and last.startswith(STOPPED)
    assert assert_same_requests(whole.requests, model.requests) == 8
