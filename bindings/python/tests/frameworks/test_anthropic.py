"""The row of plain loops around the Anthropic client."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import anthropic_loops as loops
import deloop
import pytest
from deloop.anthropic import ToolLoop
from fake_model import Failure, FakeModel
from harness import (
    BrokenGuard,
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
from plain_loops import BLOCKED, NUDGE, SECOND, STOPPED, TASK, Notebook

WAYS = [loops.messages_loop, loops.by_call, loops.raw_stream, loops.helper_stream, loops.asynchronous]


def row(**cells: str) -> None:
    write_row("anthropic", version=version("anthropic"), **cells)


def test_without_deloop_the_loop_has_no_end() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        assert loops.messages_loop(model, tools, None, limit=60) is None
        assert len(model.requests) == len(tools.ran) == 60
    row(own_limit="none (60 of 60 ran)")


@pytest.mark.parametrize("way", WAYS)
def test_the_model_is_nudged_then_refused_then_the_loop_ends(way: Any) -> None:
    tools, guard = Tools(), Notebook()
    with FakeModel(same_failing_call()) as model:
        turn = way(model, tools, ToolLoop(guard))
    assert model.refused == []
    assert (first_with(model.requests, NUDGE), place_of(model.requests[3], NUDGE)) == (3, "tool")
    assert (first_with(model.requests, SECOND), first_with(model.requests, BLOCKED)) == (5, 6)
    assert (len(tools.ran), len(model.requests)) == (5, 8)
    assert turn.stop.status == "LOOP_DETECTED" and turn.text.startswith(STOPPED)
    assert guard.actions[:5] == ["nudge", "nudge", "block", "block", "stop"]
    assert [step["text"] for step in guard.all("user")] == [TASK]
    assert len(guard.all("usage")) == 8 and all(step["output_tokens"] > 0 for step in guard.all("usage"))
    assert {step["output"] for step in guard.all("result") if step.get("outcome") != "denied"} == {tools.error}
    row(
        nudge="end of the tool result, in the 4th request and in all later ones",
        block="calls 6 and 7 refused; 5 of 7 ran",
        stop="`turn.done()` is true, `turn.stop` is the decision, `turn.text` says why",
    )


@pytest.mark.parametrize("way", WAYS)
def test_parallel_calls_are_one_turn_and_all_are_answered(way: Any) -> None:
    tools, guard = Tools(), Notebook()
    with FakeModel(same_failing_batch()) as model:
        turn = way(model, tools, ToolLoop(guard))
    assert model.refused == [] and turn.stop is not None
    assert all(len(step["calls"]) == 3 for step in guard.all("turn"))
    assert len(guard.all("turn")) == len(model.requests) < 12


def test_a_stop_raises_if_asked_and_the_history_stays_valid() -> None:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with FakeModel(same_failing_batch()) as model:
        loop = ToolLoop(exit_behavior="error")
        with pytest.raises(deloop.StopError) as raised:
            loops.messages_loop(model, Tools(), loop, messages)
        assert raised.value.decision.status == "LOOP_DETECTED"
        model.script = lambda request: "I can't reach it."
        messages[-1]["content"].append({"type": "text", "text": "What happened?"})
        turn = loops.messages_loop(model, Tools(), loop, messages)
    assert model.refused == [] and turn.stop is None and turn.text == "I can't reach it."
    row(stop_error="`turn.done()` raises deloop.StopError; the history stays valid")


def test_new_text_by_a_person_lifts_the_stop() -> None:
    tools, guard = Tools(), Notebook()
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with FakeModel(same_failing_call()) as model:
        loop = ToolLoop(guard)
        loops.messages_loop(model, tools, loop, messages)
        messages[-1]["content"].append({"type": "text", "text": "Try again, the server is up."})
        loops.messages_loop(model, tools, loop, messages)
    assert model.refused == [] and len(tools.ran) > 5
    assert [step["text"] for step in guard.all("user")] == [TASK, "Try again, the server is up."]


def test_a_healthy_loop_sends_the_same_requests() -> None:
    runs, seen = [], []
    for loop in (None, ToolLoop(on_decision=seen.append)):
        with FakeModel(healthy(30)) as model:
            loops.messages_loop(model, Workspace(), loop)
            runs.append(model.requests)
    count = assert_same_requests(*runs)
    assert count == 31 and seen == []
    row(healthy=f"{count} of {count} requests identical")


def test_a_crash_inside_deloop_changes_nothing() -> None:
    runs, ran = [], []
    for loop in (None, ToolLoop(BrokenGuard())):  # type: ignore[arg-type]
        tools = Tools()
        with FakeModel(same_failing_batch(turns=20)) as model:
            loops.messages_loop(model, tools, loop)
            runs.append(model.requests)
            ran.append(len(tools.ran))
    assert assert_same_requests(*runs) == 21 and ran == [60, 60]
    row(crash="21 of 21 requests identical")


RESUMED = """
import json, os, sys
from anthropic_loops import *
from deloop.anthropic import ToolLoop

path, root, stop_after, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

class Model:
    pass

model = Model()
model.root = root
loop = ToolLoop()
messages = [{"role": "user", "content": TASK}]
if os.path.exists(path):
    stored = json.load(open(path))
    messages = stored["messages"]
    if how == "checkpoint":
        assert loop.restore(stored["checkpoint"])
turn = messages_loop(model, Tools(), loop, messages, limit=stop_after)
stored = {"messages": messages, "checkpoint": loop.checkpoint()}
open(path, "w").write(json.dumps(stored, default=lambda block: block.model_dump(exclude_unset=True)))
print(turn.text if turn else "not done")
"""


@pytest.mark.parametrize("how", ["checkpoint"])
def test_a_new_process_continues_where_the_old_one_was(tmp_path: Any, how: str) -> None:
    with FakeModel(same_failing_call()) as whole:
        loops.messages_loop(whole, Tools(), ToolLoop())
    with FakeModel(same_failing_call()) as model:
        assert run_python(RESUMED, str(tmp_path / "t"), model.root, "4", how).strip() == "not done"
        assert run_python(RESUMED, str(tmp_path / "t"), model.root, "40", how).startswith(STOPPED)
    assert model.refused == [] and assert_same_requests(whole.requests, model.requests) == 8
    row(resume="stored and resumed by a new process: requests identical to those of one process")


@pytest.mark.parametrize("how", ["checkpoint"])
def test_it_can_be_resumed_after_any_request(how: str) -> None:
    with FakeModel(same_failing_batch()) as whole:
        loops.messages_loop(whole, Tools(), ToolLoop())
    messages: list[Any] = [{"role": "user", "content": TASK}]
    state: str | None = None
    with FakeModel(same_failing_batch()) as model:
        for _ in whole.requests:
            loop = ToolLoop()
            if how == "checkpoint" and state is not None:
                assert loop.restore(state)
            turn = loops.messages_loop(model, Tools(), loop, messages, limit=1)
            state = loop.checkpoint()
    assert turn is not None and turn.stop is not None
    assert model.refused == [] and assert_same_requests(whole.requests, model.requests) == len(whole.requests)


def test_results_of_content_blocks() -> None:
    guard = Notebook()
    blocks = [{"type": "text", "text": "Error: no such table: orders"}]
    with FakeModel(same_failing_call(turns=6)) as model:
        loop, client = ToolLoop(guard), loops.client(model)
        messages: list[Any] = [{"role": "user", "content": TASK}]
        while True:
            response = client.messages.create(messages=messages, **loops.settings(Tools()))
            messages.append({"role": "assistant", "content": response.content})
            turn = loop.answered(response, messages)
            if turn.calls:
                messages.append({"role": "user", "content": turn.results(lambda name, args: list(blocks))})
            if turn.done():
                break
    assert model.refused == [] and "nudge" in guard.actions
    first_with(model.requests, "[deloop] You ran `convert https://example.test/data`")
    assert all("[deloop]" not in str(step.get("output")) for step in guard.all("result"))


def test_thinking_is_kept_in_a_collected_stream() -> None:
    from deloop.anthropic import collect

    events: list[Any] = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Let me"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": " see."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": " 1}"}},
        {"type": "message_delta", "usage": {"output_tokens": 9}},
    ]
    stream = collect(events)
    assert list(stream) == events
    assert stream.response["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "abc"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
    ]
    assert (stream.response["usage"]["input_tokens"], stream.response["usage"]["output_tokens"]) == (3, 9)


def test_a_request_that_the_client_tries_again_is_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    script, tried = same_failing_call(), []

    def flaky(request: Any) -> Any:
        tried.append(request.turns)
        return Failure(503, "overloaded") if request.turns == 2 and tried.count(2) == 1 else script(request)

    guard = Notebook()
    with FakeModel(flaky) as model:
        client = loops.client(model).with_options(max_retries=2)
        monkeypatch.setattr(loops, "client", lambda model: client)
        loops.messages_loop(model, Tools(), ToolLoop(guard))
    assert len(model.requests) == 9 and len(guard.all("turn")) == 8


@pytest.mark.parametrize("resumed", [False, True])
def test_a_program_that_lets_the_model_continue(resumed: bool) -> None:
    guard = Notebook()
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with FakeModel(lambda request: "I am still working on it and will report back when it is done.") as model:
        client, loop = loops.client(model), ToolLoop(guard)
        for _ in range(60):
            response = client.messages.create(model="fake-model", max_tokens=100, messages=messages)
            messages.append({"role": "assistant", "content": response.content})
            if resumed:
                loop = ToolLoop(guard := Notebook())
            turn = loop.answered(response, messages, origin="harness")
            if turn.stop is not None:
                break
            messages.append({"role": "user", "content": turn.nudge() or "Continue."})
    assert model.refused == [] and turn.stop is not None and turn.done() and len(model.requests) < 30
    nudges = [entry["text"] for entry in model.requests[-1].conversation if entry["text"].startswith("[deloop]")]
    assert len(nudges) == 3 and place_of(model.requests[-1], nudges[0]) == "user"
    assert {step["origin"] for step in guard.all("user")} == {"harness"}
    assert not any("[deloop]" in step["text"] for step in guard.all("user"))


def test_what_is_no_answer_is_an_error_that_says_so() -> None:
    with pytest.raises(TypeError, match="takes a message, not str"):
        ToolLoop().answered("text")


def test_the_program_of_the_page_runs() -> None:
    with FakeModel(same_failing_call()) as model:
        printed = run_page_program("anthropic", model)
    assert model.refused == [] and len(model.requests) == 8 and STOPPED in printed
