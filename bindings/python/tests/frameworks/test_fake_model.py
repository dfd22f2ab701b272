"""The fake model speaks the three APIs as the real clients read them, and refuses what the providers refuse."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from fake_model import FakeModel, Failure
from harness import Workspace
from model_scripts import arguments, healthy, same_failing_call
from model_wire import Reply

TOOL = {"type": "function", "function": {"name": "convert", "parameters": {"type": "object", "properties": {}}}}
BOTH = Reply("Let me look.", [("convert", {"url": "a"}), ("convert", {"url": "b"})], (11, 7))


def post(model: FakeModel, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"{model.url}{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


@pytest.fixture
def model():
    with FakeModel(lambda request: BOTH) as model:
        yield model


@pytest.fixture
def client(model: FakeModel) -> openai.OpenAI:
    return openai.OpenAI(base_url=model.url, api_key="fake", max_retries=0)


def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}], tools=[TOOL])
    message = answer.choices[0].message
    assert message.content == "Let me look."
    assert [json.loads(call.function.arguments)["url"] for call in message.tool_calls] == ["a", "b"]
    assert answer.usage.prompt_tokens == 11
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "go"}], stream=True, stream_options={"include_usage": True}
    )
    text, raw, usage = "", {}, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                raw[call.index] = raw.get(call.index, "") + call.function.arguments
    assert (text, [json.loads(part) for part in raw.values()]) == ("Let me look.", [{"url": "a"}, {"url": "b"}])
    assert usage.completion_tokens == 7


def test_responses(client: openai.OpenAI, model: FakeModel) -> None:
    answer = client.responses.create(model="m", input="go")
    assert answer.output_text == "Let me look."
    assert [item.type for item in answer.output] == ["message", "function_call", "function_call"]
    with client.responses.stream(model="m", input="go") as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_response()
    assert [json.loads(item.arguments)["url"] for item in streamed.output if item.type == "function_call"] == ["a", "b"]
    outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": "x"} for item in answer.output[1:]]
    client.responses.create(model="m", previous_response_id=answer.id, input=outputs)
    assert [entry["role"] for entry in model.requests[-1].conversation] == ["user", "assistant", "tool", "tool"]
    with pytest.raises(openai.BadRequestError, match="no tool output found"):
        client.responses.create(model="m", previous_response_id=answer.id, input=outputs[:1])


def test_anthropic(model: FakeModel) -> None:
    client = anthropic.Anthropic(base_url=model.root, api_key="fake", max_retries=0)
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    answer = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for message in (answer, streamed):
        assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
        assert message.content[2].input == {"url": "b"}
        assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 7)


def call(i: str) -> dict[str, Any]:
    return {"id": i, "type": "function", "function": {"name": "convert", "arguments": "{}"}}


USER = {"role": "user", "content": "go"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2")]}


def tool(i: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": i, "content": "x"}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "must not be empty"),
        ([USER, CALLS], "have no tool messages: c1, c2"),
        ([USER, CALLS, tool("c1")], "have no tool messages: c2"),
        ([USER, CALLS, tool("c1"), USER, tool("c2")], "must be followed by tool messages"),
        ([USER, CALLS, USER, tool("c1"), tool("c2")], "must be followed by tool messages"),
        ([USER, tool("c1")], "must be a response to a preceding message"),
        ([USER, CALLS, tool("c1"), tool("c2"), tool("c2")], "must be a response to a preceding message"),
        ([USER, CALLS, tool("c1"), tool("c2"), {"role": "system", "content": "x"}], "only at the beginning"),
        ([USER, {"role": "assistant", "content": None}, USER], "needs content or tool_calls"),
        ([USER, {"role": "assistant", "content": "done"}], "must not be the assistant's"),
        ([USER, CALLS, tool("c2"), tool("c1"), USER], None),
    ],
)
def test_order_of_chat(model: FakeModel, messages: list[Any], reason: str | None) -> None:
    status, answer = post(model, "/chat/completions", {"model": "m", "messages": messages})
    assert (status == 400 and reason in answer["error"]["message"]) if reason else status == 200
    assert bool(model.refused) is bool(reason)


def item(i: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": i, "name": "convert", "arguments": "{}"}


def output(i: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": i, "output": "x"}


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([USER, item("c1")], "no tool output found for function call c1"),
        ([USER, item("c1"), USER, output("c1")], "no tool output found for function call c1"),
        ([USER, item("c1"), item("c2"), output("c1"), item("c3"), output("c2"), output("c3")], "no tool output found"),
        ([USER, output("c1")], "no tool call found"),
        ([USER, item("c1"), item("c2"), output("c1"), output("c2"), USER], None),
    ],
)
def test_order_of_responses(model: FakeModel, items: list[Any], reason: str | None) -> None:
    status, answer = post(model, "/responses", {"model": "m", "input": items})
    assert (status == 400 and reason in answer["error"]["message"]) if reason else status == 200


def uses(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "convert", "input": {}} for i in ids]}


def results(*ids: str, before: tuple[Any, ...] = (), after: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"role": "user", "content": [*before, *({"type": "tool_result", "tool_use_id": i, "content": "x"} for i in ids), *after]}


TEXT = {"type": "text", "text": "note"}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "assistant", "content": "x"}], "roles must alternate"),
        ([USER, USER], "roles must alternate"),
        ([USER, uses("t1", "t2"), results("t1")], "without `tool_result` blocks immediately after: t2"),
        ([USER, uses("t1"), USER], "without `tool_result` blocks"),
        ([USER, uses("t1"), results("t1", before=(TEXT,))], "must come first"),
        ([USER, uses("t1"), results("t1", "t9")], "unexpected `tool_use_id`"),
        ([USER, uses("t1"), results("t1"), uses("t1"), results("t1")], "must be unique"),
        ([USER, uses("t1")], "the last message must be the user's"),
        ([USER, uses("t1"), results("t1", after=({"type": "text", "text": ""},))], "must be non-empty"),
        ([USER, uses("t1", "t2"), results("t2", "t1", after=(TEXT,))], None),
    ],
)
def test_order_of_anthropic(model: FakeModel, messages: list[Any], reason: str | None) -> None:
    status, answer = post(model, "/messages", {"model": "m", "max_tokens": 9, "messages": messages})
    assert (status == 400 and reason in answer["error"]["message"]) if reason else status == 200


def test_the_newest_models_take_system_messages_after_the_users_turn(model: FakeModel) -> None:
    note = {"role": "system", "content": "note"}
    for name, messages, status in (
        ("claude-newest", [USER, uses("t1"), results("t1"), note], 200),
        ("claude-newest", [USER, uses("t1"), note, results("t1")], 400),
        ("claude-older", [USER, uses("t1"), results("t1"), note], 400),
    ):
        assert post(model, "/messages", {"model": name, "max_tokens": 9, "messages": messages})[0] == status


def test_a_script_can_fail(client: openai.OpenAI, model: FakeModel) -> None:
    model.script = lambda request: Failure(503, "overloaded")
    with pytest.raises(openai.InternalServerError, match="overloaded"):
        client.chat.completions.create(model="m", messages=[USER])


def test_the_healthy_script_works_with_the_workspace(model: FakeModel) -> None:
    model.script = healthy()
    workspace = Workspace()
    messages: list[Any] = [USER]
    offered = [{"type": "function", "function": {"name": f.__name__}} for f in workspace.tools]
    while True:
        status, answer = post(model, "/chat/completions", {"model": "m", "messages": messages, "tools": offered})
        assert status == 200
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            break
        for made in message["tool_calls"]:
            try:
                said = getattr(workspace, made["function"]["name"])(**arguments(made["function"]["arguments"]))
            except FileNotFoundError as wrong:
                said = f"Error: {wrong}"
            messages.append({"role": "tool", "tool_call_id": made["id"], "content": said})
    assert len(model.requests) == 31
    assert workspace.calls == 48


def test_as_a_process() -> None:
    command = [sys.executable, str(Path(__file__).with_name("fake_model.py")), "--script", "same-failing-call", "--max", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        client = openai.OpenAI(base_url=url, api_key="fake")
        answer = client.chat.completions.create(model="m", messages=[USER], tools=[TOOL])
        assert answer.choices[0].message.tool_calls[0].function.name == "convert"
        with urllib.request.urlopen(url.replace("/v1", "/_requests")) as recorded:
            assert json.load(recorded)[0]["tools"] == ["convert"]
        process.terminate()


def test_the_same_call_every_turn(client: openai.OpenAI, model: FakeModel) -> None:
    model.script = same_failing_call()
    ids = {client.chat.completions.create(model="m", messages=[USER], tools=[TOOL]).choices[0].message.tool_calls[0].id for _ in range(3)}
    assert len(ids) == 3
