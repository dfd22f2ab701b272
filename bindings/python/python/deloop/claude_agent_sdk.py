"""deloop for the Claude Agent SDK: `ClaudeAgentOptions(hooks=hooks())`.

The hooks run in your process: the SDK's command calls them over its control channel. Calls are reported and refused in
`PreToolUse`, results are reported in `PostToolBatch`, which also carries nudges and stops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, cast

from claude_agent_sdk import ClaudeSDKError, HookMatcher, Message, ResultMessage

import deloop
from deloop import Decision, Guard, StopError
from deloop._adapter import Adapter, ExitBehavior, GuardOptions, OnDecision, Outcome, ToolCall, Watch, stop_text

__all__ = ["Deloop", "DeloopStop", "hooks"]

MARK = "[deloop]"

Hooks = dict[Any, list[HookMatcher]]
Answer = dict[str, Any]


class DeloopStop(StopError, ClaudeSDKError):
    """Ends `Deloop.messages` with `exit_behavior="error"`. Has the `decision`."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        StopError.__init__(self, decision, message or stop_text(decision))


def hooks(
    mine: Mapping[Any, Sequence[HookMatcher]] | None = None,
    *,
    guard: Guard | None = None,
    session: str | None = None,
    on_decision: OnDecision | None = None,
    **options: Unpack[GuardOptions],
) -> Hooks:
    """Returns deloop's hooks, followed by your own: `ClaudeAgentOptions(hooks=hooks(mine))`.

    Use a `Deloop` object if you want to ask it why a run was stopped, or want an exception.
    """
    return Deloop(guard, session=session, on_decision=on_decision, **options).hooks(mine)


class Deloop:
    """Detects loops of agents, nudges the model, refuses calls and ends the run.

    Takes a `guard` to share, or the options of one. One object serves any number of clients and sessions.
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

    def hooks(self, mine: Mapping[Any, Sequence[HookMatcher]] | None = None) -> Hooks:
        """Returns deloop's hooks, followed by your own."""
        handlers: dict[str, Callable[[Watch, Mapping[str, Any]], Answer]] = {
            "UserPromptSubmit": _prompt,
            "PreToolUse": _before,
            "PostToolUse": _succeeded,
            "PostToolUseFailure": _failed,
            "PostToolBatch": _batch,
            "PreCompact": _compact,
            "Stop": _said,
            "SubagentStop": _said,
        }
        both: Hooks = {event: [HookMatcher(hooks=[self._callback(event, handle)])] for event, handle in handlers.items()}
        for event, matchers in (mine or {}).items():
            both.setdefault(event, []).extend(matchers)
        return both

    def stopped(self, session: str | None = None) -> Decision | None:
        """Returns the decision that ended the session with this id, the `session_id` of the messages; None if none did."""
        named = self.adapter.session or session
        return self.adapter.watch(named).stop if named is not None else None

    async def messages(self, stream: AsyncIterator[Message]) -> AsyncIterator[Message]:
        """Passes the messages of `query()` or `receive_response()` on, and says why a stopped run ended.

        With `exit_behavior="end"` the reason is the `result` of the ResultMessage; with "error" `DeloopStop` is raised
        after it.
        """
        async for message in stream:
            stop = self.stopped(message.session_id) if isinstance(message, ResultMessage) else None
            if stop is None or not isinstance(message, ResultMessage):
                yield message
            elif self.adapter.exit_behavior == "error":
                yield message
                close = getattr(stream, "aclose", None)
                if close is not None:
                    await close()
                raise DeloopStop(stop)
            else:
                yield dataclasses.replace(message, result=message.result or stop_text(stop))

    def _callback(self, event: str, handle: Callable[[Watch, Mapping[str, Any]], Answer]) -> Any:
        async def callback(given: Any, tool_use_id: str | None, context: Any) -> Answer:
            empty: Answer = {}
            return self.adapter.safely(event, lambda: handle(self._watch(given), given), empty)

        return callback

    def _watch(self, given: Mapping[str, Any]) -> Watch:
        watch = self.adapter.watch(self.adapter.session or given["session_id"], given.get("agent_id"))
        if watch.agent is None and "batch" not in watch.notes:
            watch.notes["batch"] = 0
            self.adapter.safely("history", lambda: _replay(watch, given.get("transcript_path")), None)
        watch.notes.setdefault("batch", 0)
        return watch


def _prompt(watch: Watch, given: Mapping[str, Any]) -> Answer:
    text = str(given.get("prompt") or "")
    watch.user(text, "harness" if text.startswith("<task-notification>") else "human")
    return {}


def _before(watch: Watch, given: Mapping[str, Any]) -> Answer:
    _report(watch, given)
    refusal = watch.refusal(given["tool_use_id"])
    if refusal is None:
        return {}
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": refusal}
    # On its own, a stop would let this call run first.
    return {"hookSpecificOutput": specific, **_stop(watch)}


def _report(watch: Watch, call: Mapping[str, Any]) -> None:
    made = ToolCall(call["tool_use_id"], call["tool_name"], call.get("tool_input"))
    watch.called(made, f"{watch.agent or 'main'}-{watch.notes['batch']}")


def _succeeded(watch: Watch, given: Mapping[str, Any]) -> Answer:
    watch.notes.setdefault("outcomes", {})[given["tool_use_id"]] = "ok"
    return {}


def _failed(watch: Watch, given: Mapping[str, Any]) -> Answer:
    watch.notes.setdefault("outcomes", {})[given["tool_use_id"]] = "cancelled" if given.get("is_interrupt") else "error"
    return {}


def _batch(watch: Watch, given: Mapping[str, Any]) -> Answer:
    """Reports all results of a turn. The nudge stands after the last one."""
    outcomes: dict[str, Outcome] = watch.notes.pop("outcomes", {})
    said: list[Any] = []
    calls: list[Mapping[str, Any]] = given.get("tool_calls") or []
    for call in calls:
        id, text = call["tool_use_id"], call.get("tool_response")
        # Calls of unknown tools, or that don't fit the schema, reach no other hook.
        _report(watch, call)
        unseen: Outcome = "invalid" if "<tool_use_error>" in str(text)[:200] else "denied"
        outcome: Outcome = "denied" if watch.refusal(id) is not None else outcomes.get(id, unseen)
        nudge = watch.result(id, text, ok=outcome == "ok", outcome=outcome)
        if nudge is not None:
            said.append(nudge)
    watch.notes["batch"] += 1
    if watch.stop is not None:
        return _stop(watch)
    for nudge in said:
        watch.delivered(nudge)
    if not said:
        return {}
    return {"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "\n\n".join(said)}}


def _compact(watch: Watch, given: Mapping[str, Any]) -> Answer:
    watch.compact()
    return {}


def _said(watch: Watch, given: Mapping[str, Any]) -> Answer:
    text = given.get("last_assistant_message")
    if text and watch.stop is None:
        watch.answered(text, [])
    return {}


def _stop(watch: Watch) -> Answer:
    if watch.stop is None:
        return {}
    return {"continue_": False, "stopReason": stop_text(watch.stop), "systemMessage": watch.stop.user_message or stop_text(watch.stop)}


def _replay(watch: Watch, transcript: object) -> None:
    """Reports what a resumed session did before, from the transcript that the command keeps."""
    read = getattr(deloop, "steps", None)
    if read is None or watch.turns > 0 or not isinstance(transcript, str) or not Path(transcript).is_file():
        return
    watch.quiet = True
    try:
        for step in read(transcript):
            if not step.get("agent"):
                _again(watch, step)
    finally:
        watch.quiet = False


def _again(watch: Watch, step: Mapping[str, Any]) -> None:
    kind = step.get("type")
    if kind == "user":
        watch.user(step.get("text") or "", step.get("origin") or "human")
    elif kind == "compact":
        watch.compact()
    elif kind in ("turn", "call"):
        calls: list[Mapping[str, Any]] = step.get("calls") or ([step] if kind == "call" else [])
        watch.answered(step.get("text"), [ToolCall(call["id"], call["tool"], call.get("args")) for call in calls])
    elif kind == "result":
        output = step.get("output")
        outcome = "denied" if MARK in str(output) else step.get("outcome")
        watch.delivered(watch.result(step["id"], output, ok=step.get("ok"), outcome=cast(Any, outcome)))
