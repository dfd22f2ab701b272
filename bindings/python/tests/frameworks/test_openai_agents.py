"""The row of the OpenAI Agents SDK: its own limit, nudge, block, stop, a healthy run, a crash, a resume."""

from __future__ import annotations

import asyncio
import json
import logging
from importlib.metadata import version
from typing import Any

import pytest
from agents import (
    Agent,
    AgentsException,
    MaxTurnsExceeded,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from fake_model import FakeModel
from harness import (
    AGAIN,
    BLOCKED,
    BrokenGuard,
    FIRST,
    RecordingGuard,
    SECOND,
    STOPPED,
    Tools,
    Workspace,
    assert_same_requests,
    first_with,
    place_of,
    run_page_program,
    run_python,
    write_row,
)
from model_scripts import healthy, same_failing_batch, same_failing_call
from openai import AsyncOpenAI

from deloop import StopError
from deloop.openai_agents import Deloop, DeloopStop

NAME = "openai-agents"
APIS = ("chat", "responses")
set_tracing_disabled(True)


def client(model: FakeModel, api: str = "responses") -> Any:
    kind = OpenAIChatCompletionsModel if api == "chat" else OpenAIResponsesModel
    return kind("gpt-test", AsyncOpenAI(base_url=model.url, api_key="fake", max_retries=0))


def agent(model: FakeModel, tools: Tools, api: str = "responses", **more: Any) -> Agent[Any]:
    return Agent("tester", model=client(model, api), tools=[function_tool(tools.raising, name_override="convert")], **more)


def run(agent: Agent[Any], *args: Any, **more: Any) -> Any:
    return asyncio.run(Runner.run(agent, *args, **more))


def test_without_deloop_it_runs_to_its_own_limit() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        with pytest.raises(MaxTurnsExceeded):
            run(agent(model, tools), "go")
        assert (len(tools.ran), len(model.requests)) == (10, 10)
        model.script = same_failing_call(turns=40)
        run(agent(model, tools), "go", max_turns=None)
    assert len(tools.ran) == 10 + 40, "max_turns=None has no limit"
    write_row(NAME, version=version("openai-agents"), own_limit="10 turns, then MaxTurnsExceeded; none with max_turns=None")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("batch", [False, True], ids=["single", "parallel"])
def test_the_ladder(api: str, batch: bool) -> None:
    tools = Tools()
    with FakeModel(same_failing_batch() if batch else same_failing_call()) as model:
        result = run(Deloop().wrap(agent(model, tools, api)), "go")
    assert model.refused == []
    assert (len(tools.ran), len(model.requests)) == (15 if batch else 5, 8)
    assert first_with(model.requests, FIRST) == 3
    assert first_with(model.requests, SECOND) == 5
    assert place_of(model.requests[3], FIRST) == "tool"
    assert first_with(model.requests, BLOCKED) == 6
    assert first_with(model.requests, AGAIN) == 7
    assert result.final_output.startswith(STOPPED)
    assert len(result.to_input_list()) == (1 + 8 * 6 if batch else 1 + 8 * 2), "every call has a result"
    if api == "responses" and not batch:
        write_row(
            NAME,
            nudge="end of the result, in the 4th request, in all later ones and in the session",
            block="calls 6 and 7 answered by a tool guardrail; 5 of 7 ran",
            stop='after 8 requests; "end": final_output is the reason; "error": DeloopStop (an AgentsException, with run_data)',
        )


@pytest.mark.parametrize("batch", [False, True], ids=["single", "parallel"])
def test_a_stop_as_an_exception(batch: bool) -> None:
    tools, heard = Tools(), []
    deloop = Deloop(exit_behavior="error", on_decision=heard.append)
    with FakeModel(same_failing_batch() if batch else same_failing_call()) as model:
        with pytest.raises(DeloopStop) as stopped:
            run(deloop.wrap(agent(model, tools)), "go")
    error = stopped.value
    assert isinstance(error, AgentsException) and isinstance(error, StopError)
    assert error.decision.action == "stop" and str(error).startswith(STOPPED)
    assert error.run_data is not None and len(error.run_data.raw_responses) >= 7
    assert (len(tools.ran), len(model.requests)) == (15 if batch else 5, 8)
    assert [decision.action for decision in heard] == ["nudge", "nudge", "block", "block", "stop"]


def test_a_stop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with FakeModel(same_failing_call()) as model, caplog.at_level(logging.WARNING, "deloop"):
        run(Deloop().wrap(agent(model, Tools())), "go")
    assert [record.levelname for record in caplog.records if record.name == "deloop"] == ["WARNING"] * 4 + ["ERROR"]


def test_run_sync() -> None:
    tools = Tools()
    asyncio.set_event_loop(asyncio.new_event_loop())
    with FakeModel(same_failing_call()) as model:
        result = Runner.run_sync(Deloop().wrap(agent(model, tools)), "go")
    assert result.final_output.startswith(STOPPED) and len(tools.ran) == 5


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("exit_behavior", ["end", "error"])
def test_streaming(api: str, exit_behavior: Any) -> None:
    async def stream() -> Any:
        result = Runner.run_streamed(Deloop(exit_behavior=exit_behavior).wrap(agent(model, tools, api)), "go")
        async for _ in result.stream_events():
            pass
        return result.final_output

    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        if exit_behavior == "error":
            with pytest.raises(DeloopStop):
                asyncio.run(stream())
        else:
            assert asyncio.run(stream()).startswith(STOPPED)
    assert model.refused == [] and all(request.body["stream"] for request in model.requests)
    assert (len(tools.ran), len(model.requests), first_with(model.requests, FIRST)) == (5, 8, 3)


@pytest.mark.parametrize("exit_behavior", ["end", "error"])
def test_a_session_goes_on_after_a_stop(exit_behavior: Any) -> None:
    async def both() -> Any:
        session = SQLiteSession("talk")
        guarded = Deloop(exit_behavior=exit_behavior).wrap(agent(model, Tools()))
        try:
            await Runner.run(guarded, "go", session=session)
        except DeloopStop:
            pass
        model.script = lambda request: "I see."
        return await Runner.run(guarded, "try something else", session=session)

    with FakeModel(same_failing_call()) as model:
        assert asyncio.run(both()).final_output == "I see."
    assert model.refused == []
    assert model.requests[-1].shows(FIRST) and model.requests[-1].shows(SECOND), "the session keeps the nudges"


def workspace_tools(workspace: Workspace) -> list[Any]:
    return [function_tool(tool) for tool in workspace.tools]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_healthy_run_is_left_alone(api: str, stream: bool) -> None:
    async def ask(asked: Agent[Any]) -> Any:
        if not stream:
            return (await Runner.run(asked, "make it work", max_turns=50)).final_output
        result = Runner.run_streamed(asked, "make it work", max_turns=50)
        async for _ in result.stream_events():
            pass
        return result.final_output

    def requests(wrap: Any) -> list[Any]:
        with FakeModel(healthy()) as model:
            asked = Agent("tester", model=client(model, api), tools=workspace_tools(Workspace()))
            assert asyncio.run(ask(wrap(asked))) == "All tests pass now."
            assert model.refused == []
            return model.requests

    guard = RecordingGuard(deliver="tool")
    same = assert_same_requests(requests(lambda asked: asked), requests(Deloop(guard).wrap))
    assert same == 31 and guard.actions == []
    assert [len(guard.of(kind)) for kind in ("turn", "result", "user", "usage")] == [31, 48, 1, 31]
    assert sum(step.get("outcome") == "error" for step in guard.of("result")) == 6
    if api == "responses" and not stream:
        write_row(NAME, healthy=f"{same} of {same} requests identical, 48 calls")


def test_a_crash_inside_deloop_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def requests(wrap: Any) -> list[Any]:
        with FakeModel(same_failing_call(turns=9)) as model:
            assert run(wrap(agent(model, Tools())), "go").final_output == "I am done."
            return model.requests

    same = assert_same_requests(requests(lambda asked: asked), requests(Deloop(BrokenGuard()).wrap))
    assert 0 < len([record for record in caplog.records if record.name == "deloop"]) < 10, "logged once per kind"
    write_row(NAME, crash=f"{same} of {same} requests identical, logged")


RESUMED = """
import asyncio, json, sys
from agents import Agent, MaxTurnsExceeded, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from deloop.openai_agents import Deloop

set_tracing_disabled(True)
turns, stored = int(sys.argv[1]), sys.argv[2]
ran, heard = [], []

def convert(url: str) -> str:
    "Fetch a page, and raise."
    ran.append(url)
    raise ConnectionError("Error: no such table: orders")

agent = Agent("tester", model="gpt-test", tools=[function_tool(convert)])
try:
    items = json.load(open(stored))
except FileNotFoundError:
    items = "go"
try:
    result = asyncio.run(Runner.run(Deloop(on_decision=lambda d: heard.append(d.action)).wrap(agent), items, max_turns=turns))
    output, items = result.final_output, result.to_input_list()
except MaxTurnsExceeded as limit:
    data, output = limit.run_data, None
    items = [{"role": "user", "content": "go"}] + [item.to_input_item() for item in data.new_items]
json.dump(items, open(stored, "w"))
print(json.dumps({"ran": len(ran), "output": output, "heard": heard}))
"""


@pytest.mark.parametrize("cut", [1, 3, 4, 6, 7])
def test_a_resume_in_a_new_process(cut: int, tmp_path: Any) -> None:
    with FakeModel(same_failing_call()) as whole:
        run(Deloop().wrap(agent(whole, Tools())), [{"role": "user", "content": "go"}])
    with FakeModel(same_failing_call()) as model:
        stored = str(tmp_path / "items.json")
        before = json.loads(run_python(RESUMED, str(cut), stored, env=model.env))
        after = json.loads(run_python(RESUMED, "20", stored, env=model.env))
    assert before["output"] is None and after["output"].startswith(STOPPED)
    assert before["ran"] + after["ran"] == 5
    assert before["heard"] + after["heard"] == ["nudge", "nudge", "block", "block", "stop"], "no rung twice, none lost"
    assert [request.conversation for request in model.requests] == [request.conversation for request in whole.requests]
    write_row(NAME, resume="from stored items in a new process, cut after turn 1, 3, 4, 6 or 7: the same 8 conversations as without a cut")


def test_the_page() -> None:
    with FakeModel(same_failing_call()) as model:
        printed = run_page_program(NAME, model)
    assert STOPPED in printed
    assert len(model.requests) == 8 and model.refused == []
