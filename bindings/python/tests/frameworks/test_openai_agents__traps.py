"""What can go wrong in the OpenAI Agents SDK: each place where its hooks behave in a way that an adapter could get wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolsToFinalOutputResult,
    UserError,
    function_tool,
    handoff,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.mcp import MCPServer
from agents.run import ModelInputData
from fake_model import FakeModel, Request
from harness import FIRST, LADDER, RecordingGuard, STOPPED, Tools, first_with, place_of
from mcp import types as mcp
from model_scripts import failing_once, same_failing_call
from model_wire import Reply
from pydantic import BaseModel
from test_openai_agents import agent, client, run

from deloop.openai_agents import Deloop, DeloopStop



def test_different_exceptions_are_different_failures() -> None:
    guard = RecordingGuard(deliver="tool")
    errors = iter([KeyError("name"), ValueError("bad url"), OSError("disk is full"), TypeError("None")])

    @function_tool
    def convert(url: str) -> str:
        """Convert a page."""
        raise next(errors)

    with FakeModel(same_failing_call(turns=4)) as model:
        run(Deloop(guard).wrap(Agent("a", model=client(model), tools=[convert])), "go")
    assert len({result for request in model.requests for result in request.results}) <= 2, "the model sees one fixed text"
    assert [step["error_type"] for step in guard.of("result")] == ["KeyError", "ValueError", "OSError", "TypeError"]


def test_an_error_that_is_not_handled_ends_the_run_as_without_deloop() -> None:
    tools = Tools()
    tool = function_tool(tools.raising, name_override="convert", failure_error_function=None)
    for wrap in (lambda asked: asked, Deloop().wrap):
        with FakeModel(same_failing_call()) as model, pytest.raises(UserError) as ended:
            run(wrap(Agent("a", model=client(model), tools=[tool])), "go")
        assert isinstance(ended.value.__cause__, ConnectionError)
    assert len(tools.ran) == 2


def test_a_tool_with_its_own_error_text() -> None:
    tools = Tools()
    tool = function_tool(tools.raising, name_override="convert", failure_error_function=lambda context, error: f"It failed: {error}")
    with FakeModel(same_failing_call()) as model:
        result = run(Deloop().wrap(Agent("a", model=client(model), tools=[tool])), "go")
    assert result.final_output.startswith(STOPPED) and len(tools.ran) == 5
    assert model.requests[3].results[2].startswith("It failed: Error: no such table: orders\n\n[deloop] You ran")


@pytest.mark.parametrize("text", ["Error: no such table: orders", "Nothing here."])
def test_what_a_tool_returns_declares_nothing(text: str) -> None:
    @function_tool
    def convert(url: str) -> str:
        """Convert a page."""
        return text

    guard = RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call(turns=9)) as model:
        result = run(Deloop(guard).wrap(Agent("a", model=client(model), tools=[convert])), "go", max_turns=50)
    assert not result.final_output.startswith(STOPPED) and set(guard.actions) == {"nudge"}
    assert all("ok" not in step and "outcome" not in step for step in guard.of("result"))


def test_a_tool_that_takes_too_long() -> None:
    @function_tool(timeout=0.05)
    async def convert(url: str) -> str:
        """Convert a page."""
        await asyncio.Event().wait()
        return "late"

    guard = RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call(turns=1)) as model:
        run(Deloop(guard).wrap(Agent("a", model=client(model), tools=[convert])), "go")
    assert [step["outcome"] for step in guard.of("result")] == ["timeout"]


def test_refused_calls_reach_no_tool_hook() -> None:
    class Count(RunHooks[Any]):
        started = 0

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            self.started += 1

    hooks = Count()
    with FakeModel(same_failing_call()) as model:
        run(Deloop().wrap(agent(model, Tools())), "go", hooks=hooks)
    assert hooks.started == 5


def test_own_guardrails_and_hooks_stay() -> None:
    seen: list[str] = []

    @tool_input_guardrail
    def before(data: Any) -> ToolGuardrailFunctionOutput:
        seen.append("before")
        return ToolGuardrailFunctionOutput.allow()

    @tool_output_guardrail
    def after(data: Any) -> ToolGuardrailFunctionOutput:
        seen.append(f"after {data.output}")
        return ToolGuardrailFunctionOutput.reject_content("hidden")

    class Mine(AgentHooks[Any]):
        async def on_llm_start(self, *args: Any) -> None:
            seen.append("llm start")

        async def on_start(self, *args: Any) -> None:
            seen.append("start")

        async def on_tool_end(self, *args: Any) -> None:
            seen.append("tool end")

    @function_tool(tool_input_guardrails=[before], tool_output_guardrails=[after])
    def convert(url: str) -> str:
        """Convert a page."""
        return "secret"

    guard = RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call(turns=1)) as model:
        original = Agent("a", model=client(model), tools=[convert], hooks=Mine())
        run(Deloop(guard).wrap(original), "go")
    assert seen == ["start", "llm start", "before", "after secret", "tool end", "llm start"]
    assert guard.of("result")[0]["output"] == "hidden", "deloop sees what the model sees"
    assert len(convert.tool_input_guardrails or []) == 1 and original.tools == [convert], "the original is unchanged"


@pytest.mark.parametrize("behavior", ["stop_on_first_tool", {"stop_at_tool_names": ["convert"]}, "callable"])
@pytest.mark.parametrize("exit_behavior", ["end", "error"])
def test_own_tool_use_behavior_stays(behavior: Any, exit_behavior: Any) -> None:
    def own(context: Any, results: Any) -> ToolsToFinalOutputResult:
        return ToolsToFinalOutputResult(is_final_output=True, final_output="the page")

    @function_tool
    def convert(url: str) -> str:
        """Convert a page."""
        return "the page"

    with FakeModel(same_failing_call()) as model:
        asked = Agent("a", model=client(model), tools=[convert], tool_use_behavior=own if behavior == "callable" else behavior)
        result = run(Deloop(exit_behavior=exit_behavior).wrap(asked), "go")
    assert result.final_output == "the page" and len(model.requests) == 1


class OwnServer(MCPServer):
    """An MCP server in this process."""

    def __init__(self, tools: Tools) -> None:
        super().__init__()
        self.tools = tools

    name = "own"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[mcp.Tool]:
        schema = {"type": "object", "properties": {"url": {"type": "string"}}}
        return [mcp.Tool.model_validate({"name": "convert", "description": "Fetch.", "inputSchema": schema})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> mcp.CallToolResult:
        self.tools.note(str(arguments))
        raise ConnectionError("no such table: orders")

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


def test_tools_of_mcp_servers() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model:
        result = run(Deloop().wrap(Agent("a", model=client(model), mcp_servers=[OwnServer(tools)])), "go")
    assert result.final_output.startswith(STOPPED)
    assert (len(tools.ran), len(model.requests), first_with(model.requests, FIRST)) == (5, 8, 3)


@pytest.mark.parametrize("form", ["agent", "handoff"])
def test_the_agent_that_takes_over_is_guarded(form: str) -> None:
    def script(request: Request) -> Any:
        if request.turns == 0:
            return Reply(calls=[(next(tool for tool in request.tools if tool.startswith("transfer")), {})])
        return same_failing_call()(request)

    tools = Tools()
    with FakeModel(script) as model:
        helper = agent(model, tools)
        helper.handoffs = []
        front = Agent("front", model=client(model), handoffs=[helper if form == "agent" else handoff(helper)])
        helper.handoffs.append(front)
        result = run(Deloop().wrap(front), "go")
    assert result.final_output.startswith(STOPPED) and result.last_agent.name == "tester"
    assert (len(tools.ran), len(model.requests)) == (5, 9) and model.refused == []


def test_agents_that_hand_off_to_each_other() -> None:
    guard = RecordingGuard(deliver="tool")
    with FakeModel(lambda request: Reply(calls=[(request.tools[0], {})])) as model:
        one, two = Agent("one", model=client(model)), Agent("two", model=client(model))
        one.handoffs, two.handoffs = [two], [one]
        with pytest.raises(DeloopStop):
            run(Deloop(guard).wrap(one), "go", max_turns=200)
    assert guard.actions[0] == "nudge" and model.refused == []
    nudged = first_with(model.requests, guard.decisions[0].message)
    assert place_of(model.requests[nudged], guard.decisions[0].message) == "user"
    assert len(model.requests) < 200


def test_an_agent_as_a_tool_is_a_run_of_its_own() -> None:
    def script(request: Request) -> Any:
        if "helper" in request.tools:
            return "The helper failed." if request.results else Reply(calls=[("helper", {"input": "convert it"})])
        return same_failing_call()(request)

    guard, tools = RecordingGuard(deliver="tool"), Tools()
    deloop = Deloop(guard)
    with FakeModel(script) as model:
        helper = deloop.wrap(agent(model, tools)).as_tool("helper", "Helps.")
        result = run(deloop.wrap(Agent("front", model=client(model), tools=[helper])), "go")
    assert result.final_output == "The helper failed." and model.refused == []
    assert len(tools.ran) == 5 and guard.actions == LADDER
    assert len({step["session"] for step in guard.steps}) == 2
    assert model.requests[-1].results[0].startswith(STOPPED)


def test_calls_that_do_not_fit_the_schema() -> None:
    tools = Tools()
    with FakeModel(same_failing_call(args={"uri": 1})) as model:
        result = run(Deloop().wrap(agent(model, tools)), "go")
    assert tools.ran == [] and result.final_output.startswith(STOPPED) and len(model.requests) == 8


def test_tools_that_do_not_exist() -> None:
    guard = RecordingGuard(deliver="tool")
    config = RunConfig(tool_not_found_behavior="return_error_to_model")
    with FakeModel(same_failing_call(tool="no_such_tool")) as model:
        with pytest.raises(DeloopStop):
            run(Deloop(guard).wrap(agent(model, Tools())), "go", run_config=config, max_turns=100)
    message = guard.decisions[0].message
    nudged = first_with(model.requests, message)
    assert place_of(model.requests[nudged], message) == "user" and model.refused == []
    assert {step["outcome"] for step in guard.of("result")} == {"invalid", "denied"} or len(model.requests) == 8


class Answer(BaseModel):
    """An output that isn't text."""

    number: int


def test_an_output_that_cannot_be_text_always_raises() -> None:
    tools = Tools()
    with FakeModel(same_failing_call()) as model, pytest.raises(DeloopStop):
        run(Deloop().wrap(agent(model, tools, output_type=Answer)), "go")
    assert len(tools.ran) == 5


def test_a_call_that_a_person_rejects() -> None:
    @function_tool(needs_approval=True)
    def remove(path: str) -> str:
        """Remove a file."""
        return f"removed {path}"

    async def both() -> Any:
        asked = Deloop(guard).wrap(Agent("a", model=client(model), tools=[remove]))
        first = await Runner.run(asked, "go")
        state = first.to_state()
        state.reject(first.interruptions[0])
        return await Runner.run(asked, state)

    guard = RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call(args={"path": "a"}, turns=1)) as model:
        assert asyncio.run(both()).final_output == "I am done."
    assert [step["outcome"] for step in guard.of("result")] == ["denied"]
    assert len([step for step in guard.of("turn") if step["calls"]]) == 1, "the resumed turn counts once"


def test_a_shorter_input_is_a_compaction() -> None:
    def cut(data: Any) -> ModelInputData:
        items = data.model_data.input
        return ModelInputData(items[:1] + items[-2:] if len(items) == 7 else items, data.model_data.instructions)

    guard = RecordingGuard(deliver="tool")
    with FakeModel(lambda request: "Done." if request.number > 4 else same_failing_call()(request)) as model:
        run(Deloop(guard).wrap(agent(model, Tools())), "go", run_config=RunConfig(call_model_input_filter=cut))
    assert len(guard.of("compact")) == 1 and model.refused == []


def test_usage_is_reported() -> None:
    guard = RecordingGuard(deliver="tool")
    with FakeModel(lambda request: Reply("Hello.", tokens=(120, 7))) as model:
        run(Deloop(guard).wrap(agent(model, Tools())), "go")
    assert (guard.of("usage")[0]["input_tokens"], guard.of("usage")[0]["output_tokens"]) == (120, 7)


def test_delivery_is_reported() -> None:
    guard = RecordingGuard(deliver="tool")
    with FakeModel(same_failing_call()) as model:
        run(Deloop(guard).wrap(agent(model, Tools())), "go")
    nudged = [decision.step for decision in guard.decisions if decision.action == "nudge"]
    assert [(step["step"], step["ok"]) for step in guard.of("delivery")] == [(step, True) for step in nudged]
    assert not any("[deloop]" in str(step.get("output")) for step in guard.of("result") if step["outcome"] != "denied")


def test_wrapping_twice_guards_once() -> None:
    deloop, tools = Deloop(), Tools()
    with FakeModel(same_failing_call()) as model:
        once = deloop.wrap(agent(model, tools))
        assert deloop.wrap(once) is once
        context: RunContextWrapper[Any] = RunContextWrapper(None)
        assert deloop.run_for(context) is deloop.run_for(context)


def test_a_request_that_is_sent_again_counts_once() -> None:
    guard, tools = RecordingGuard(deliver="tool"), Tools()
    with FakeModel(failing_once(same_failing_call())) as model:
        asked = agent(model, tools)
        asked.model._client.max_retries = 2
        run(Deloop(guard).wrap(asked), "go")
    assert (len(tools.ran), len(model.requests), guard.actions) == (5, 9, LADDER)
    assert (len(guard.of("turn")), len(guard.of("user"))) == (8, 1)
