"""The row of Pydantic AI: its own limit, nudge, block, stop, a healthy run, a crash, a resume."""

from __future__ import annotations

import asyncio
import json
import logging
from importlib.metadata import version
from typing import Any

import pytest
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
from pydantic_ai import Agent, ModelRetry, ToolFailed, capture_run_messages
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from deloop import StopError
from deloop.pydantic_ai import Deloop, DeloopStop

NAME = "pydantic-ai"
APIS = ("chat", "responses", "anthropic")


def client(model: FakeModel, api: str = "chat") -> Model:
    if api == "anthropic":
        return AnthropicModel("claude-test", provider=AnthropicProvider(base_url=model.root, api_key="fake"))
    kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    return kind("gpt-test", provider=OpenAIProvider(base_url=model.url, api_key="fake"))


def failing(tools: Tools, error: type[Exception] = ToolFailed) -> Any:
    def convert(url: str) -> str:
        """Convert a page."""
        tools.note(url)
        raise error("no such table: orders")

    return convert


def agent(model: FakeModel, tools: Tools, *capabilities: Any, api: str = "chat", **more: Any) -> Agent[None, Any]:
    return Agent(client(model, api), tools=[failing(tools)], capabilities=list(capabilities), **more)


async def collect(agent: Agent[None, Any], prompt: str) -> tuple[Any, list[str]]:
    kinds, output = [], None
    async with agent.run_stream_events(prompt) as events:
        async for event in events:
            kinds.append(event.event_kind)
            if event.event_kind == "agent_run_result":
                output = event.result.output
    return output, kinds


def test_without_deloop_it_runs_to_its_own_limit() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        with pytest.raises(UsageLimitExceeded):
            agent(model, tools).run_sync("go")
    assert (len(tools.ran), len(model.requests)) == (50, 50)
    write_row(NAME, version=version("pydantic-ai-slim"), own_limit="50 requests, then UsageLimitExceeded; 50 of 50 calls ran")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("batch", [False, True], ids=["single", "parallel"])
def test_the_ladder(api: str, batch: bool) -> None:
    tools = Tools()
    with FakeModel(same_failing_batch() if batch else same_failing_call()) as model:
        result = agent(model, tools, Deloop(), api=api).run_sync("go")
    assert model.refused == []
    assert (len(tools.ran), len(model.requests)) == (15 if batch else 5, 8)
    assert first_with(model.requests, FIRST) == 3
    assert first_with(model.requests, SECOND) == 5
    assert place_of(model.requests[3], FIRST) == "user"
    assert first_with(model.requests, BLOCKED) == 6
    assert place_of(model.requests[6], BLOCKED) == "tool"
    assert first_with(model.requests, AGAIN) == 7
    assert result.output.startswith(STOPPED)
    if api == "chat" and not batch:
        write_row(
            NAME,
            nudge="user message after the results, in the 4th request and in all later ones",
            block="calls 6 and 7 answered by ToolFailed; 5 of 7 ran",
            stop='after 8 requests; "end": result.output is the reason; "error": DeloopStop (an AgentRunError)',
        )


def test_a_stop_as_an_exception() -> None:
    tools, heard = Tools(), []
    with FakeModel(same_failing_call()) as model, capture_run_messages() as messages:
        with pytest.raises(DeloopStop) as stopped:
            agent(model, tools, Deloop(exit_behavior="error", on_decision=heard.append)).run_sync("go")
    assert isinstance(stopped.value, AgentRunError) and isinstance(stopped.value, StopError)
    assert stopped.value.decision.action == "stop" and stopped.value.decision.status == "LOOP_DETECTED"
    assert str(stopped.value).startswith(STOPPED)
    assert len(model.requests) == 8
    assert [decision.action for decision in heard] == ["nudge", "nudge", "block", "block", "stop"]
    assert messages[-1].kind == "request", "every call has a result"


def test_a_stop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with FakeModel(same_failing_call()) as model, caplog.at_level(logging.WARNING, "deloop"):
        agent(model, Tools(), Deloop()).run_sync("go")
    levels = [record.levelname for record in caplog.records if record.name == "deloop"]
    assert levels == ["WARNING"] * 4 + ["ERROR"]


@pytest.mark.parametrize("api", APIS)
def test_streaming(api: str) -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        output, kinds = asyncio.run(collect(agent(model, tools, Deloop(), api=api), "go"))
    assert model.refused == []
    assert all(request.body["stream"] for request in model.requests)
    assert output.startswith(STOPPED)
    assert (len(tools.ran), len(model.requests), first_with(model.requests, FIRST)) == (5, 8, 3)
    assert kinds.count("enqueued_messages") == 2, "the framework reports that both nudges were placed"


@pytest.mark.parametrize("way", ["run", "iter", "run_stream"])
def test_async(way: str) -> None:
    async def run() -> str:
        asked = agent(model, tools, Deloop())
        if way == "run":
            return (await asked.run("go")).output
        if way == "iter":
            async with asked.iter("go") as running:
                async for _ in running:
                    pass
            return running.result.output
        async with asked.run_stream("go") as streamed:
            return await streamed.get_output()

    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        assert asyncio.run(run()).startswith(STOPPED)
    assert (len(tools.ran), len(model.requests)) == (5, 8)


def test_the_same_conversation_goes_on_after_a_stop() -> None:
    guard = RecordingGuard(deliver="user")
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        first = agent(model, tools, Deloop(guard)).run_sync("go")
        model.script = lambda request: "I see."
        second = agent(model, tools, Deloop(guard)).run_sync("try something else", message_history=first.all_messages())
    assert second.output == "I see."
    assert model.refused == []
    assert first_with(model.requests, SECOND) == 5, "the nudges are part of the history"


def workspace_tools(workspace: Workspace) -> list[Any]:
    def read_file(path: str) -> str:
        """Read a file."""
        try:
            return workspace.read_file(path)
        except FileNotFoundError as error:
            raise ModelRetry(str(error)) from error

    return [read_file, workspace.edit_file, workspace.run_tests, workspace.search]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_healthy_run_is_left_alone(api: str, stream: bool) -> None:
    def run(*capabilities: Any) -> list[Any]:
        with FakeModel(healthy()) as model:
            asked = Agent(client(model, api), tools=workspace_tools(Workspace()), retries=3, capabilities=list(capabilities))
            output = asyncio.run(collect(asked, "make it work"))[0] if stream else asked.run_sync("make it work").output
            assert output == "All tests pass now." and model.refused == []
            return model.requests

    guard = RecordingGuard(deliver="user")
    same = assert_same_requests(run(), run(Deloop(guard)))
    assert same == 31
    assert guard.actions == []
    assert [len(guard.of(kind)) for kind in ("turn", "result", "user", "usage")] == [31, 48, 1, 31]
    if api == "chat" and not stream:
        write_row(NAME, healthy=f"{same} of {same} requests identical, 48 calls")


def test_a_crash_inside_deloop_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def run(*capabilities: Any) -> list[Any]:
        with FakeModel(same_failing_call(turns=12)) as model:
            assert agent(model, Tools(), *capabilities).run_sync("go").output == "I am done."
            return model.requests

    same = assert_same_requests(run(), run(Deloop(BrokenGuard())))
    logged = [record for record in caplog.records if record.name == "deloop"]
    assert 0 < len(logged) < 10, "logged once per kind"
    write_row(NAME, crash=f"{same} of {same} requests identical, logged")


RESUMED = """
import json, sys
from pydantic_ai import Agent, ToolFailed, UsageLimits, capture_run_messages
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessagesTypeAdapter
from deloop.pydantic_ai import Deloop

requests, stored = int(sys.argv[1]), sys.argv[2]
ran, heard = [], []

def convert(url: str) -> str:
    "Convert a page."
    ran.append(url)
    raise ToolFailed("no such table: orders")

agent = Agent("openai-chat:gpt-test", tools=[convert], capabilities=[Deloop(on_decision=lambda d: heard.append(d.action))])
with capture_run_messages() as messages:
    try:
        history = ModelMessagesTypeAdapter.validate_json(open(stored).read())
    except FileNotFoundError:
        history = None
    try:
        output = agent.run_sync(None if history else "go", message_history=history, usage_limits=UsageLimits(request_limit=requests)).output
    except UsageLimitExceeded:
        output = None
open(stored, "wb").write(ModelMessagesTypeAdapter.dump_json(messages))
print(json.dumps({"ran": len(ran), "output": output, "heard": heard}))
"""


@pytest.mark.parametrize("cut", [1, 3, 4, 6, 7])
def test_a_resume_in_a_new_process(cut: int, tmp_path: Any) -> None:
    with FakeModel(same_failing_call()) as whole:
        agent(whole, Tools(), Deloop()).run_sync("go")
    with FakeModel(same_failing_call()) as model:
        stored = str(tmp_path / "history.json")
        before = json.loads(run_python(RESUMED, str(cut), stored, env=model.env))
        after = json.loads(run_python(RESUMED, "50", stored, env=model.env))
    assert before["output"] is None and after["output"].startswith(STOPPED)
    assert before["ran"] + after["ran"] == 5
    assert before["heard"] + after["heard"] == ["nudge", "nudge", "block", "block", "stop"], "no rung twice, none lost"
    assert assert_same_requests(whole.requests, model.requests) == 8
    write_row(NAME, resume="from message_history in a new process, cut after request 1, 3, 4, 6 or 7: the same 8 requests as without a cut")


def test_the_page() -> None:
    with FakeModel(same_failing_call()) as model:
        printed = run_page_program(NAME, model)
    assert STOPPED in printed
    assert len(model.requests) == 8 and model.refused == []
