"""The row of LangChain: what the middleware does in real runs."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from typing import Any

import deloop
import pytest
from deloop.langchain import DeloopMiddleware
from fake_model import FakeModel
from harness import BrokenGuard, assert_same_requests, first_with, place_of, run_page_program, run_python, write_row
from langchain_core.messages import AIMessage, ToolMessage
from langchain_runs import BLOCKED, HELLO, NUDGE, SECOND, STOPPED, Tools, agent_for, chat, healthy_agent, thread, watched
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from model_scripts import healthy, same_failing_batch, same_failing_call


def row(**cells: str) -> None:
    write_row("langchain", version=version("langchain"), **cells)


def test_without_deloop_the_run_goes_on_to_the_recursion_limit() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        agent = agent_for(model, [tools.convert])
        assert agent.config["recursion_limit"] == 9_999
        with pytest.raises(GraphRecursionError):
            agent.invoke(HELLO, {"recursion_limit": 200})
        assert len(model.requests) == 100
    row(own_limit="recursion_limit 9,999: about 5,000 requests")


@pytest.mark.parametrize("how", ["invoke", "stream", "ainvoke", "astream", "tokens"])
def test_the_agent_is_nudged_then_refused_then_stopped(how: str) -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        middleware, notebook = watched()
        agent = agent_for(model, [tools.convert], middleware)
        messages = _run(agent, how)
    assert model.refused == []
    assert (first_with(model.requests, NUDGE), place_of(model.requests[3], NUDGE)) == (3, "tool")
    assert (first_with(model.requests, SECOND), first_with(model.requests, BLOCKED)) == (5, 6)
    assert len(tools.ran) == 5 and len(model.requests) == 8
    assert notebook.actions[:5] == ["nudge", "nudge", "block", "block", "stop"]
    assert isinstance(messages[-1], AIMessage) and messages[-1].text.startswith(STOPPED)
    assert messages[-1].response_metadata["deloop"]["status"] == "LOOP_DETECTED"
    assert all(step["output"] == tools.error for step in notebook.all("result") if step.get("outcome") != "denied")
    assert {step["ok"] for step in notebook.all("delivery")} == {True}
    row(
        nudge="end of the tool result, in the 4th request and in all later ones",
        block="calls 6 and 7 refused; 5 of 7 ran",
        stop="normal return; last message says why, `response_metadata['deloop']` is the decision",
    )


def _run(agent: Any, how: str) -> list[Any]:
    async def collect() -> list[Any]:
        return [event async for event in agent.astream(HELLO)]

    if how == "invoke":
        return list(agent.invoke(HELLO)["messages"])
    if how == "ainvoke":
        return list(asyncio.run(agent.ainvoke(HELLO))["messages"])
    if how == "tokens":
        events = list(agent.stream(HELLO, stream_mode=["messages", "values"]))
        return list(events[-1][1]["messages"])
    events = list(agent.stream(HELLO)) if how == "stream" else asyncio.run(collect())
    return [message for event in events for update in event.values() for message in update["messages"]]


def test_a_streaming_model_is_watched_too() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        from langchain.agents import create_agent

        middleware, notebook = watched()
        create_agent(chat(model, streaming=True, stream_usage=True), [tools.convert], middleware=[middleware]).invoke(HELLO)
        assert all(request.body["stream"] for request in model.requests)
    assert (len(tools.ran), len(model.requests), model.refused) == (5, 8, [])
    assert len(notebook.all("usage")) == 8


def test_parallel_calls_climb_one_rung_a_turn() -> None:
    tools = Tools()
    with FakeModel(same_failing_batch()) as model:
        middleware, notebook = watched()
        out = agent_for(model, [tools.convert], middleware).invoke(HELLO)
    assert model.refused == [] and len(model.requests) < 12
    assert all(len(step["calls"]) == 3 for step in notebook.all("turn"))
    per_turn: dict[int, int] = {}
    turn = 0
    for step, decision in zip(notebook.steps, notebook.decisions, strict=True):
        turn += step["type"] == "turn"
        if decision.action in ("nudge", "block"):
            per_turn[turn] = per_turn.get(turn, 0) + 1
    assert per_turn and max(per_turn.values()) == 1
    assert out["messages"][-1].text.startswith(STOPPED)
    last_calls = next(
        message for message in reversed(out["messages"]) if isinstance(message, AIMessage) and message.tool_calls
    )
    answered = {message.tool_call_id for message in out["messages"] if isinstance(message, ToolMessage)}
    assert {call["id"] for call in last_calls.tool_calls} <= answered


def test_exit_behavior_error_raises_and_leaves_a_valid_thread() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        agent = agent_for(model, [tools.convert], DeloopMiddleware(exit_behavior="error"), checkpointer=InMemorySaver())
        with pytest.raises(deloop.StopError) as raised:
            agent.invoke(HELLO, thread("t"))
        assert raised.value.decision.status == "LOOP_DETECTED"
        assert (len(tools.ran), len(model.requests)) == (5, 8)
        model.script = lambda request: "I can't reach it."
        out = agent.invoke({"messages": [("user", "What happened?")]}, thread("t"))
        assert out["messages"][-1].text == "I can't reach it." and model.refused == []
    row(stop_error="deloop.StopError; the thread stays valid")


def test_new_text_by_a_person_lifts_the_stop() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        middleware, notebook = watched()
        agent = agent_for(model, [tools.convert], middleware, checkpointer=InMemorySaver())
        agent.invoke(HELLO, thread("t"))
        assert len(model.requests) == 8
        again = agent.invoke({"messages": [("user", "Try again, the server is up.")]}, thread("t"))
    assert model.refused == []
    assert len(model.requests) > 8 and len(tools.ran) > 5
    assert again["messages"][-1].text.startswith(STOPPED)
    assert [step["text"] for step in notebook.all("user")] == ["Fetch the data.", "Try again, the server is up."]


def test_a_healthy_run_sends_the_same_requests() -> None:
    runs = []
    seen: list[Any] = []
    for middleware in ([], [DeloopMiddleware(on_decision=seen.append)]):
        with FakeModel(healthy(30)) as model:
            healthy_agent(model, *middleware).invoke(HELLO)
            runs.append(model.requests)
    count = assert_same_requests(*runs)
    assert count == 31 and seen == []
    row(healthy=f"{count} of {count} requests identical")


def test_a_crash_inside_deloop_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    runs, ran = [], []
    for middleware in ([], [DeloopMiddleware(guard=BrokenGuard())]):  # type: ignore[arg-type]
        tools = Tools()
        with FakeModel(same_failing_batch(turns=20)) as model:
            agent_for(model, [tools.convert], *middleware).invoke(HELLO)
            runs.append(model.requests)
            ran.append(len(tools.ran))
    assert assert_same_requests(*runs) == 21 and ran == [60, 60]
    told = [record for record in caplog.records if record.name == "deloop"]
    assert 0 < len(told) <= 8 and len({record.getMessage() for record in told}) == len(told)
    row(crash="21 of 21 requests identical, logged once per kind")


def test_decisions_are_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    with caplog.at_level(logging.INFO, "deloop"), FakeModel(same_failing_call()) as model:
        agent_for(model, [Tools().convert], DeloopMiddleware(on_decision=seen.append)).invoke(HELLO)
    assert [decision.action for decision in seen] == ["nudge", "nudge", "block", "block", "stop"]
    levels = [record.levelno for record in caplog.records if record.name == "deloop"]
    assert levels == [logging.WARNING] * 4 + [logging.ERROR]


def test_a_callback_that_raises_changes_nothing() -> None:
    tools = Tools()

    def callback(decision: Any) -> None:
        raise RuntimeError("a bug in the callback")

    with FakeModel(same_failing_call()) as model:
        out = agent_for(model, [tools.convert], DeloopMiddleware(on_decision=callback)).invoke(HELLO)
    assert len(tools.ran) == 5 and out["messages"][-1].text.startswith(STOPPED)


RESUMED = """
import os, sys, sqlite3
from langchain_runs import *
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
agent = agent_for(model, [convert], DeloopMiddleware(), checkpointer=saver)
started = saver.get(thread("t")) is not None
out = agent.invoke(None if started else HELLO, thread("t"), durability="sync")
print(out["messages"][-1].text)
"""


@pytest.mark.parametrize("die_at", [2, 3, 4, 5])
def test_a_new_process_continues_where_the_old_one_was(tmp_path: Any, die_at: int) -> None:
    with FakeModel(same_failing_call()) as whole:
        run_python(RESUMED, str(tmp_path / "whole.db"), whole.url, "0")
    with FakeModel(same_failing_call()) as model:
        run_python(RESUMED, str(tmp_path / "t.db"), model.url, str(die_at))
        before = len(model.requests)
        last = run_python(RESUMED, str(tmp_path / "t.db"), model.url, "0")
    assert (before, model.refused) == (die_at, [])
    assert last.startswith(STOPPED)
    assert assert_same_requests(whole.requests, model.requests) == 8
    row(resume="killed in a tool and resumed by a new process: requests identical to those of an unbroken run")


def test_the_program_of_the_page_runs() -> None:
    with FakeModel(same_failing_call()) as model:
        printed = run_page_program("langchain", model)
    assert model.refused == [] and len(model.requests) == 8
    assert STOPPED in printed
