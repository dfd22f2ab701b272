"""What all adapters share: one `Watch` per session, which turns a framework's events into steps.

A `Watch` never raises and never changes a run without a finding. If deloop itself fails, the failure is logged once per
kind and the answer is neutral: no refusal, no nudge, no stop.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeVar, Unpack

from deloop import Decision, Guard
from deloop._fork import survive_fork
from deloop._turns import GuardOptions, Nudge, TokenUsage, ToolCall, TurnPlan, stop_text
from deloop._watch import UNNAMED_PREFIX, Origin, Outcome, Watch, logger

__all__ = [
    "Adapter",
    "ExitBehavior",
    "GuardOptions",
    "Nudge",
    "OnDecision",
    "Origin",
    "Outcome",
    "TokenUsage",
    "ToolCall",
    "TurnPlan",
    "Watch",
    "logger",
    "stop_text",
]

ExitBehavior = Literal["end", "error"]
OnDecision = Callable[[Decision], object]

SESSIONS = 10_000
UNNAMED = 1_000

T = TypeVar("T")


class Adapter:
    """Holds the guard, the options and the watches of one adapter object. Safe to share between threads."""

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        session: str | None = None,
        exit_behavior: ExitBehavior = "end",
        on_decision: OnDecision | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        if exit_behavior not in ("end", "error"):
            raise ValueError(f'exit_behavior is "end" or "error", not {exit_behavior!r}')
        if guard is not None and options:
            raise TypeError(f"pass either guard= or the options of a guard ({', '.join(sorted(options))}), not both")
        if guard is None:
            options.setdefault("deliver", "tool")
            guard = Guard(**options)
        self.guard = guard
        self.session = session
        self.exit_behavior: ExitBehavior = exit_behavior
        self.on_decision = on_decision
        self._lock = threading.Lock()
        self._watches: OrderedDict[tuple[str, str | None], Watch] = OrderedDict()
        self._unnamed: OrderedDict[str, None] = OrderedDict()
        self._logged: set[str] = set()
        survive_fork(self)

    def after_fork(self) -> None:
        """Makes a lock that no thread holds: in a forked process, the thread that held it doesn't exist."""
        self._lock = threading.Lock()

    def watch(self, session: str | None = None, agent: str | None = None) -> Watch:
        """Returns the watch of a session (and of a subagent in it), the same one each time.

        Without a session the adapter's own is used; if it has none either, a new session starts. Of more than `SESSIONS`
        watches, the one unused for longest is dropped; of more than `UNNAMED` sessions without a name, the oldest ends.
        """
        name = session or self.session
        key = (name or self.new_name(), agent)
        with self._lock:
            watch = self._watches.get(key)
            if watch is None:
                watch = self._watches[key] = Watch(self, key[0], agent)
            self._watches.move_to_end(key)
            while len(self._watches) > SESSIONS:
                self._watches.popitem(last=False)
            if name is None:
                self._unnamed[key[0]] = None
            old = self._unnamed.popitem(last=False)[0] if len(self._unnamed) > UNNAMED else None
        if old is not None:
            Watch(self, old).end()
        return watch

    def new_name(self) -> str:
        """Returns a name for a session that nobody named."""
        return f"{UNNAMED_PREFIX}{uuid.uuid4().hex}"

    def forget(self, watch: Watch) -> None:
        """Drops the watch of a session that is over."""
        with self._lock:
            self._unnamed.pop(watch.session, None)
            self._watches.pop((watch.session, watch.agent), None)

    def safely(self, kind: str, work: Callable[[], T], neutral: T) -> T:
        """Runs `work`; if it raises, logs that once per kind and returns `neutral`."""
        try:
            return work()
        except Exception as error:
            self.failed(kind, error)
            return neutral

    def failed(self, kind: str, error: BaseException) -> None:
        """Logs a failure inside deloop, once per kind."""
        name = f"{kind}: {type(error).__name__}"
        with self._lock:
            if name in self._logged:
                return
            self._logged.add(name)
        logger.error("deloop failed (%s), the run continues without it: %s", name, error, exc_info=error)
