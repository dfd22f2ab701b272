"""What can go wrong in Pydantic AI: each place where its hooks behave in a way that an adapter could get wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_model import FakeModel, Request
from harness import FIRST, LADDER, RecordingGuard, STOPPED, Tools, first_with
from model_scripts import failing_once, same_failing_call
from model_wire import Reply
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext, UsageLimits, capture_run_messages
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage
from pydantic_ai.toolsets import WrapperToolset
from test_pydantic_ai import agent, client, failing

from deloop.pydantic_ai import Deloop, DeloopStop



def test_a_block_does_not_spend_the_retries_of_a_tool() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        result = agent(model, tools, Deloop(), retries=0).run_sync("go")
    assert result.output.startswith(STOPPED) and len(tools.ran) == 5


def test_a_tool_that_asks_for_a_retry() -> None:
    def run(retries: int, *capabilities: Any) -> tuple[int, str]:
        tools = Tools()
        with FakeModel(same_failing_call()) as model:
            asked = Agent(client(model), tools=[failing(tools, ModelRetry)], retries=retries, capabilities=list(capabilities))
            try:
                output = asked.run_sync("go").output
            except UnexpectedModelBehavior:
                output = "too many retries"
            return len(tools.ran), output[:17]

    assert run(1) == (2, "too many retries")
    assert run(1, Deloop()) == (2, "too many retries"), "the framework's own limit comes first"
    assert run(40, Deloop()) == (5, "[deloop] Stopped:")


def test_a_tool_that_raises_ends_the_run_as_without_deloop() -> None:
    for capabilities in ([], [Deloop()]):
        tools = Tools()
        with FakeModel(same_failing_call()) as model, pytest.raises(ConnectionError):
            Agent(client(model), tools=[failing(tools, ConnectionError)], capabilities=capabilities).run_sync("go")
        assert len(tools.ran) == 1


def test_calls_that_do_not_fit_the_schema() -> None:
    guard, tools = RecordingGuard(deliver="user"), Tools()
    with FakeModel(same_failing_call(args={"uri": 1})) as model:
        result = agent(model, tools, Deloop(guard), retries=40).run_sync("go")
    assert tools.ran == [] and model.refused == []
    assert {step["outcome"] for step in guard.of("result")[:5]} == {"invalid"}
    assert first_with(model.requests, "[deloop]") <= 4
    assert result.output.startswith(STOPPED)


def test_tools_that_do_not_exist() -> None:
    guard = RecordingGuard(deliver="user")
    with FakeModel(same_failing_call(tool="no_such_tool")) as model:
        result = agent(model, Tools(), Deloop(guard), retries=40).run_sync("go")
    assert {step["outcome"] for step in guard.of("result")[:3]} == {"invalid"}
    assert result.output.startswith(STOPPED) and model.refused == []


class Answer(BaseModel):
    """An output that isn't text."""

    number: int


def test_an_output_that_cannot_be_text_always_raises() -> None:
    tools = Tools()
    with FakeModel(same_failing_call(tool="convert")) as model, pytest.raises(DeloopStop):
        agent(model, tools, Deloop(), output_type=Answer).run_sync("go")
    assert (len(tools.ran), len(model.requests)) == (5, 8)


def test_a_rejected_output_comes_from_the_harness() -> None:
    def script(request: Request) -> Reply | str:
        return "not a call" if request.turns == 0 else Reply(calls=[("final_result", {"number": 3})])

    guard = RecordingGuard(deliver="user")
    with FakeModel(script) as model:
        result = agent(model, Tools(), Deloop(guard), output_type=Answer).run_sync("go")
    assert result.output == Answer(number=3)
    assert [step["origin"] for step in guard.of("user")] == ["human", "harness"]
    assert guard.of("turn")[1]["calls"] == [], "the call of an output tool is the answer itself"


def test_all_toolsets_are_covered() -> None:
    class Other(WrapperToolset[Any]):
        """A toolset in another one, as MCP servers are."""

    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        toolset = Other(FunctionToolset([failing(tools)]))
        result = Agent(client(model), toolsets=[toolset], capabilities=[Deloop()]).run_sync("go")
    assert result.output.startswith(STOPPED) and len(tools.ran) == 5


def test_a_capability_that_retries_inside_counts_once() -> None:
    class Twice(AbstractCapability[Any]):
        """Runs every tool again if it fails."""

        calls: list[str] = []

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            self.calls.append(call.tool_call_id)
            try:
                return await handler(args)
            except Exception:
                return await handler(args)

    guard, tools = RecordingGuard(deliver="user"), Tools()
    with FakeModel(same_failing_call()) as model:
        agent(model, tools, Twice(), Deloop(guard)).run_sync("go")
    assert guard.actions == LADDER
    assert (len(tools.ran), len(model.requests)) == (10, 8)
    assert len(Twice.calls) == 5, "a refused call reaches no other capability"


def test_ids_and_usage() -> None:
    guard = RecordingGuard(deliver="user")
    with FakeModel(lambda request: Reply("Hello.", tokens=(120, 7))) as model:
        agent(model, Tools(), Deloop(guard)).run_sync("go", conversation_id="talk-7")
        agent(model, Tools(), Deloop(guard, session="mine")).run_sync("go")
    assert [step["session"] for step in guard.of("turn")] == ["talk-7", "mine"]
    usage = guard.of("usage")[0]
    assert (usage["input_tokens"], usage["output_tokens"], usage["model"]) == (120, 7, "gpt-test")


def test_several_runs_from_one_history_do_not_count_as_one() -> None:
    guard, tools = RecordingGuard(deliver="user"), Tools()
    deloop = Deloop(guard)
    with FakeModel(same_failing_call(turns=2)) as model:
        asked = agent(model, tools, deloop)
        start = asked.run_sync("go").all_messages()
        model.script = lambda request: "Done." if request.results[2:] else same_failing_call()(request)
        for _ in range(8):
            asked.run_sync("once more", message_history=start)
        guard.decisions.clear()

        async def together() -> None:
            await asyncio.gather(*(asked.run("once more", message_history=start) for _ in range(8)))

        asyncio.run(together())
    assert guard.actions.count("block") == guard.actions.count("stop") == 0


def test_runs_from_one_history_at_the_same_time() -> None:
    guard, tools, heard = RecordingGuard(deliver="user"), Tools(), []
    with FakeModel(same_failing_call()) as model:
        asked = agent(model, tools, Deloop(guard, on_decision=lambda decision: heard.append(decision.action)))
        with capture_run_messages() as start, pytest.raises(UsageLimitExceeded):
            asked.run_sync("go", usage_limits=UsageLimits(request_limit=4))

        async def together() -> list[str]:
            runs = (asked.run(message_history=list(start)) for _ in range(5))
            return [result.output for result in await asyncio.gather(*runs)]

        assert all(output.startswith(STOPPED) for output in asyncio.run(together()))
    assert len(tools.ran) == 4 + 5, "one more call in each run, and the blocks hold in all of them"
    assert sorted(heard) == sorted(["nudge"] + LADDER[1:] * 5)
    assert len({step["session"] for step in guard.steps}) == 5


def test_runs_side_by_side_have_sessions_of_their_own() -> None:
    guard, tools = RecordingGuard(deliver="user"), Tools()

    async def together() -> list[str]:
        asked = agent(model, tools, Deloop(guard))
        results = await asyncio.gather(*(asked.run("go") for _ in range(6)))
        return [result.output for result in results]

    with FakeModel(same_failing_call()) as model:
        outputs = asyncio.run(together())
    assert all(output.startswith(STOPPED) for output in outputs)
    assert len(tools.ran) == 30 and sorted(guard.actions) == sorted(LADDER * 6)


def test_an_agent_as_a_tool_of_another() -> None:
    inner_tools, deloop = Tools(), Deloop()
    outer_prompt = "delegate this"

    def script(request: Request) -> Reply | str:
        if "delegate" in request.tools:
            return "The helper failed." if request.results else Reply(calls=[("delegate", {"task": "convert it"})])
        return same_failing_call()(request)

    with FakeModel(script) as model:
        inner = agent(model, inner_tools, deloop)
        outer = Agent(client(model), capabilities=[deloop])

        @outer.tool
        async def delegate(ctx: RunContext[None], task: str) -> str:
            """Delegate a task."""
            return (await inner.run(task, usage=ctx.usage)).output

        result = outer.run_sync(outer_prompt)
    assert result.output == "The helper failed."
    assert len(inner_tools.ran) == 5 and model.refused == []
    last = [request for request in model.requests if "delegate" in request.tools][-1]
    assert last.results[0].startswith(STOPPED), "the outer model is told why the inner run ended"


def test_a_cut_history_is_a_compaction() -> None:
    def cut(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[:1] + messages[-2:] if len(messages) >= 9 else messages

    guard = RecordingGuard(deliver="user")
    with FakeModel(lambda request: f"Answer {len(request.conversation)}.") as model:
        asked = agent(model, Tools(), Deloop(guard), ProcessHistory(cut))
        history: list[ModelMessage] = []
        for n in range(6):
            history = asked.run_sync(f"question {n}", message_history=history or None).all_messages()
    assert len(guard.of("compact")) == 0, "each run alone is no longer than the one before"
    with FakeModel(same_failing_call(turns=20)) as model:
        agent(model, Tools(), Deloop(guard), ProcessHistory(cut)).run_sync("go")
    assert len(guard.of("compact")) >= 1


def test_delivery_is_reported() -> None:
    guard = RecordingGuard(deliver="user")
    with FakeModel(same_failing_call()) as model:
        agent(model, Tools(), Deloop(guard)).run_sync("go")
    nudged = [decision.step for decision in guard.decisions if decision.action == "nudge"]
    assert [(step["step"], step["ok"]) for step in guard.of("delivery")] == [(step, True) for step in nudged]


def test_a_message_from_outside_is_the_persons() -> None:
    guard = RecordingGuard(deliver="user")

    async def run() -> None:
        async with agent(model, Tools(), Deloop(guard)).iter("go") as running:
            async for _ in running:
                if len(guard.of("turn")) == 1 and len(guard.of("user")) == 1 and not sent:
                    sent.append(running.enqueue("please use the mirror"))

    sent: list[Any] = []
    with FakeModel(same_failing_call(turns=2)) as model:
        asyncio.run(run())
    assert [step["text"] for step in guard.of("user")] == ["go", "please use the mirror"]


def test_only_messages_in_mode_nudge() -> None:
    tools = Tools()
    with FakeModel(same_failing_call(turns=12)) as model:
        result = agent(model, tools, Deloop(mode="nudge")).run_sync("go")
    assert result.output == "I am done." and len(tools.ran) == 12
    assert first_with(model.requests, FIRST) == 3


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match="exit_behavior"):
        Deloop(exit_behavior="explode")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not both"):
        Deloop(RecordingGuard(), mode="nudge")  # type: ignore[arg-type]


def test_a_denied_call_is_a_persons_refusal() -> None:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults, Tool, ToolDenied

    def remove(path: str) -> str:
        """Remove a file."""
        return f"removed {path}"

    guard = RecordingGuard(deliver="user")
    with FakeModel(same_failing_call(args={"path": "a"}, turns=1)) as model:
        asked = Agent(
            client(model),
            tools=[Tool(remove, requires_approval=True)],
            output_type=[str, DeferredToolRequests],
            capabilities=[Deloop(guard)],
        )
        first = asked.run_sync("go")
        call = first.output.approvals[0].tool_call_id
        answers = DeferredToolResults(approvals={call: ToolDenied("not this file")})
        second = asked.run_sync(message_history=first.all_messages(), deferred_tool_results=answers)
    assert second.output == "I am done." and model.refused == []
    assert [step["outcome"] for step in guard.of("result")] == ["denied"]
    assert len(guard.of("turn")) == 2, "the resumed turn counts once"


@pytest.mark.parametrize("text", ["Error: no such table: orders", "Nothing here."])
def test_what_a_tool_returns_declares_nothing(text: str) -> None:
    guard = RecordingGuard(deliver="user")

    def convert(url: str) -> str:
        """Convert a page."""
        return text

    with FakeModel(same_failing_call(turns=30)) as model:
        result = Agent(client(model), tools=[convert], capabilities=[Deloop(guard)]).run_sync("go")
    # What a tool of yours returns may change by itself, so it is never refused.
    assert not result.output.startswith(STOPPED) and set(guard.actions) == {"nudge"}
    assert all("ok" not in step and "outcome" not in step for step in guard.of("result"))


def test_a_request_that_is_sent_again_counts_once() -> None:
    guard, tools = RecordingGuard(deliver="user"), Tools()
    with FakeModel(failing_once(same_failing_call())) as model:
        agent(model, tools, Deloop(guard)).run_sync("go")
    assert (len(tools.ran), len(model.requests), guard.actions) == (5, 9, LADDER)
    assert (len(guard.of("turn")), len(guard.of("user"))) == (8, 1)


def test_a_callback_that_raises_changes_nothing() -> None:
    def broken(decision: Any) -> None:
        raise RuntimeError("a broken callback")

    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        assert agent(model, tools, Deloop(on_decision=broken)).run_sync("go").output.startswith(STOPPED)
    assert len(tools.ran) == 5
