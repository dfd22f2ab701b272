"""Plain tool loops around the OpenAI client, with deloop and without it."""

from __future__ import annotations

import asyncio
from typing import Any

import deloop.openai
from fake_model import FakeModel
from harness import Tools, Workspace
from openai import AsyncOpenAI, OpenAI
from plain_loops import TASK, attempt, by_hand, offered, runner, schema


def client(model: FakeModel) -> OpenAI:
    """Returns a client that talks to the fake model."""
    return OpenAI(base_url=model.url, api_key="fake", max_retries=0)


def chat_tools(tools: Any) -> Any:
    """Returns the tools as Chat Completions takes them."""
    return [{"type": "function", "function": {"name": name, "parameters": schema(name)}} for name in offered(tools)]


def response_tools(tools: Any) -> Any:
    """Returns the tools as Responses takes them."""
    return [{"type": "function", "name": name, "parameters": schema(name), "strict": False} for name in offered(tools)]


def chat(model: FakeModel, tools: Tools | Workspace, loop: Any, messages: list[Any] | None = None, limit: int = 40) -> Any:
    """Runs a loop with Chat Completions; without deloop if `loop` is None."""
    messages = messages if messages is not None else [{"role": "user", "content": TASK}]
    openai, run = client(model), runner(tools)
    for _ in range(limit):
        response = openai.chat.completions.create(model="fake-model", messages=messages, tools=chat_tools(tools))
        message = response.choices[0].message
        messages.append(message)
        if loop is None:
            for call in message.tool_calls or []:
                content = by_hand(run, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
            if not message.tool_calls:
                return message
            continue
        turn = loop.answered(response, messages)
        messages += turn.results(run)
        if turn.done():
            return turn
    return None


def chat_by_call(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop that keeps its own way to run tools."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    openai, run = client(model), runner(tools)
    while True:
        response = openai.chat.completions.create(model="fake-model", messages=messages, tools=chat_tools(tools))
        message = response.choices[0].message
        messages.append(message)
        turn = loop.answered(response, messages)
        for call in message.tool_calls or []:
            refusal = turn.refusal(call.id)
            ran = (refusal, None) if refusal else attempt(run, call.function.name, call.function.arguments)
            content = turn.result(call.id, ran[0], error=ran[1])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        if turn.done():
            return turn


def chat_stream(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with streamed Chat Completions."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    openai, run = client(model), runner(tools)
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    while True:
        answer = openai.chat.completions.create(model="fake-model", messages=messages, tools=chat_tools(tools), **options)
        stream = deloop.openai.collect(answer)
        for _ in stream:
            pass
        messages.append(stream.message)
        turn = loop.answered(stream.response, messages)
        messages += turn.results(run)
        if turn.done():
            return turn


def chat_async(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with the asynchronous client, streamed, and tools at the same time."""

    async def run(name: str, args: Any) -> Any:
        await asyncio.sleep(0)
        return runner(tools)(name, args)

    async def whole() -> Any:
        messages: list[Any] = [{"role": "user", "content": TASK}]
        openai = AsyncOpenAI(base_url=model.url, api_key="fake", max_retries=0)
        while True:
            answer = await openai.chat.completions.create(
                model="fake-model", messages=messages, tools=chat_tools(tools), stream=True
            )
            stream = deloop.openai.collect(answer)
            async for _ in stream:
                pass
            messages.append(stream.message)
            turn = loop.answered(stream.response, messages)
            messages += await turn.aresults(run)
            if turn.done():
                return turn

    return asyncio.run(whole())


def responses(model: FakeModel, tools: Tools | Workspace, loop: Any, limit: int = 40) -> Any:
    """Runs a loop with Responses and the whole input; without deloop if `loop` is None."""
    items: list[Any] = [{"role": "user", "content": TASK}]
    openai, run = client(model), runner(tools)
    for _ in range(limit):
        response = openai.responses.create(model="fake-model", input=items, tools=response_tools(tools))
        items += response.output
        if loop is None:
            calls: list[Any] = [item for item in response.output if item.type == "function_call"]
            for call in calls:
                output = by_hand(run, call.name, call.arguments)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
            if not calls:
                return response
            continue
        turn = loop.answered(response, items)
        items += turn.results(run)
        if turn.done():
            return turn
    return None


def responses_chained(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with Responses that sends only what is new."""
    openai, run = client(model), runner(tools)
    items: list[Any] = [{"role": "user", "content": TASK}]
    loop.user(TASK)
    previous: Any = None
    while True:
        response = openai.responses.create(
            model="fake-model", input=items, tools=response_tools(tools), previous_response_id=previous
        )
        previous = response.id
        turn = loop.answered(response)
        items = turn.results(run)
        if turn.done():
            return turn


def responses_stream(model: FakeModel, tools: Tools | Workspace, loop: Any) -> Any:
    """Runs a loop with streamed Responses."""
    items: list[Any] = [{"role": "user", "content": TASK}]
    openai, run = client(model), runner(tools)
    while True:
        stream = deloop.openai.collect(
            openai.responses.create(model="fake-model", input=items, tools=response_tools(tools), stream=True)
        )
        for _ in stream:
            pass
        items += stream.response.output
        turn = loop.answered(stream.response, items)
        items += turn.results(run)
        if turn.done():
            return turn
