"""Plain tool loops around the Anthropic client, with deloop and without it."""

from __future__ import annotations

import asyncio
from typing import Any

import deloop.anthropic
from anthropic import Anthropic, AsyncAnthropic
from fake_model import FakeModel
from harness import Tools, Workspace
from plain_loops import TASK, attempt, by_hand, offered, runner, schema


def client(model: FakeModel) -> Anthropic:
    """Returns a client that talks to the fake model."""
    return Anthropic(base_url=model.root, api_key="fake", max_retries=0)


def settings(tools: Any) -> Any:
    """Returns what every request has."""
    listed = [{"name": name, "input_schema": schema(name)} for name in offered(tools)]
    return {"model": "fake-model", "max_tokens": 1_000, "tools": listed}


def messages_loop(
    model: FakeModel, tools: Tools | Workspace, loop: Any, messages: list[Any] | None = None, limit: int = 40
) -> Any:
    """Runs a loop with `messages.create`; without deloop if `loop` is None."""
    messages = messages if messages is not None else [{"role": "user", "content": TASK}]
    anthropic, run = client(model), runner(tools)
    for _ in range(limit):
        response = anthropic.messages.create(messages=messages, **settings(tools))
        messages.append({"role": "assistant", "content": response.content})
        if loop is None:
            calls = [block for block in response.content if block.type == "tool_use"]
            if not calls:
                return response
            results = [_by_hand(run, call) for call in calls]
            messages.append({"role": "user", "content": results})
            continue
        turn = loop.answered(response, messages)
        if turn.calls:
            messages.append({"role": "user", "content": turn.results(run)})
        if turn.done():
            return turn
    return None


def _by_hand(run: Any, call: Any) -> dict[str, Any]:
    failed: list[Exception] = []

    def noting(name: str, args: Any) -> Any:
        try:
            return run(name, args)
        except Exception as error:
            failed.append(error)
            raise

    block = {"type": "tool_result", "tool_use_id": call.id, "content": by_hand(noting, call.name, call.input)}
    return {**block, "is_error": True} if failed else block


def by_call(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop that keeps its own way to run tools."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    anthropic, run = client(model), runner(tools)
    while True:
        response = anthropic.messages.create(messages=messages, **settings(tools))
        messages.append({"role": "assistant", "content": response.content})
        turn = loop.answered(response, messages)
        results = []
        for block in response.content:
            if block.type == "tool_use":
                refusal = turn.refusal(block.id)
                ran = (refusal, None) if refusal else attempt(run, block.name, block.input)
                content = turn.result(block.id, ran[0], error=ran[1])
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": content})
        if results:
            messages.append({"role": "user", "content": results})
        if turn.done():
            return turn


def raw_stream(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with `messages.create(stream=True)`."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    anthropic, run = client(model), runner(tools)
    while True:
        stream = deloop.anthropic.collect(anthropic.messages.create(messages=messages, stream=True, **settings(tools)))
        for _ in stream:
            pass
        messages.append({"role": "assistant", "content": stream.response["content"]})
        turn = loop.answered(stream.response, messages)
        if turn.calls:
            messages.append({"role": "user", "content": turn.results(run)})
        if turn.done():
            return turn


def helper_stream(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with `messages.stream`."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    anthropic, run = client(model), runner(tools)
    while True:
        with anthropic.messages.stream(messages=messages, **settings(tools)) as stream:
            for _ in stream.text_stream:
                pass
            response = stream.get_final_message()
        messages.append({"role": "assistant", "content": response.content})
        turn = loop.answered(response, messages)
        if turn.calls:
            messages.append({"role": "user", "content": turn.results(run)})
        if turn.done():
            return turn


def asynchronous(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with the asynchronous client, streamed, and tools at the same time."""

    async def run(name: str, args: Any) -> Any:
        await asyncio.sleep(0)
        return runner(tools)(name, args)

    async def whole() -> Any:
        messages: list[Any] = [{"role": "user", "content": TASK}]
        anthropic = AsyncAnthropic(base_url=model.root, api_key="fake", max_retries=0)
        while True:
            stream = deloop.anthropic.collect(
                await anthropic.messages.create(messages=messages, stream=True, **settings(tools))
            )
            async for _ in stream:
                pass
            messages.append({"role": "assistant", "content": stream.response["content"]})
            turn = loop.answered(stream.response, messages)
            if turn.calls:
                messages.append({"role": "user", "content": await turn.aresults(run)})
            if turn.done():
                return turn

    return asyncio.run(whole())
