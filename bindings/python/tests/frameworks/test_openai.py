"""The row of plain loops around the OpenAI client."""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
from importlib.metadata import version
from typing import Any

import deloop
import openai_loops as loops
import pytest
from deloop.openai import ToolLoop
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
from model_scripts import healthy, same_batch, same_failing_batch, same_failing_call
from plain_loops import BLOCKED, NUDGE, SECOND, STOPPED, TASK, Notebook, runner

WAYS = [
    loops.chat,
    loops.chat_by_call,
    loops.chat_stream,
    loops.chat_async,
    loops.responses,
    loops.responses_chained,
    loops.responses_stream,
]


def row(**cells: str) -> None:
    write_row("openai", version=version("openai"), **cells)


@pytest.mark.parametrize("way", [loops.chat, loops.responses])
def test_without_deloop_the_loop_has_no_end(way: Any) -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        assert way(model, tools, None, limit=60) is None
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
    assert {step["output"] for step in guard.all("result") if step.get("outcome") != "denied"} == {tools.error}
    row(
        nudge="end of the tool result, in the 4th request and in all later ones",
        block="calls 6 and 7 refused; 5 of 7 ran",
        stop="`turn.done()` is true, `turn.stop` is the decision, `turn.text` says why",
    )


@pytest.mark.parametrize("way", [loops.chat, loops.chat_stream, loops.responses, loops.responses_stream])
def test_tokens_are_counted(way: Any) -> None:
    guard = Notebook()
    with FakeModel(same_failing_call(turns=1)) as model:
        way(model, Tools(), ToolLoop(guard))
    usage = guard.all("usage")
    assert len(usage) == 2 and all(step["input_tokens"] > 0 and step["model"] == "fake-model" for step in usage)


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
            loops.chat(model, Tools(), loop, messages)
        assert raised.value.decision.status == "LOOP_DETECTED"
        model.script = lambda request: "I can't reach it."
        messages.append({"role": "user", "content": "What happened?"})
        turn = loops.chat(model, Tools(), loop, messages)
    assert model.refused == [] and turn.stop is None and turn.text == "I can't reach it."
    row(stop_error="`turn.done()` raises deloop.StopError; the history stays valid")


def test_new_text_by_a_person_lifts_the_stop() -> None:
    tools, guard = Tools(), Notebook()
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with FakeModel(same_failing_call()) as model:
        loop = ToolLoop(guard)
        loops.chat(model, tools, loop, messages)
        messages.append({"role": "user", "content": "Try again, the server is up."})
        loops.chat(model, tools, loop, messages)
    assert model.refused == [] and len(tools.ran) > 5
    assert [step["text"] for step in guard.all("user")] == [TASK, "Try again, the server is up."]


@pytest.mark.parametrize("way", [loops.chat, loops.responses])
def test_a_healthy_loop_sends_the_same_requests(way: Any) -> None:
    runs, seen = [], []
    for loop in (None, ToolLoop(on_decision=seen.append)):
        with FakeModel(healthy(30)) as model:
            way(model, Workspace(), loop)
            runs.append(model.requests)
    count = assert_same_requests(*runs)
    assert count == 31 and seen == []
    row(healthy=f"{count} of {count} requests identical")


@pytest.mark.parametrize("way", [loops.chat, loops.responses])
def test_a_crash_inside_deloop_changes_nothing(way: Any) -> None:
    runs, ran = [], []
    for loop in (None, ToolLoop(BrokenGuard())):  # type: ignore[arg-type]
        tools = Tools()
        with FakeModel(same_failing_batch(turns=20)) as model:
            way(model, tools, loop)
            runs.append(model.requests)
            ran.append(len(tools.ran))
    assert assert_same_requests(*runs) == 21 and ran == [60, 60]
    row(crash="21 of 21 requests identical")


RESUMED = """
import json, os, sys
from openai_loops import *
from deloop.openai import ToolLoop

path, url, stop_after, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

class Model:
    pass

model = Model()
model.url = url
loop = ToolLoop()
messages = [{"role": "user", "content": TASK}]
if os.path.exists(path):
    stored = json.load(open(path))
    messages = stored["messages"]
    if how == "checkpoint":
        assert loop.restore(stored["checkpoint"])
turn = chat(model, Tools(), loop, messages, limit=stop_after)
plain = [message if isinstance(message, dict) else message.model_dump(exclude_unset=True) for message in messages]
json.dump({"messages": plain, "checkpoint": loop.checkpoint()}, open(path, "w"))
print(turn.text if turn else "not done")
"""


@pytest.mark.parametrize("how", ["checkpoint"])
def test_a_new_process_continues_where_the_old_one_was(tmp_path: Any, how: str) -> None:
    with FakeModel(same_failing_call()) as whole:
        loops.chat(whole, Tools(), ToolLoop())
    with FakeModel(same_failing_call()) as model:
        assert run_python(RESUMED, str(tmp_path / "t"), model.url, "4", how).strip() == "not done"
        assert run_python(RESUMED, str(tmp_path / "t"), model.url, "40", how).startswith(STOPPED)
    assert model.refused == [] and assert_same_requests(whole.requests, model.requests) == 8
    row(resume="stored and resumed by a new process: requests identical to those of one process")


@pytest.mark.parametrize("how", ["checkpoint"])
def test_it_can_be_resumed_after_any_request(how: str) -> None:
    with FakeModel(same_failing_batch()) as whole:
        loops.chat(whole, Tools(), ToolLoop())
    messages: list[Any] = [{"role": "user", "content": TASK}]
    state: str | None = None
    with FakeModel(same_failing_batch()) as model:
        for _ in whole.requests:
            loop = ToolLoop()
            if how == "checkpoint" and state is not None:
                assert loop.restore(state)
            turn = loops.chat(model, Tools(), loop, messages, limit=1)
            state = loop.checkpoint()
    assert turn is not None and turn.stop is not None
    assert model.refused == [] and assert_same_requests(whole.requests, model.requests) == len(whole.requests)


def test_a_shorter_history_is_a_compaction() -> None:
    guard = Notebook()
    loop = ToolLoop(guard)
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with FakeModel(same_failing_call()) as model:
        loops.chat(model, Tools(), loop, messages, limit=3)
        del messages[1:5]
        loops.chat(model, Tools(), loop, messages, limit=1)
    assert len(guard.all("compact")) == 1 and model.refused == []


@pytest.mark.parametrize("way", [loops.chat, loops.responses])
def test_arguments_that_are_no_json_never_run(way: Any) -> None:
    tools, guard = Tools(), Notebook()
    with FakeModel(same_batch([("convert", '{"url": ')])) as model:
        turn = way(model, tools, ToolLoop(guard))
    assert tools.ran == [] and turn.stop is not None and model.refused == []
    first = guard.all("result")[0]
    assert (first["ok"], first["error_type"]) == (False, "JSONDecodeError")
    assert guard.all("turn")[0]["calls"][0]["args"] == '{"url": '


def test_tools_that_raise_or_return_objects() -> None:
    guard = Notebook()
    with FakeModel(same_failing_call(turns=2)) as model:
        loop, client = ToolLoop(guard), loops.client(model)
        messages: list[Any] = [{"role": "user", "content": TASK}]
        outputs: Any = iter([{"status": 404, "error": "not found"}, ConnectionError("refused")])

        def run(name: str, args: Any) -> Any:
            output = next(outputs)
            if isinstance(output, Exception):
                raise output
            return output

        while True:
            response = client.chat.completions.create(
                model="fake-model", messages=messages, tools=loops.chat_tools(Tools())
            )
            messages.append(response.choices[0].message)
            turn = loop.answered(response, messages)
            messages += turn.results(run)
            if turn.done():
                break
    contents = [message["content"] for message in messages if isinstance(message, dict) and message["role"] == "tool"]
    assert contents == ['{"status": 404, "error": "not found"}', "ConnectionError: refused"]
    assert guard.all("result")[1]["error_type"] == "ConnectionError"


def test_providers_that_reuse_call_ids() -> None:
    tools, guard = Tools(), Notebook()
    loop, run = ToolLoop(guard), runner(tools)
    messages: list[Any] = [{"role": "user", "content": TASK}]
    call = {"id": "call_0", "type": "function", "function": {"name": "convert", "arguments": json.dumps({"url": "x"})}}
    for _ in range(20):
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        messages.append(message)
        turn = loop.answered({"choices": [{"message": message}]}, messages)
        messages += turn.results(run)
        if turn.done():
            break
    assert len(tools.ran) == 5 and guard.actions[:5] == ["nudge", "nudge", "block", "block", "stop"]


def test_results_that_deloop_was_not_given_are_read_from_the_history() -> None:
    guard = Notebook()
    loop = ToolLoop(guard)
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for n in range(4):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "convert", "arguments": '{"url": "x"}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        messages.append(message)
        loop.answered({"choices": [{"message": message}]}, messages)
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": "Error: no such table: orders"})
    assert len(guard.all("result")) == 3 and "nudge" in guard.actions
    assert {step["ok"] for step in guard.all("delivery")} == {False}


def test_many_conversations_on_one_guard() -> None:
    guard = Notebook()
    with FakeModel(same_failing_call()) as model:
        turns: list[Any] = []
        ways = [
            threading.Thread(target=lambda n=n: turns.append(loops.chat(model, Tools(), ToolLoop(guard, session=f"s{n}"))))
            for n in range(8)
        ]
        for way in ways:
            way.start()
        for way in ways:
            way.join()
        assert len(model.requests) == 64 and all(turn.stop for turn in turns)
    assert {step["session"] for step in guard.steps} == {f"s{n}" for n in range(8)}


def test_a_subagent_is_an_agent_of_the_same_session() -> None:
    guard = Notebook()
    with FakeModel(same_failing_call(turns=1)) as model:
        loops.chat(model, Tools(), ToolLoop(guard, session="s"))
        loops.chat(model, Tools(), ToolLoop(guard, session="s", agent="researcher"))
    assert {(step["session"], step.get("agent")) for step in guard.steps} == {("s", None), ("s", "researcher")}


def test_a_request_that_the_client_tries_again_is_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    script, tried = same_failing_call(), []

    def flaky(request: Any) -> Any:
        tried.append(request.turns)
        return Failure(503, "overloaded") if request.turns == 2 and tried.count(2) == 1 else script(request)

    guard = Notebook()
    with FakeModel(flaky) as model:
        client = loops.client(model).with_options(max_retries=2)
        monkeypatch.setattr(loops, "client", lambda model: client)
        loops.chat(model, Tools(), ToolLoop(guard))
    assert len(model.requests) == 9 and len(guard.all("turn")) == 8


def test_the_adapter_of_a_missing_framework_names_the_extra() -> None:
    if importlib.util.find_spec("langchain") is not None:
        pytest.skip("LangChain is installed here")
    with pytest.raises(ImportError, match=r"deloop\[langchain\]"):
        importlib.import_module("deloop.langchain")


@pytest.mark.parametrize("resumed", [False, True])
def test_a_program_that_lets_the_model_continue(resumed: bool) -> None:
    guard = Notebook()
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with FakeModel(lambda request: "I am still working on it and will report back when it is done.") as model:
        client, loop = loops.client(model), ToolLoop(guard)
        for _ in range(60):
            response = client.chat.completions.create(model="fake-model", messages=messages)
            messages.append(response.choices[0].message)
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
    with pytest.raises(TypeError, match="takes a chat completion or a response, not str"):
        ToolLoop().answered("text")


def test_the_program_of_the_page_runs() -> None:
    with FakeModel(same_failing_call()) as model:
        printed = run_page_program("openai", model)
    assert model.refused == [] and len(model.requests) == 8 and STOPPED in printed
