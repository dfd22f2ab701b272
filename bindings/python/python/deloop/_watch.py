"""Watches one session: turns a framework's events into steps, and decisions into what an adapter has to do."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from deloop import Decision, StopError
from deloop._fork import survive_fork
from deloop._plain import parsed, plain
from deloop._turns import Nudge, TokenUsage, ToolCall, TurnPlan, stop_text, usage_step

if TYPE_CHECKING:
    from deloop._adapter import Adapter

logger = logging.getLogger("deloop")

Origin = Literal["human", "harness", "notice", "schedule"]
Outcome = Literal["ok", "error", "denied", "cancelled", "timeout", "running", "invalid"]

UNNAMED_PREFIX = "run-"
RECENT_IDS = 1_024


class Watch:
    """Watches one session, or one subagent of it.

    The order of events is: `user`, then for each request `answered` and one `result` per call. Before each request,
    look at `stop`.
    """

    def __init__(self, adapter: Adapter, session: str, agent: str | None = None) -> None:
        self.adapter = adapter
        self.session = session
        self.agent = agent
        self.notes: dict[str, Any] = {}
        """What the adapter itself remembers. Part of the checkpoint, so keep it small and plain."""
        self.quiet = False
        """Whether decisions are neither logged nor passed on, as while an old conversation is read again."""
        self.lock = threading.RLock()
        survive_fork(self)
        self._stop: Decision | None = None
        self._pending: list[Nudge] = []
        self._plan = TurnPlan()
        self._turns = 0
        self._turn_id: str | None = None
        self._names: dict[str, str] = {}
        self._answered: set[str] = set()
        self._recent: OrderedDict[str, None] = OrderedDict()
        self._reused = False

    def after_fork(self) -> None:
        """Makes a lock that no thread holds: in a forked process, the thread that held it doesn't exist."""
        self.lock = threading.RLock()

    @property
    def stop(self) -> Decision | None:
        """The decision that ended the run, until a person writes again."""
        return self._stop

    @property
    def turns(self) -> int:
        """The number of turns so far."""
        return self._turns

    @property
    def unnamed(self) -> bool:
        """Whether the session has no name, and so can't be resumed."""
        return self.session.startswith(UNNAMED_PREFIX)

    @property
    def turn_id(self) -> str | None:
        """The id of the latest turn, if the adapter gave one."""
        return self._turn_id

    def stop_error(self) -> StopError | None:
        """Returns the exception for `exit_behavior="error"`, if the run was stopped."""
        return StopError(self._stop) if self._stop is not None else None

    def user(self, text: str, origin: Origin = "human") -> None:
        """Reports a message to the agent. Text by a person lifts a stop."""
        with self.lock:
            decision = self._observe({"type": "user", "text": text, "origin": origin})
            if origin != "human":
                self._act(decision)
                return
            for nudge in self._pending:
                self.delivered(nudge, ok=False)
            self._pending.clear()
            if decision is None or decision.action != "stop":
                self._stop = None
            self._act(decision)

    def answered(
        self,
        text: str | None,
        calls: Sequence[ToolCall],
        usage: TokenUsage | None = None,
        model: str | None = None,
        turn_id: str | None = None,
    ) -> TurnPlan:
        """Reports the model's answer with all its calls, before any of them runs."""
        with self.lock:
            return self.adapter.safely("turn", lambda: self._turn(text, calls, usage, model, turn_id), TurnPlan())

    def called(self, call: ToolCall, turn_id: str) -> TurnPlan:
        """Reports one call before it runs, where the calls of a turn come one by one."""
        with self.lock:
            return self.adapter.safely("call", lambda: self._call(call, turn_id), TurnPlan())

    def refusal(self, call_id: str) -> str | None:
        """Returns the text that answers this call instead of its tool, or None if the tool may run."""
        return self._plan.refuse.get(call_id)

    def result(
        self,
        call_id: str,
        output: object = None,
        *,
        error: BaseException | None = None,
        ok: bool | None = None,
        outcome: Outcome | None = None,
        error_type: str | None = None,
    ) -> Nudge | None:
        """Reports what a call came back with, without any text of deloop's, and returns a nudge to append to it.

        Pass the exception of a tool that raised as `error`, and `ok` only if the framework knows: without it, deloop reads
        the output, and what it concludes from words leads to a message at most. Report a call that deloop refused as
        outcome "denied".
        """
        if error is not None:
            output, ok, error_type = str(error), False, error_type or type(error).__name__
            outcome = outcome or ("timeout" if isinstance(error, TimeoutError) else "error")
        step = {"type": "result", "id": self._names.get(call_id, call_id), "output": output}
        for name, value in (("ok", ok), ("outcome", outcome), ("error_type", error_type)):
            if value is not None:
                step[name] = value
        with self.lock:
            self._answered.add(call_id)
            self._act(self._observe(step))
            return self.take_nudge()

    def reported(self, call_id: str) -> bool:
        """Returns whether the result of a call of the latest turn was reported."""
        return call_id in self._answered

    def take_nudge(self) -> Nudge | None:
        """Returns what is to be said to the model and wasn't placed yet."""
        with self.lock:
            if not self._pending:
                return None
            steps = tuple(step for nudge in self._pending for step in nudge.steps)
            nudge = Nudge("\n\n".join(self._pending), steps)
            self._pending.clear()
            return nudge

    def keep(self, nudge: Nudge | None) -> None:
        """Takes back a nudge that couldn't be placed here, for the next result or request."""
        if nudge is not None:
            with self.lock:
                self._pending.insert(0, nudge)

    def delivered(self, nudge: Nudge | None, ok: bool = True) -> None:
        """Reports whether a nudge was placed. One that wasn't is given again instead of escalated."""
        for step in nudge.steps if nudge is not None else ():
            self._observe({"type": "delivery", "step": step, "ok": ok})

    def compact(self) -> None:
        """Reports that the history was cut or summarized."""
        with self.lock:
            self._act(self._observe({"type": "compact"}))

    def intervention(self) -> None:
        """Reports that a person stepped in outside the conversation. Lifts a stop."""
        with self.lock:
            self._stop = None
            self._observe({"type": "intervention"})

    def end(self) -> None:
        """Reports that the session is over and can't be resumed, and forgets it."""
        self._observe({"type": "end"})
        self.adapter.forget(self)

    def checkpoint(self) -> dict[str, Any] | None:
        """Returns the session's state as plain JSON, for the framework's own storage."""
        with self.lock:
            return self.adapter.safely("checkpoint", self._save, None)

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Continues from a checkpoint. Returns whether it could be read."""
        with self.lock:
            return self.adapter.safely("restore", lambda: self._load(state), False)

    def _turn(
        self, text: str | None, calls: Sequence[ToolCall], usage: TokenUsage | None, model: str | None, turn_id: str | None
    ) -> TurnPlan:
        ids = [call.id for call in calls]
        if self._same_turn(ids, turn_id):
            return self._plan
        self._turns += 1
        self._turn_id = turn_id
        self._answered = set()
        self._names = {id: self._name(id) for id in ids}
        if usage is not None:
            self._act(self._observe(usage_step(usage, model)))
        listed = [{"id": self._names[call.id], "tool": call.tool, "args": parsed(call.args)} for call in calls]
        step: dict[str, Any] = {"type": "turn", "text": text or "", "calls": listed}
        if turn_id is not None:
            step["turn_id"] = turn_id
        decision = self._observe(step)
        refused = self._act(decision)
        if self._stop is not None:
            refuse = {id: stop_text(self._stop) for id in ids}
        elif refused is not None:
            named = set(refused.calls)
            refuse = {id: stop_text(refused) for id in ids if self._names[id] in named}
        else:
            refuse = {}
        nudge = Nudge("\n\n".join(self._pending)) if self._pending else None
        self._plan = TurnPlan(refuse, nudge, self._stop)
        return self._plan

    def _call(self, call: ToolCall, turn_id: str) -> TurnPlan:
        if turn_id != self._turn_id:
            self._turns += 1
            self._turn_id, self._answered, self._names, self._plan = turn_id, set(), {}, TurnPlan()
        elif call.id in self._names:
            return self._plan
        name = self._names[call.id] = self._name(call.id)
        step = {"type": "call", "id": name, "tool": call.tool, "args": call.args, "turn_id": turn_id}
        refused = self._act(self._observe(step))
        refuse = dict(self._plan.refuse)
        if self._stop is not None:
            refuse[call.id] = stop_text(self._stop)
        elif refused is not None and name in refused.calls:
            refuse[call.id] = stop_text(refused)
        self._plan = TurnPlan(refuse, None, self._stop)
        return self._plan

    def _same_turn(self, ids: list[str], turn_id: str | None) -> bool:
        if turn_id is not None and turn_id == self._turn_id:
            return True
        again = turn_id is None and bool(ids) and ids == list(self._names)
        return again and not self._answered

    def _name(self, id: str) -> str:
        """Returns the id under which deloop knows a call: some providers use the same ids in every turn."""
        self._reused = self._reused or id in self._recent
        self._recent[id] = None
        while len(self._recent) > RECENT_IDS:
            self._recent.popitem(last=False)
        return f"{id}@{self._turns}" if self._reused else id

    def _observe(self, step: dict[str, Any]) -> Decision | None:
        step["session"] = self.session
        if self.agent is not None:
            step["agent"] = self.agent
        observe: Callable[[Any], Decision] = self.adapter.guard.observe
        try:
            try:
                return observe(step)
            except (TypeError, ValueError):
                return observe(plain(step))
        except Exception as error:
            self.adapter.failed(f"{step['type']} step", error)
            return None

    def _act(self, decision: Decision | None) -> Decision | None:
        """Notes what a decision asks for. Returns it if it refuses calls."""
        if decision is None or decision.action == "continue" or (self._stop is not None and decision.action == "stop"):
            return None
        action, allowed = decision.action, self._tell(decision)
        if action == "stop":
            self._stop = decision
        elif action == "nudge" and decision.message:
            self._pending.append(Nudge(decision.message, (decision.step,)))
        elif action == "block" or (action == "ask" and not allowed):
            return decision
        return None

    def _tell(self, decision: Decision) -> bool:
        """Tells the log and the callback. Returns whether somebody was there to answer, and didn't say no."""
        if self.quiet:
            return True
        level = logging.ERROR if decision.action == "stop" else logging.WARNING
        logger.log(level, "%s (session %s)", decision.user_message or decision.message, self.session)
        callback = self.adapter.on_decision
        if callback is None:
            return False
        return self.adapter.safely("on_decision", lambda: callback(decision), None) is not False

    def _save(self) -> dict[str, Any]:
        return {
            "v": 1,
            "session": self.session,
            "guard": self.adapter.guard.checkpoint(self.session) if self.agent is None else None,
            "turns": self._turns,
            "turn_id": self._turn_id,
            "names": dict(self._names),
            "answered": sorted(self._answered),
            "refuse": dict(self._plan.refuse),
            "pending": [[list(nudge.steps), str(nudge)] for nudge in self._pending],
            "stop": self._stop.to_json() if self._stop is not None else None,
            "reused": self._reused,
            "notes": dict(self.notes),
        }

    def _load(self, state: Mapping[str, Any]) -> bool:
        if state.get("v") != 1:
            raise ValueError(f"a checkpoint of an unknown version: {state.get('v')!r}")
        if self.agent is None and state["guard"] is not None:
            self.adapter.guard.restore(self.session, state["guard"])
        self._turns, self._turn_id = state["turns"], state["turn_id"]
        self._names, self._answered = dict(state["names"]), set(state["answered"])
        self._pending = [Nudge(text, tuple(steps)) for steps, text in state["pending"]]
        self._stop = Decision.from_json(state["stop"]) if state["stop"] is not None else None
        self._plan = TurnPlan(dict(state["refuse"]), None, self._stop)
        self._recent = OrderedDict.fromkeys(self._names)
        self._reused = state["reused"]
        self.notes = dict(state["notes"])
        return True
