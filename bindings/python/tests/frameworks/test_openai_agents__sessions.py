"""Sessions of the OpenAI Agents SDK: how they are named, who keeps their history, and runs side by side."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import RunConfig, Runner, SQLiteSession
from agents.run import ModelInputData
from fake_model import FakeModel
from harness import LADDER, STOPPED, RecordingGuard, Tools
from model_scripts import same_failing_batch, same_failing_call
from test_openai_agents import agent, run

from deloop.openai_agents import Deloop, DeloopStop


@pytest.mark.parametrize("named", ["run_config", "group_id", "constructor"])
def test_the_session_can_be_named(named: str) -> None:
    filtered: list[int] = []

    def own(data: Any) -> ModelInputData:
        filtered.append(len(data.model_data.input))
        return data.model_data

    guard = RecordingGuard(deliver="tool")
    deloop = Deloop(guard, session="talk" if named == "constructor" else None)
    given = RunConfig(call_model_input_filter=own, group_id="talk" if named == "group_id" else None)
    config = deloop.run_config(given, session="talk" if named == "run_config" else None)
    with FakeModel(same_failing_call(turns=1)) as model:
        run(deloop.wrap(agent(model, Tools())), "go", run_config=config)
    assert {step["session"] for step in guard.steps} == {"talk"} and filtered == [1, 3]


def test_the_provider_keeps_the_history() -> None:
    tools, guard = Tools(), RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call()) as model:
        result = run(Deloop(guard).wrap(agent(model, tools)), "go", auto_previous_response_id=True)
    assert result.final_output.startswith(STOPPED) and model.refused == []
    assert all(request.body.get("previous_response_id") for request in model.requests[1:])
    assert (len(tools.ran), len(model.requests), guard.actions) == (5, 8, LADDER)
    assert len(guard.of("user")) == 1 and guard.of("compact") == []


def test_a_named_session_continues_without_its_history() -> None:
    guard = RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call()) as model:
        deloop = Deloop(guard, session="talk", exit_behavior="error")
        for _ in range(2):
            with pytest.raises(DeloopStop):
                run(deloop.wrap(agent(model, Tools())), "go", auto_previous_response_id=True)
    assert [step["text"] for step in guard.of("user")] == ["go", "go"]
    assert len(guard.of("turn")) > 8, "the new message lifted the stop"


def test_a_later_run_on_an_sdk_session_goes_on_where_it_was() -> None:
    async def runs() -> None:
        session = SQLiteSession("talk")
        asked = agent(model, tools)
        for prompt in ("go", "again", "and again"):
            await Runner.run(Deloop(guard).wrap(asked), prompt, session=session)

    tools, guard = Tools(), RecordingGuard(deliver="tool")
    with FakeModel(lambda request: same_failing_call()(request) if request.turns % 2 == 0 else "It failed.") as model:
        asyncio.run(runs())
    assert len(tools.ran) == 3 and model.refused == []
    assert len({step["session"] for step in guard.steps}) == 3, "each run reads the history into a session of its own"


def test_runs_side_by_side_have_sessions_of_their_own() -> None:
    async def together() -> list[Any]:
        asked = Deloop(guard).wrap(agent(model, tools))
        return await asyncio.gather(*(Runner.run(asked, "go") for _ in range(6)))

    tools, guard = Tools(), RecordingGuard(deliver="tool")
    with FakeModel(same_failing_batch()) as model:
        assert all(result.final_output.startswith(STOPPED) for result in asyncio.run(together()))
    assert len(tools.ran) == 6 * 15 and sorted(guard.actions) == sorted(LADDER * 6)


def test_a_later_run_does_not_inherit_the_name_of_an_earlier_one() -> None:
    async def one_after_the_other() -> None:
        asked = deloop.wrap(agent(model, Tools()))
        await Runner.run(asked, "go", run_config=deloop.run_config(session="alice"))
        await Runner.run(asked, "go")

    guard = RecordingGuard(deliver="tool")
    deloop = Deloop(guard)
    with FakeModel(lambda request: same_failing_call()(request) if request.turns % 2 == 0 else "It failed.") as model:
        asyncio.run(one_after_the_other())
    sessions = list(dict.fromkeys(step["session"] for step in guard.steps))
    assert sessions[0] == "alice" and len(sessions) == 2
