"""The row of the Claude Agent SDK: its own limit, nudge, block, stop, a healthy run, a crash, a resume."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    ResultMessage,
    SystemMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from fake_model import FakeModel
from harness import (
    AGAIN,
    BLOCKED,
    BrokenGuard,
    FIRST,
    HANGS,
    LADDER,
    RecordingGuard,
    SECOND,
    STOPPED,
    Workspace,
    assert_same_requests,
    first_with,
    place_of,
    run_page_program,
    run_python,
    write_row,
)
from model_scripts import healthy, same_batch

from deloop import StopError
from deloop.claude_agent_sdk import Deloop, DeloopStop, hooks

NAME = "claude-agent-sdk"
MODEL = "claude-sonnet-4-5"
QUIET = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")


class Place:
    """A folder with a program that fails and notes each run, and the environment of the SDK's command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "ran.log"
        program = folder / "fetch"
        program.write_text(f'#!/bin/sh\necho "$1" >> {self.log}\necho "no such table: orders" >&2\nexit 2\n')
        program.chmod(0o755)

    @property
    def ran(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def env(self, model: FakeModel) -> dict[str, str]:
        own = {"HOME": str(self.folder), "CLAUDE_CONFIG_DIR": str(self.folder / ".claude")}
        return {**model.env, **own, **dict.fromkeys(QUIET, "1")}

    def options(self, model: FakeModel, **more: Any) -> ClaudeAgentOptions:
        given = {"allowed_tools": ["Bash"], "setting_sources": [], "model": MODEL, **more}
        return ClaudeAgentOptions(env=self.env(model), cwd=self.folder, **given)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def fetching(turns: int | None = None, batch: bool = False) -> Any:
    pages = ("a", "b", "c") if batch else ("data",)
    return same_batch([("Bash", {"command": f"./fetch https://example.test/{page}"}) for page in pages], turns)


def ask(options: ClaudeAgentOptions, deloop: Deloop | None = None, prompt: str = "go") -> tuple[ResultMessage, list[Any]]:
    async def run() -> list[Any]:
        stream = query(prompt=prompt, options=options)
        return [message async for message in (deloop.messages(stream) if deloop else stream)]

    messages = asyncio.run(run())
    return messages[-1], messages


def test_without_deloop_it_does_not_end(place: Place) -> None:
    with FakeModel(fetching(turns=30)) as model:
        result, _ = ask(place.options(model))
        assert (place.ran, len(model.requests), result.result) == (30, 31, "I am done.")
        model.script = fetching()
        with pytest.raises(ClaudeSDKError, match="maximum number of turns"):
            ask(place.options(model, max_turns=5))
    write_row(NAME, version=version("claude-agent-sdk"), own_limit="none: 30 of 30 calls ran; max_turns=5 raises ResultError")


@pytest.mark.parametrize("batch", [False, True], ids=["single", "parallel"])
def test_the_ladder(place: Place, batch: bool) -> None:
    deloop = Deloop()
    with FakeModel(fetching(30, batch)) as model:
        result, messages = ask(place.options(model, hooks=deloop.hooks()), deloop)
    assert model.refused == []
    assert len(model.requests) == 8
    assert place.ran == (15 + 4 if batch else 5), "calls come one by one: of three repeated ones in a turn, the first is refused"
    assert first_with(model.requests, FIRST) == 3
    assert first_with(model.requests, SECOND) == 5
    assert place_of(model.requests[3], FIRST) == "tool"
    assert first_with(model.requests, BLOCKED) == 6
    assert first_with(model.requests, AGAIN) == 7
    assert (result.subtype, result.is_error, result.terminal_reason) == ("success", False, "hook_stopped")
    assert result.result.startswith(STOPPED)
    stop = deloop.stopped(result.session_id)
    assert stop is not None and stop.status == "LOOP_DETECTED"
    shown = [message.data["content"] for message in messages if isinstance(message, SystemMessage) and message.subtype == "informational"]
    assert any("deloop stopped the run" in text for text in shown)
    if not batch:
        write_row(
            NAME,
            nudge="end of the last result, in the 4th request, in all later ones and in the transcript",
            block="calls 6 and 7 denied by PreToolUse; 5 of 7 ran",
            stop='after 8 requests; ResultMessage with terminal_reason "hook_stopped", by Deloop.messages with the reason as its'
            ' `result`; "error": DeloopStop',
        )


def test_hooks_alone(place: Place) -> None:
    heard: list[Any] = []
    with FakeModel(fetching(30)) as model:
        result, _ = ask(place.options(model, hooks=hooks(on_decision=heard.append)))
    assert (place.ran, len(model.requests)) == (5, 8)
    assert (result.result, result.terminal_reason) == ("", "hook_stopped"), "the SDK itself doesn't say why"
    assert [decision.action for decision in heard] == LADDER


def test_a_stop_as_an_exception(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    deloop = Deloop(exit_behavior="error")
    with FakeModel(fetching(30)) as model, caplog.at_level(logging.WARNING, "deloop"):
        with pytest.raises(DeloopStop) as stopped:
            ask(place.options(model, hooks=deloop.hooks()), deloop)
    assert isinstance(stopped.value, ClaudeSDKError) and isinstance(stopped.value, StopError)
    assert stopped.value.decision.action == "stop" and str(stopped.value).startswith(STOPPED)
    assert (place.ran, len(model.requests)) == (5, 8)
    assert [record.levelname for record in caplog.records if record.name == "deloop"] == ["WARNING"] * 4 + ["ERROR"]


def own_server(*handlers: Callable[..., str]) -> dict[str, Any]:
    """Returns an in-process MCP server with these functions as tools; what they raise is an error result."""

    def made(handler: Callable[..., str]) -> Any:
        names = [name for name in handler.__annotations__ if name != "return"]

        @tool(handler.__name__, handler.__doc__ or "", dict.fromkeys(names, str))
        async def run(args: dict[str, Any]) -> dict[str, Any]:
            try:
                return {"content": [{"type": "text", "text": handler(**args)}]}
            except Exception as error:
                return {"content": [{"type": "text", "text": str(error)}], "is_error": True}

        return run

    return {"own": create_sdk_mcp_server("own", tools=[made(handler) for handler in handlers])}


async def has_servers(client: ClaudeSDKClient, names: set[str]) -> None:
    """Waits until the SDK's command has connected to these MCP servers; each question to it is a round trip."""
    while True:
        servers = (await client.get_mcp_status())["mcpServers"]
        if names <= {server["name"] for server in servers if server["status"] == "connected"}:
            return


def with_client(options: ClaudeAgentOptions, talk: Callable[[ClaudeSDKClient], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with ClaudeSDKClient(options) as client:
            await asyncio.wait_for(has_servers(client, set(options.mcp_servers)), HANGS)
            return await talk(client)

    return asyncio.run(run())


async def one(client: ClaudeSDKClient, prompt: str = "go") -> ResultMessage:
    await client.query(prompt)
    return [message async for message in client.receive_response()][-1]


def test_a_healthy_run_is_left_alone(place: Place) -> None:
    names = [f"mcp__own__{name}" for name in ("read_file", "edit_file", "run_tests", "search")]

    def requests(**more: Any) -> list[Any]:
        workspace = Workspace()
        with FakeModel(healthy(prefix="mcp__own__")) as model:
            servers = own_server(*workspace.tools)
            options = place.options(model, mcp_servers=servers, allowed_tools=names, tools=[], **more)
            result = with_client(options, one)
        assert result.result == "All tests pass now." and model.refused == []
        assert set(names) <= set(model.requests[0].tools) and workspace.calls == 48
        return model.requests

    guard = RecordingGuard(deliver="tool")
    same = assert_same_requests(requests(), requests(hooks=Deloop(guard).hooks()))
    assert same == 31 and guard.actions == []
    assert [len(guard.of(kind)) for kind in ("call", "result", "user")] == [48, 48, 1]
    assert sum(step["outcome"] == "error" for step in guard.of("result")) == 6
    assert len({step["turn_id"] for step in guard.of("call")}) == 30, "parallel calls are one turn"
    write_row(NAME, healthy=f"{same} of {same} requests identical, 48 calls")


def test_a_crash_inside_deloop_changes_nothing(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    def requests(**more: Any) -> list[Any]:
        with FakeModel(fetching(turns=12)) as model:
            result, _ = ask(place.options(model, **more))
        assert result.result == "I am done." and model.refused == []
        return model.requests

    same = assert_same_requests(requests(), requests(hooks=Deloop(BrokenGuard()).hooks()))
    assert 0 < len([record for record in caplog.records if record.name == "deloop"]) < 10, "logged once per kind"
    write_row(NAME, crash=f"{same} of {same} requests identical, logged")


RESUMED = """
import asyncio, json, os, sys
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKError, query
from deloop.claude_agent_sdk import Deloop

turns, session, prompt = int(sys.argv[1]), sys.argv[2] or None, sys.argv[3]
heard = []
deloop = Deloop(on_decision=lambda d: heard.append(d.action))
options = ClaudeAgentOptions(
    hooks=deloop.hooks(), allowed_tools=["Bash"], setting_sources=[], model="claude-sonnet-4-5", resume=session, max_turns=turns or None
)

async def run():
    seen = None
    try:
        async for message in deloop.messages(query(prompt=prompt, options=options)):
            seen = getattr(message, "session_id", None) or getattr(message, "data", {}).get("session_id") or seen
            text = getattr(message, "result", None)
    except ClaudeSDKError:
        text = None
    return seen, text

seen, text = asyncio.run(run())
print(json.dumps({"session": seen, "text": text, "heard": heard}))
"""


NOTICE = "<task-notification>The download is over.</task-notification>"


@pytest.mark.parametrize(("cut", "prompt"), [(2, NOTICE), (4, NOTICE), (6, NOTICE), (4, "go on")])
def test_a_resume_in_a_new_process(tmp_path: Path, cut: int, prompt: str) -> None:
    def in_new_processes(model: FakeModel, place: Place) -> tuple[list[str], str]:
        before = json.loads(run_python(RESUMED, str(cut), "", "go", env=place.env(model), cwd=place.folder))
        after = json.loads(run_python(RESUMED, "0", before["session"], prompt, env=place.env(model), cwd=place.folder))
        assert before["session"] == after["session"] and before["text"] is None
        return before["heard"] + after["heard"], after["text"]

    def in_this_process(model: FakeModel, place: Place) -> tuple[list[str], str]:
        heard: list[str] = []
        deloop = Deloop(on_decision=lambda decision: heard.append(decision.action))
        with pytest.raises(ClaudeSDKError):
            ask(place.options(model, hooks=deloop.hooks(), max_turns=cut), deloop)
        session = next(place.folder.glob(".claude/projects/*/*.jsonl")).stem
        result, _ = ask(place.options(model, hooks=deloop.hooks(), resume=session), deloop, prompt)
        return heard, result.result or ""

    seen = []
    for name, way in (("one", in_this_process), ("two", in_new_processes)):
        (tmp_path / name).mkdir()
        place = Place(tmp_path / name)
        with FakeModel(fetching(30)) as model:
            heard, text = way(model, place)
        assert model.refused == [] and text.startswith(STOPPED)
        seen.append((heard, place.ran, len(model.requests)))
    assert seen[0] == seen[1], "the same rungs, calls and requests as in one process"
    if prompt == NOTICE:
        assert seen[1][0] == LADDER, f"no rung twice, none lost: {seen}"
    same = "the same rungs, calls and requests as in one process; a prompt starts the ladder over"
    write_row(NAME, resume=f"from the transcript in a new process, cut after 2, 4 or 6 turns: {same}")


def test_the_page(place: Place) -> None:
    with FakeModel(same_batch([("Bash", {"command": "./fetch https://example.test/data"})], 30)) as model:
        printed = run_page_program(NAME, model, env={**place.env(model), "ANTHROPIC_MODEL": MODEL})
    assert STOPPED in printed
    assert len(model.requests) == 8 and model.refused == []
