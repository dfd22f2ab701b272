"""The traps of LangChain's hook points, each as a run."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import pytest
from deloop.langchain import DeloopMiddleware
from fake_model import FakeModel
from harness import HANGS, first_with
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langchain_runs import HELLO, NUDGE, STOPPED, Notebook, Tools, agent_for, reporting, thread, watched
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command
from model_scripts import same_batch, same_failing_batch, same_failing_call


def test_no_node_is_added_and_the_recursion_limit_means_the_same() -> None:
    counts, nodes = [], []
    for middleware in ([], [DeloopMiddleware(mode="observe")]):
        with FakeModel(same_failing_call()) as model:
            agent = agent_for(model, [Tools().convert], *middleware)
            nodes.append(sorted(agent.get_graph().nodes))
            with pytest.raises(GraphRecursionError):
                agent.invoke(HELLO, {"recursion_limit": 25})
            counts.append(len(model.requests))
    assert counts == [13, 13] and nodes[0] == nodes[1]


def test_calls_arrive_in_any_order_and_the_turn_keeps_its_own() -> None:
    middleware, notebook = watched()

    def convert(url: str) -> str:
        "Convert a page."
        notebook.wait_for("result", "cba".index(url[-1]))
        return f"Error: no such table: orders {url}"

    with FakeModel(same_failing_batch(turns=1)) as model:
        agent_for(model, [convert], middleware).invoke(HELLO)
    turn = notebook.all("turn")[0]
    assert [call["args"]["url"][-1] for call in turn["calls"]] == ["a", "b", "c"]
    by_id = {call["id"]: call["args"]["url"] for call in turn["calls"]}
    results = notebook.all("result")
    assert [by_id[step["id"]][-1] for step in results] == ["c", "b", "a"]
    assert all(step["output"].endswith(by_id[step["id"]]) for step in results)


def test_a_resumed_call_has_the_same_id_and_counts_once() -> None:
    middleware, notebook = watched()
    broken = [True]

    def convert(url: str) -> str:
        "Convert a page."
        if len(model.requests) == 3 and broken.pop():
            raise ConnectionError("the machine went away")
        return "Error: no such table: orders"

    with FakeModel(same_failing_call()) as model:
        agent = agent_for(model, [reporting(convert)], middleware, checkpointer=InMemorySaver())
        broken = [False, True]
        with pytest.raises(ConnectionError):
            agent.invoke(HELLO, thread("t"))
        out = agent.invoke(None, thread("t"))
    assert model.refused == [] and len(model.requests) == 8
    assert len(notebook.all("turn")) == 8
    ids = [step["id"] for step in notebook.all("result")]
    assert len(ids) == len(set(ids)) == 8
    assert out["messages"][-1].text.startswith(STOPPED)


def test_a_sibling_that_finished_before_the_crash_is_reported_after_it() -> None:
    failed: list[str] = []
    saver, siblings_saved = InMemorySaver(), threading.Event()
    put_writes, saved = saver.put_writes, set[str]()

    def put_and_count(config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        put_writes(config, writes, task_id, task_path)
        if any(channel == "messages" for channel, _ in writes):
            saved.add(task_id)
        if len(saved) == 2:
            siblings_saved.set()

    saver.put_writes = put_and_count  # type: ignore[method-assign]

    def convert(url: str) -> str:
        "Convert a page."
        if url.endswith("a") and not failed:
            assert siblings_saved.wait(HANGS)
            failed.append(url)
            raise ConnectionError("the machine went away")
        return "Error: no such table: orders"

    with FakeModel(same_failing_batch(turns=2)) as model:
        with pytest.raises(ConnectionError):
            agent_for(model, [convert], watched()[0], checkpointer=saver).invoke(HELLO, thread("t"))
        middleware, notebook = watched()
        agent_for(model, [convert], middleware, checkpointer=saver).invoke(None, thread("t"))
    first = {step["id"] for step in notebook.all("result")[:3]}
    assert model.refused == [] and len(first) == 3 and len(notebook.all("result")) == 6


def test_the_state_is_private_and_kept_by_the_checkpointer() -> None:
    with FakeModel(same_failing_call(turns=2)) as model:
        agent = agent_for(model, [Tools().convert], DeloopMiddleware(), checkpointer=InMemorySaver())
        out = agent.invoke(HELLO, thread("t"))
        kept = agent.get_state(thread("t")).values
    assert set(out) == {"messages"}
    assert kept["deloop"]["session"] == "t" and kept["deloop"]["saved"]["turns"] == 3
    assert "deloop" not in agent.get_output_jsonschema()["properties"]
    assert "deloop" not in agent.get_input_jsonschema()["properties"]


def test_each_thread_is_a_session_and_a_run_without_one_too() -> None:
    tools = Tools()
    middleware, notebook = watched()
    with FakeModel(same_failing_call(turns=2)) as model:
        agent = agent_for(model, [tools.convert], middleware, checkpointer=InMemorySaver())
        plain = agent_for(model, [tools.convert], middleware)
        workers = [threading.Thread(target=agent.invoke, args=(HELLO, thread(f"t{n}"))) for n in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        plain.invoke(HELLO)
        plain.invoke(HELLO)
    sessions = {step["session"] for step in notebook.steps}
    assert {"t0", "t1", "t2", "t3"} < sessions and len(sessions) == 6
    assert notebook.actions == [], "12 failing calls in all, but never 3 in one session"


def test_an_explicit_session_and_a_shared_guard() -> None:
    guard = Notebook()
    with FakeModel(same_failing_call()) as model:
        for name in ("a", "b"):
            agent_for(model, [Tools().convert], DeloopMiddleware(guard=guard, session=name)).invoke(HELLO)  # type: ignore[arg-type]
    assert {step["session"] for step in guard.steps} == {"a", "b"}
    with pytest.raises(TypeError, match="either guard= or"):
        DeloopMiddleware(guard=guard, mode="nudge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exit_behavior"):
        DeloopMiddleware(exit_behavior="continue")  # type: ignore[arg-type]


def test_a_raising_tool_ends_the_run_as_without_deloop() -> None:
    middleware, notebook = watched()
    for extra in ([], [middleware]):
        tools = Tools()
        with FakeModel(same_failing_call()) as model:
            with pytest.raises(ConnectionError, match="no such table"):
                agent_for(model, [tools.raising], *extra).invoke(HELLO)
            assert (len(tools.ran), len(model.requests)) == (1, 1)
    assert notebook.all("result") == [], "a resumed run calls the tool again"


@pytest.mark.parametrize("call", [("convert", {"link": "x"}), ("no_such_tool", {"url": "x"})])
def test_calls_that_never_run_are_failures(call: Any) -> None:
    tools = Tools()
    middleware, notebook = watched()
    with FakeModel(same_batch([call])) as model:
        out = agent_for(model, [tools.convert], middleware).invoke(HELLO)
    assert tools.ran == [] and model.refused == []
    results = [step for step in notebook.all("result") if step.get("outcome") != "denied"]
    assert {step["ok"] for step in results} == {False}
    assert {step.get("outcome") for step in results} == ({"invalid"} if call[0] == "no_such_tool" else {None})
    assert out["messages"][-1].text.startswith(STOPPED)


def test_malformed_arguments_are_part_of_the_turn() -> None:
    middleware, notebook = watched()
    with FakeModel(same_failing_call(args='{"url": ', turns=1)) as model:
        agent_for(model, [Tools().convert], middleware).invoke(HELLO)
    assert model.refused == []
    (call,) = notebook.all("turn")[0]["calls"]
    assert (call["tool"], call["args"]) == ("convert", '{"url": ')


def test_a_nudge_goes_into_the_message_of_a_command() -> None:
    @tool
    def convert(url: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        "Convert a page."
        text = "Error: no such table: orders"
        return Command(update={"messages": [ToolMessage(text, status="error", tool_call_id=tool_call_id)]})

    with FakeModel(same_failing_call()) as model:
        agent_for(model, [convert], DeloopMiddleware()).invoke(HELLO)
    assert first_with(model.requests, NUDGE) == 3 and model.refused == []


def test_a_nudge_follows_content_blocks() -> None:
    @tool
    def convert(url: str) -> list[dict[str, str]]:
        "Convert a page."
        return [{"type": "text", "text": "Error: no such table: orders"}]

    middleware, notebook = watched()
    with FakeModel(same_failing_call(turns=6)) as model:
        agent_for(model, [convert], middleware).invoke(HELLO)
    assert model.refused == [] and "nudge" in notebook.actions
    first_with(model.requests, "[deloop] You ran `convert https://example.test/data`")
    outputs = [step["output"] for step in notebook.all("result") if "output" in step]
    assert all("[deloop]" not in str(output) for output in outputs)


def test_an_older_checkpoint_brings_the_older_state_back() -> None:
    tools = Tools()
    middleware, _ = watched()
    with FakeModel(same_failing_call()) as model:
        agent = agent_for(model, [tools.convert], middleware, checkpointer=InMemorySaver())
        agent.invoke(HELLO, thread("t"))
        early = [
            state
            for state in agent.get_state_history(thread("t"))
            if state.next == ("model",) and len(state.values["messages"]) == 3
        ]
        model.reset()
        tools.ran.clear()
        agent.invoke(None, early[0].config)
    assert model.refused == [] and len(model.requests) == 7 and len(tools.ran) == 4
    assert first_with(model.requests, NUDGE) == 2


def test_a_run_without_memory_reads_the_conversation_again() -> None:
    tools = Tools()
    with FakeModel(same_failing_call(turns=4)) as model:
        out = agent_for(model, [tools.convert], DeloopMiddleware()).invoke(HELLO)
        past = out["messages"][:-1]
        model.script = same_failing_call()
        middleware, notebook = watched()
        tools.ran.clear()
        summary = HumanMessage("Summary: nothing yet.", additional_kwargs={"lc_source": "summarization"})
        agent_for(model, [tools.convert], middleware).invoke({"messages": [summary, *past]})
    assert model.refused == []
    assert [step["text"] for step in notebook.all("user")] == ["Fetch the data."]
    assert len(tools.ran) == 1 and notebook.actions[:5] == ["nudge", "nudge", "block", "block", "stop"]


def test_usage_is_reported_with_the_model() -> None:
    middleware, notebook = watched()
    with FakeModel(same_failing_call(turns=1)) as model:
        agent_for(model, [Tools().convert], middleware).invoke(HELLO)
    usage = notebook.all("usage")
    assert len(usage) == 2 and usage[0]["model"] == "fake-model"
    assert usage[0]["input_tokens"] > 0 and usage[0]["output_tokens"] > 0


def test_stream_shows_our_messages_as_results_of_tools() -> None:
    with FakeModel(same_failing_call()) as model:
        events = list(agent_for(model, [Tools().convert], DeloopMiddleware()).stream(HELLO))
    assert [set(event) for event in events] == [{"model"}, {"tools"}] * 7 + [{"model"}]
    assert NUDGE in events[5]["tools"]["messages"][0].text
    assert not any(isinstance(m, HumanMessage) for event in events for update in event.values() for m in update["messages"])
    assert [type(message) for message in events[-1]["model"]["messages"]] == [AIMessage, ToolMessage, AIMessage]


def test_many_asynchronous_runs_on_one_middleware() -> None:
    middleware, notebook = watched()

    async def all_runs() -> list[Any]:
        with FakeModel(same_failing_batch()) as model:
            agent = agent_for(model, [Tools().convert], middleware, checkpointer=InMemorySaver())
            outs = await asyncio.gather(*(agent.ainvoke(HELLO, thread(f"t{n}")) for n in range(8)))
            assert model.refused == []
            return outs

    outs = asyncio.run(all_runs())
    assert all(out["messages"][-1].text.startswith(STOPPED) for out in outs)
    turns = {name: 0 for name in {step["session"] for step in notebook.steps}}
    for step in notebook.all("turn"):
        turns[step["session"]] += 1
    assert len(turns) == 8 and len(set(turns.values())) == 1, turns


def test_anthropic_messages_are_in_a_valid_order() -> None:
    from langchain_anthropic import ChatAnthropic

    tools = Tools()
    with FakeModel(same_failing_batch()) as model:
        llm = ChatAnthropic(model_name="fake-model", base_url=model.root, api_key="fake", max_retries=0)
        agent = create_agent(llm, [tools.convert], middleware=[DeloopMiddleware()], checkpointer=InMemorySaver())
        out = agent.invoke(HELLO, thread("t"))
        model.script = lambda request: "I can't reach it."
        agent.invoke({"messages": [("user", "What happened?")]}, thread("t"))
    assert model.refused == [] and out["messages"][-1].text.startswith(STOPPED)
