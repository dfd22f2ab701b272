"""What can go wrong in the Claude Agent SDK: each place where its hooks behave in a way that an adapter could get wrong."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition, ClaudeSDKClient, HookMatcher, ResultMessage, query
from fake_model import FakeModel, Request
from harness import FIRST, HANGS, LADDER, RecordingGuard, STOPPED, Tools, first_with, place_of
from model_scripts import failing_once, same_batch, same_failing_call
from model_wire import Reply
from test_claude_agent_sdk import Place, ask, fetching, one, own_server, with_client

from deloop.claude_agent_sdk import Deloop, DeloopStop, hooks


@pytest.fixture
def place(tmp_path: Any) -> Place:
    return Place(tmp_path)


def test_own_hooks_stay(place: Place) -> None:
    seen: list[str] = []

    def noting(name: str) -> HookMatcher:
        async def hook(given: Any, tool_use_id: Any, context: Any) -> Any:
            seen.append(name)
            return {}

        return HookMatcher(hooks=[hook])

    mine = {"PreToolUse": [noting("before")], "Notification": [noting("notified")], "PostToolBatch": [noting("batch")]}
    both = hooks(mine)
    assert [len(both[event]) for event in ("PreToolUse", "PostToolBatch", "Notification", "PostToolUse")] == [2, 2, 1, 1]
    assert len(mine["PreToolUse"]) == 1, "the given hooks are unchanged"
    with FakeModel(fetching(turns=2)) as model:
        ask(place.options(model, hooks=both))
    assert seen == ["before", "batch"] * 2


def test_a_call_that_an_own_hook_denies(place: Place) -> None:
    async def deny(given: Any, tool_use_id: Any, context: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not now"}}

    guard = RecordingGuard(deliver="tool")
    with FakeModel(fetching(turns=2)) as model:
        ask(place.options(model, hooks=Deloop(guard).hooks({"PreToolUse": [HookMatcher(hooks=[deny])]})))
    assert [step["outcome"] for step in guard.of("result")] == ["denied", "denied"]
    assert place.ran == 0


@pytest.mark.parametrize("call", [("Bash", {"cmd": "./fetch"}), ("NoSuchTool", {"path": "x"})], ids=["schema", "unknown"])
def test_calls_that_are_not_valid_reach_only_the_batch(place: Place, call: Any) -> None:
    guard = RecordingGuard(deliver="tool")
    deloop = Deloop(guard)
    with FakeModel(same_batch([call], 30)) as model:
        result, _ = ask(place.options(model, hooks=deloop.hooks()), deloop)
    assert place.ran == 0 and model.refused == []
    assert {step["outcome"] for step in guard.of("result")} <= {"invalid", "denied"} and guard.of("result")[0]["outcome"] == "invalid"
    assert first_with(model.requests, "[deloop]") == 3
    assert (result.terminal_reason, result.result[:16]) == ("hook_stopped", STOPPED)
    assert len(model.requests) < 12


def test_a_hook_that_raises_is_ignored(place: Place) -> None:
    async def broken(given: Any, tool_use_id: Any, context: Any) -> Any:
        raise RuntimeError("a broken hook")

    deloop = Deloop()
    with FakeModel(fetching(30)) as model:
        ask(place.options(model, hooks=deloop.hooks({"PreToolUse": [HookMatcher(hooks=[broken])]})), deloop)
    assert (place.ran, len(model.requests)) == (5, 8), "somebody else's broken hook changes nothing for deloop"


def test_tools_of_your_own_process(place: Place) -> None:
    tools, deloop = Tools(), Deloop()

    def convert(url: str) -> str:
        """Fetch a page."""
        return tools.raising(url)

    with FakeModel(same_failing_call(tool="mcp__own__convert", turns=30)) as model:
        options = place.options(model, mcp_servers=own_server(convert), tools=[], allowed_tools=["mcp__own__convert"], hooks=deloop.hooks())
        result = with_client(options, one)
    assert "mcp__own__convert" in model.requests[0].tools
    assert (len(tools.ran), len(model.requests), result.terminal_reason) == (5, 8, "hook_stopped")
    assert place_of(model.requests[3], FIRST) == "tool" and model.refused == []


def test_the_conversation_goes_on_after_a_stop(place: Place) -> None:
    guard = RecordingGuard(deliver="tool")
    deloop = Deloop(guard)

    async def talk(client: ClaudeSDKClient) -> tuple[Any, Any]:
        await client.query("go")
        first = [message async for message in deloop.messages(client.receive_response())][-1]
        model.script = lambda request: "I see."
        await client.query("try something else")
        second = [message async for message in deloop.messages(client.receive_response())][-1]
        return first, second

    with FakeModel(fetching(30)) as model:
        first, second = with_client(place.options(model, hooks=deloop.hooks()), talk)
    assert first.result.startswith(STOPPED) and second.result == "I see."
    assert deloop.stopped(second.session_id) is None and model.refused == []
    assert model.requests[-1].shows(FIRST), "the nudge is part of the conversation"
    assert [step["text"] for step in guard.of("user")] == ["go", "try something else"]


def test_an_exception_from_a_client(place: Place) -> None:
    deloop = Deloop(exit_behavior="error")

    async def talk(client: ClaudeSDKClient) -> None:
        await client.query("go")
        async for _ in deloop.messages(client.receive_messages()):
            pass

    with FakeModel(fetching(30)) as model, pytest.raises(DeloopStop):
        with_client(place.options(model, hooks=deloop.hooks()), talk)
    assert place.ran == 5


def test_subagents_are_watched_by_themselves(place: Place) -> None:
    def script(request: Request) -> Any:
        if "Agent" not in request.tools:
            return fetching(30)(request)
        if request.results:
            return "The helper failed."
        return Reply(calls=[("Agent", {"description": "fetch", "prompt": "fetch it", "subagent_type": "helper"})])

    guard = RecordingGuard(deliver="tool")
    deloop = Deloop(guard)
    helper = AgentDefinition(description="Fetches pages.", prompt="Fetch.", tools=["Bash"])
    with FakeModel(script) as model:
        options = place.options(model, hooks=deloop.hooks(), agents={"helper": helper}, allowed_tools=["Bash", "Agent"])
        result, _ = ask(options, deloop)
    assert model.refused == [] and place.ran == 5
    assert guard.actions == LADDER
    assert {bool(step.get("agent")) for step in guard.of("call")} == {True, False}
    assert len([request for request in model.requests if "Agent" not in request.tools]) == 8
    assert result.terminal_reason == "completed" and deloop.stopped(result.session_id) is None, "only the subagent was ended"
    assert [step["origin"] for step in guard.of("user")] == ["human", "harness"], "its end is no message by a person"


def test_compaction_is_reported(place: Place) -> None:
    guard = RecordingGuard(deliver="tool")

    async def talk(client: ClaudeSDKClient) -> None:
        await one(client, "hello")
        await one(client, "/compact")

    with FakeModel(lambda request: "<summary>They said hello.</summary>") as model:
        with_client(place.options(model, hooks=Deloop(guard).hooks()), talk)
    assert len(guard.of("compact")) == 1


def test_an_interrupted_call_is_cancelled(place: Place) -> None:
    guard = RecordingGuard(deliver="tool")

    async def talk(client: ClaudeSDKClient) -> ResultMessage:
        await client.query("go")

        async def interrupt() -> None:
            running = asyncio.Event()
            asyncio.get_running_loop().add_reader(ends[0], running.set)
            await asyncio.wait_for(running.wait(), HANGS)
            asyncio.get_running_loop().remove_reader(ends[0])
            assert guard.of("call")
            await client.interrupt()

        stopping = asyncio.create_task(interrupt())
        last = [message async for message in client.receive_response()][-1]
        await stopping
        return last

    # Pipes: the program writes to one when it runs, and then reads the other, which nobody writes to.
    started, held = place.folder / "started", place.folder / "held"
    for pipe in (started, held):
        os.mkfifo(pipe)
    program = place.folder / "wait"
    program.write_text(f"#!/bin/sh\necho started > {started}\nexec cat {held}\n")
    program.chmod(0o755)
    ends = [os.open(pipe, os.O_RDWR) for pipe in (started, held)]
    try:
        with FakeModel(same_batch([("Bash", {"command": "./wait"})], 1)) as model:
            result = with_client(place.options(model, hooks=Deloop(guard).hooks()), talk)
    finally:
        for end in ends:
            os.close(end)
    assert (result.subtype, result.is_error) == ("error_during_execution", True)
    assert {step.get("outcome") for step in guard.of("result")} <= {"cancelled"}
    assert guard.actions == []


def test_sessions_side_by_side(place: Place) -> None:
    guard = RecordingGuard(deliver="tool")
    deloop = Deloop(guard)

    async def run() -> list[str]:
        async def single() -> str:
            stream = query(prompt="go", options=place.options(model, hooks=deloop.hooks()))
            last = [message async for message in deloop.messages(stream)][-1]
            return last.result

        return await asyncio.gather(*(single() for _ in range(3)))

    with FakeModel(fetching(30)) as model:
        assert all(text.startswith(STOPPED) for text in asyncio.run(run()))
    assert place.ran == 15 and sorted(guard.actions) == sorted(LADDER * 3)
    assert len({step["session"] for step in guard.steps}) == 3


def test_where_a_nudge_stands_depends_on_the_model(place: Place) -> None:
    deloop = Deloop()
    with FakeModel(fetching(30)) as model:
        options = dataclasses.replace(place.options(model, hooks=deloop.hooks()), model="claude-newest-test")
        result, _ = ask(options, deloop)
    assert result.result.startswith(STOPPED) and (place.ran, len(model.requests)) == (5, 8)
    assert model.refused == [] and first_with(model.requests, FIRST) == 3
    assert place_of(model.requests[3], FIRST) == "system", "the newest models get a system message after the results"


def test_partial_messages(place: Place) -> None:
    deloop = Deloop()
    with FakeModel(fetching(30)) as model:
        result, messages = ask(place.options(model, hooks=deloop.hooks(), include_partial_messages=True), deloop)
    assert result.result.startswith(STOPPED) and len(messages) > 50


def test_delivery_is_reported(place: Place) -> None:
    guard = RecordingGuard(deliver="tool")
    with FakeModel(fetching(30)) as model:
        ask(place.options(model, hooks=Deloop(guard, session="mine").hooks()))
    nudged = [decision.step for decision in guard.decisions if decision.action == "nudge"]
    assert [(step["step"], step["ok"]) for step in guard.of("delivery")] == [(step, True) for step in nudged]
    assert {step["session"] for step in guard.steps} == {"mine"}
    assert not any("[deloop]" in str(step.get("output")) for step in guard.of("result") if step["outcome"] != "denied")


def test_a_request_that_is_sent_again_counts_once(place: Place) -> None:
    guard = RecordingGuard(deliver="tool")
    with FakeModel(failing_once(fetching(30))) as model:
        ask(place.options(model, hooks=Deloop(guard).hooks()))
    assert (place.ran, len(model.requests), guard.actions) == (5, 9, LADDER)
    assert len(guard.of("user")) == 1
