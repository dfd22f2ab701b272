"""Other middleware, subagents, people and graphs around a guarded agent."""

from __future__ import annotations

from typing import Any

import deloop
import pytest
from deloop.langchain import DeloopMiddleware
from fake_model import Failure, FakeModel, Request
from harness import assert_same_requests, first_with
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_runs import HELLO, NUDGE, STOPPED, Tools, agent_for, chat, thread, watched
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, interrupt
from model_scripts import URL, same_failing_batch, same_failing_call
from model_wire import Reply


@pytest.mark.parametrize("outermost", [True, False])
def test_a_retried_call_counts_once(outermost: bool) -> None:
    tools = Tools()
    middleware, notebook = watched()
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, on_failure="continue")
    order = [middleware, retry] if outermost else [retry, middleware]
    with FakeModel(same_failing_call()) as model:
        agent_for(model, [tools.raising], *order).invoke(HELLO)
    assert model.refused == []
    assert len(notebook.all("turn")) == len(model.requests) == 8
    assert len(tools.ran) == 15, "5 calls, each tried 3 times"
    assert len(notebook.all("result")) == 8 and {step["ok"] for step in notebook.all("result")[:5]} == {False}
    assert first_with(model.requests, NUDGE.replace("convert", "raising")) == 3


@pytest.mark.parametrize("outermost", [True, False])
def test_a_call_that_a_retry_saves_is_no_failure(outermost: bool) -> None:
    tries: list[str] = []

    def convert(url: str) -> str:
        "Convert a page."
        tries.append(url)
        if len(tries) % 2:
            raise ConnectionError("try again")
        return f"page {len(tries)}"

    middleware, notebook = watched()
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    order = [middleware, retry] if outermost else [retry, middleware]
    with FakeModel(same_failing_call(turns=6)) as model:
        agent_for(model, [convert], *order).invoke(HELLO)
    assert [step["output"] for step in notebook.all("result")] == [f"page {n}" for n in range(2, 14, 2)]
    assert notebook.actions == []


def test_a_request_that_is_tried_again_is_one_turn() -> None:
    script, tried = same_failing_call(), []

    def flaky(request: Request) -> Any:
        tried.append(request.turns)
        return Failure(503, "overloaded") if tried.count(request.turns) == 1 else script(request)

    middleware, notebook = watched()
    with FakeModel(flaky) as model:
        retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
        out = agent_for(model, [Tools().convert], middleware, retry).invoke(HELLO)
    assert len(model.requests) == 16 and len(notebook.all("turn")) == 8
    assert out["messages"][-1].text.startswith(STOPPED)


def test_a_summary_is_a_compaction_and_no_message_of_a_person() -> None:
    middleware, notebook = watched()
    counter = iter(range(100))

    def convert(url: str) -> str:
        "Convert a page."
        return f"page {next(counter)}"

    with FakeModel(lambda request: _numbered(request)) as model:
        summary = SummarizationMiddleware(chat(model), trigger=("messages", 12), keep=("messages", 4))
        agent_for(model, [convert], middleware, summary).invoke(HELLO)
    assert model.refused == []
    assert len(notebook.all("compact")) >= 1
    assert [step["text"] for step in notebook.all("user")] == ["Fetch the data."]


def _numbered(request: Request) -> Reply | str:
    if not request.tools:
        return "A summary of the work so far."
    if sum("summary" in entry["text"] for entry in request.conversation) and request.turns > 3 and request.number > 14:
        return "I am done."
    return Reply(calls=[("convert", {"url": f"https://example.test/{request.number}"})])


def test_text_that_another_middleware_adds_is_not_a_persons() -> None:
    class Reminder(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"messages": [HumanMessage("Remember to be brief.")]}

    middleware, notebook = watched()
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        agent = agent_for(model, [tools.convert], middleware, Reminder(), checkpointer=InMemorySaver())
        agent.invoke(HELLO, thread("t"))
        origins = [step["origin"] for step in notebook.all("user")]
        assert origins[:3] == ["human", "human", "harness"], "the first request of a run has the person's text"
        assert set(origins[2:]) == {"harness"}
        assert len(tools.ran) == 5, "reminders don't end an episode"
        agent.invoke({"messages": [("user", "Go on.")]}, thread("t"))
    said = [step["text"] for step in notebook.all("user") if step["origin"] == "human"]
    assert said == ["Fetch the data.", "Remember to be brief.", "Go on.", "Remember to be brief."]


def test_an_agent_called_as_a_tool_has_its_own_history() -> None:
    tools = Tools()
    middleware, notebook = watched()
    with FakeModel(_expert) as model:
        expert = create_agent(chat(model), [tools.convert], middleware=[middleware])

        def ask_expert(question: str) -> str:
            "Ask the expert."
            return str(expert.invoke({"messages": [("user", question)]})["messages"][-1].text)

        out = agent_for(model, [ask_expert], middleware, checkpointer=InMemorySaver()).invoke(HELLO, thread("t"))
    assert model.refused == [] and len(tools.ran) == 5
    assert {step["session"] for step in notebook.steps} == {"t"}
    agents = {step.get("agent") for step in notebook.steps}
    assert None in agents and len(agents) == 2
    assert out["messages"][-1].text == "The expert gave up."
    assert any(STOPPED in message.text for message in out["messages"] if isinstance(message, ToolMessage))
    origins = {(step.get("agent") is None, step["origin"]) for step in notebook.all("user")}
    assert origins == {(True, "human"), (False, "harness")}


def _expert(request: Request) -> Reply | str:
    if "convert" in request.tools:
        return Reply(calls=[("convert", URL)])
    return "The expert gave up." if request.turns else Reply(calls=[("ask_expert", {"question": "Where is the data?"})])


def test_a_stopped_subagent_with_error_ends_the_outer_run() -> None:
    middleware, _ = watched(exit_behavior="error")
    with FakeModel(_expert) as model:
        expert = create_agent(chat(model), [Tools().convert], middleware=[middleware])

        def ask_expert(question: str) -> str:
            "Ask the expert."
            return str(expert.invoke({"messages": [("user", question)]})["messages"][-1].text)

        with pytest.raises(deloop.StopError) as raised:
            agent_for(model, [ask_expert], middleware).invoke(HELLO)
    assert raised.value.decision.action == "stop"


def test_an_agent_that_is_a_node_of_another_graph_is_a_session_of_its_own() -> None:
    from langgraph.graph import START, MessagesState, StateGraph

    middleware, notebook = watched()
    with FakeModel(same_failing_call()) as model:
        graph = StateGraph(MessagesState)
        graph.add_node("worker", agent_for(model, [Tools().convert], middleware))
        graph.add_edge(START, "worker")
        app = graph.compile(checkpointer=InMemorySaver())
        out = app.invoke(HELLO, thread("t"))
    assert out["messages"][-1].text.startswith(STOPPED) and model.refused == []
    (session,) = {step["session"] for step in notebook.steps}
    assert session.startswith("t/worker:") and all("agent" not in step for step in notebook.steps)


def test_an_interrupt_is_not_a_result() -> None:
    @tool
    def convert(url: str) -> str:
        "Convert a page."
        return f"the person said {interrupt('May I?')}"

    middleware, notebook = watched()
    with FakeModel(same_failing_call(turns=1)) as model:
        agent = agent_for(model, [convert], middleware, checkpointer=InMemorySaver())
        agent.invoke(HELLO, thread("t"))
        assert notebook.all("result") == []
        out = agent.invoke(Command(resume="yes"), thread("t"))
    assert [step["output"] for step in notebook.all("result")] == ["the person said yes"]
    assert out["messages"][-1].text == "I am done." and model.refused == []


def test_a_call_that_a_person_rejects_is_denied() -> None:
    tools = Tools()
    middleware, notebook = watched()
    with FakeModel(same_failing_batch(turns=2)) as model:
        gate = HumanInTheLoopMiddleware(interrupt_on={"convert": True})
        agent = agent_for(model, [tools.convert], middleware, gate, checkpointer=InMemorySaver())
        agent.invoke(HELLO, thread("t"))
        no, yes = {"type": "reject", "message": "Not this one."}, {"type": "approve"}
        agent.invoke(Command(resume={"decisions": [no, yes, no]}), thread("t"))
        out = agent.invoke(Command(resume={"decisions": [yes, yes, yes]}), thread("t"))
    assert model.refused == [] and out["messages"][-1].text == "I am done."
    assert [step.get("outcome") for step in notebook.all("result")[:3]].count("denied") == 2
    assert len(notebook.all("turn")) == 3 and len(notebook.all("result")) == 6 and len(tools.ran) == 4


def test_a_structured_answer_is_the_same_with_deloop() -> None:
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Report(BaseModel):
        summary: str

    def script(request: Request) -> Reply:
        return Reply(
            calls=[("Report", {"summary": "fine"})] if request.turns == 2 else [("convert", {"url": f"x{request.turns}"})]
        )

    runs, answers = [], []
    for middleware in ([], [DeloopMiddleware()]):
        with FakeModel(script) as model:
            out = agent_for(model, [Tools("a page").convert], *middleware, response_format=ToolStrategy(Report)).invoke(HELLO)
            answers.append(out["structured_response"])
            runs.append(model.requests)
    assert assert_same_requests(*runs) == 3 and answers == [Report(summary="fine")] * 2


def test_the_shipped_limit_refuses_but_does_not_end_the_run() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        with pytest.raises(GraphRecursionError):
            agent_for(model, [tools.convert], ToolCallLimitMiddleware(run_limit=3)).invoke(HELLO, {"recursion_limit": 60})
        alone = len(model.requests)
    with FakeModel(same_failing_call()) as model:
        out = agent_for(model, [tools.convert], DeloopMiddleware(), ToolCallLimitMiddleware(run_limit=3)).invoke(HELLO)
    assert alone > 15 and model.refused == []
    assert out["messages"][-1].text.startswith(STOPPED) and len(model.requests) < 12
