"""deloop for the OpenAI Agents SDK: `Runner.run(Deloop().wrap(agent), "…")`.

`wrap` copies an agent with its tools and handoffs. Guardrails of the tools refuse calls and append nudges to results, agent
hooks report the model's answers, and `tool_use_behavior` ends a run with a normal result.
"""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, cast

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    FunctionToolResult,
    Handoff,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    ToolsToFinalOutputResult,
)
from agents.exceptions import AgentsException
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from deloop import Decision, Guard, StopError
from deloop._adapter import Adapter, ExitBehavior, GuardOptions, OnDecision, TokenUsage, stop_text
from deloop._openai_items import JOIN, entries
from deloop._openai_run import Run

__all__ = ["Deloop", "DeloopStop"]

CALLS = 10_000

T = TypeVar("T")
_named_session: contextvars.ContextVar[tuple[str | None, ModelInputData | None]] = contextvars.ContextVar(
    "deloop_session", default=(None, None)
)
"""The name of a session, and the request that it was given for. A later run may inherit it from this one."""


class DeloopStop(StopError, AgentsException):
    """Ends a run with `exit_behavior="error"`. Has the `decision`, and `run_data` as the SDK's own exceptions do."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        AgentsException.__init__(self, message or stop_text(decision))
        StopError.__init__(self, decision, message or stop_text(decision))


class Deloop:
    """Detects loops of agents, nudges the model, refuses calls and ends the run.

    Takes a `guard` to share, or the options of one. One object serves any number of agents and runs.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        session: str | None = None,
        exit_behavior: ExitBehavior = "end",
        on_decision: OnDecision | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        self.adapter = Adapter(guard, session=session, exit_behavior=exit_behavior, on_decision=on_decision, **options)
        self._calls: OrderedDict[tuple[int, str], Run] = OrderedDict()

    def wrap(self, agent: Agent[T]) -> Agent[T]:
        """Returns a guarded copy of an agent and of all agents it can hand off to. The original is unchanged.

        An agent that is a tool of another one is a run of its own: use `deloop.wrap(agent).as_tool(…)`.
        """
        return self.adapter.safely("wrap", lambda: self._wrap(agent, {}), agent)

    def run_config(self, config: RunConfig | None = None, *, session: str | None = None) -> RunConfig:
        """Returns a copy of a RunConfig that names the session of a run: `session`, or the config's `group_id`."""
        given = config or RunConfig()
        inner, name = given.call_model_input_filter, session or given.group_id

        async def filter(data: CallModelData[Any]) -> ModelInputData:
            filtered = data.model_data if inner is None else inner(data)
            sent: ModelInputData = await filtered if inspect.isawaitable(filtered) else filtered
            _named_session.set((name, sent))
            return sent

        return dataclasses.replace(given, group_id=name, call_model_input_filter=filter)

    def _wrap(self, agent: Agent[Any], copies: dict[int, Agent[Any]]) -> Agent[Any]:
        if isinstance(agent.hooks, _Hooks) and agent.hooks.deloop is self:
            return agent
        if id(agent) in copies:
            return copies[id(agent)]
        copied: Agent[Any] = agent.clone(tools=[self._tool(tool) for tool in agent.tools], hooks=_Hooks(self, agent.hooks))
        copies[id(agent)] = copied
        if self.adapter.exit_behavior == "end":
            copied.tool_use_behavior = _Ending(self, agent)
        copied.handoffs = [self._handoff(handoff, copies) for handoff in agent.handoffs]
        fetch = copied.get_mcp_tools

        async def get_mcp_tools(context: RunContextWrapper[Any]) -> list[Tool]:
            return [self.adapter.safely("mcp", functools.partial(self._tool, tool), tool) for tool in await fetch(context)]

        copied.__dict__["get_mcp_tools"] = get_mcp_tools
        return copied

    def _handoff(
        self, handoff: Agent[Any] | Handoff[Any, Any], copies: dict[int, Agent[Any]]
    ) -> Agent[Any] | Handoff[Any, Any]:
        if isinstance(handoff, Agent):
            return self._wrap(handoff, copies)
        invoke = handoff.on_invoke_handoff

        async def guarded(context: RunContextWrapper[Any], arguments: str) -> Any:
            target: Any = await invoke(context, arguments)
            return self.adapter.safely("handoff", lambda: self._wrap(target, copies), target)

        return dataclasses.replace(handoff, on_invoke_handoff=guarded)

    def _tool(self, tool: Tool) -> Tool:
        if not isinstance(tool, FunctionTool):
            return tool
        before: list[ToolInputGuardrail[Any]] = [ToolInputGuardrail(self._before, "deloop"), *(tool.tool_input_guardrails or [])]
        after: list[ToolOutputGuardrail[Any]] = [*(tool.tool_output_guardrails or []), ToolOutputGuardrail(self._after, "deloop")]
        copied = dataclasses.replace(tool, tool_input_guardrails=before, tool_output_guardrails=after)
        self.adapter.safely("tool errors", lambda: self._note_errors(copied), None)
        return copied

    def _note_errors(self, tool: FunctionTool) -> None:
        """Makes a tool report the exception it raised: the text that the SDK makes of it is the same for all."""
        invoker: Any = tool.on_invoke_tool
        inner = getattr(invoker, "_invoke_tool_impl", None)
        if inner is None:
            return

        @functools.wraps(inner)
        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            try:
                return await inner(context, arguments)
            except Exception as error:
                run = self._run_of(context)
                if run is not None:
                    run.errors[context.tool_call_id] = error
                raise

        own = copy.copy(invoker)
        own._invoke_tool_impl = invoke
        tool.on_invoke_tool = own

    def _run_of(self, context: ToolContext[Any]) -> Run | None:
        return self._calls.get((id(context.usage), context.tool_call_id))

    def run_for(self, context: RunContextWrapper[Any], input_items: list[Any] | None = None) -> Run:
        """Returns what is known of the run that a context belongs to, whose next request has this input."""
        runs = context.__dict__.setdefault("_deloop_runs", {})
        run: Run | None = runs.get(id(self))
        if run is None:
            name, sent = _named_session.get()
            named = name if sent is not None and input_items is not None and sent.input is input_items else None
            run = runs[id(self)] = Run(self.adapter.watch(named), shared=bool(named or self.adapter.session))
        return run

    def answered(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Reports an answer of the model."""
        run = self.run_for(context)
        found = [entry for entry in entries(response.output) if entry.kind == "answer"]
        usage = response.usage
        cached = usage.input_tokens_details.cached_tokens or 0
        tokens = TokenUsage(max(0, usage.input_tokens - cached), usage.output_tokens, cached)
        run.answered(found[0] if found else None, tokens, agent.model if isinstance(agent.model, str) else None)
        for entry in found:
            for call in entry.calls:
                self._calls[(id(context.usage), call.id)] = run
        while len(self._calls) > CALLS:
            self._calls.popitem(last=False)

    def _before(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        allowed: tuple[str | None, Decision | None] = (None, None)
        refusal, stop = self.adapter.safely("call", lambda: self._refusal(data), allowed)
        if stop is not None and not self.ends(data.agent):
            raise DeloopStop(stop)
        if refusal is not None:
            return ToolGuardrailFunctionOutput.reject_content(refusal)
        return ToolGuardrailFunctionOutput.allow()

    def _refusal(self, data: ToolInputGuardrailData) -> tuple[str | None, Decision | None]:
        run, id = self._run_of(data.context), data.context.tool_call_id
        if run is None:
            return None, None
        refusal = run.watch.refusal(id)
        if refusal is not None and not run.watch.reported(id):
            run.watch.result(id, refusal, ok=False, outcome="denied")
        return refusal, run.watch.stop

    def _after(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        text = self.adapter.safely("result", lambda: self._nudged(data), None)
        if text is None:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(text)

    def _nudged(self, data: ToolOutputGuardrailData) -> str | None:
        run = self._run_of(data.context)
        if run is None:
            return None
        output: object = data.output
        nudge = run.result(data.context.tool_call_id, output)
        if nudge is None:
            return None
        # Images and files can't be made text without losing them.
        if not isinstance(output, (str, int, float, bool, dict)):
            run.later(nudge)
            return None
        run.watch.delivered(nudge)
        return f"{data.output}{JOIN}{nudge}"

    def ends(self, agent: Agent[Any]) -> bool:
        """Tells whether a stop can be the normal output of an agent: "end", and an output that is text."""
        return self.adapter.exit_behavior == "end" and agent.output_type in (None, str)


class _Ending:
    """The `tool_use_behavior` of a guarded agent: ends a stopped run, and is otherwise the agent's own."""

    def __init__(self, deloop: Deloop, agent: Agent[Any]) -> None:
        self.deloop = deloop
        self.agent = agent

    async def __call__(self, context: RunContextWrapper[Any], results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
        stop = self.deloop.adapter.safely("end", lambda: self.deloop.run_for(context).watch.stop, None)
        if stop is not None and self.deloop.ends(self.agent):
            return ToolsToFinalOutputResult(is_final_output=True, final_output=stop_text(stop))
        own: Any = self.agent.tool_use_behavior
        if callable(own):
            made = own(context, results)
            return cast(ToolsToFinalOutputResult, await made if inspect.isawaitable(made) else made)
        names: list[str] = cast(dict[str, Any], own).get("stop_at_tool_names", []) if isinstance(own, dict) else []
        for result in results:
            if own == "stop_on_first_tool" or result.tool.name in names or result.tool.qualified_name in names:
                return ToolsToFinalOutputResult(is_final_output=True, final_output=result.output)
        return ToolsToFinalOutputResult(is_final_output=False, final_output=None)


class _Hooks(AgentHooks[Any]):
    """The hooks of a guarded agent: reports requests and answers, then calls the agent's own hooks."""

    def __init__(self, deloop: Deloop, own: AgentHooks[Any] | None) -> None:
        self.deloop = deloop
        self.own: AgentHooks[Any] = own or AgentHooks()

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """Reports what is new in the input; ends the run if that couldn't be done earlier."""
        safely = self.deloop.adapter.safely
        stop = safely("request", lambda: self.deloop.run_for(context, input_items).asked(input_items), None)
        if stop is not None:
            raise DeloopStop(stop)
        safely("nudge", lambda: self.deloop.run_for(context).insert(input_items), None)
        await self.own.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        """Reports the model's answer before any of its tools runs."""
        self.deloop.adapter.safely("turn", lambda: self.deloop.answered(context, agent, response), None)
        await self.own.on_llm_end(context, agent, response)

    def __getattribute__(self, name: str) -> Callable[..., Any]:
        mine = ("deloop", "own", "on_llm_start", "on_llm_end")
        if name.startswith("on_") and name not in mine:
            return cast(Callable[..., Any], getattr(self.own, name))
        return cast(Callable[..., Any], super().__getattribute__(name))
