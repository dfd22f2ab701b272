"""The values that adapters and watches exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from deloop import Decision


class GuardOptions(TypedDict, total=False):
    """The options of `deloop.Guard` that every adapter passes on."""

    profile: str
    mode: Literal["observe", "nudge", "enforce"]
    attended: bool
    config: Mapping[str, Any] | None
    deliver: Literal["tool", "user"] | None
    rollback: bool
    max_sessions: int | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a turn. `args` may be the raw text that the model wrote."""

    id: str
    tool: str
    args: object = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What one request to the model used. `input_tokens` excludes what came from the cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


class Nudge(str):
    """A message for the model. Report with `Watch.delivered` whether it was placed."""

    steps: tuple[int, ...]

    def __new__(cls, text: str, steps: tuple[int, ...] = ()) -> Nudge:
        nudge = super().__new__(cls, text)
        nudge.steps = steps
        return nudge


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """What to do with a turn before any of its tools runs."""

    refuse: Mapping[str, str] = field(default_factory=dict)
    """The calls that must not run, with the text that answers each."""
    nudge: Nudge | None = None
    """A nudge for this turn. `Watch.result` hands it out with the turn's next result, unless `take_nudge` does first."""
    stop: Decision | None = None
    """The stop, if the run ends here. Then `refuse` names all calls of the turn."""


def stop_text(decision: Decision) -> str:
    """Returns the text that tells a caller why the run ended."""
    return decision.message or decision.user_message or "[deloop] Stopped."


def usage_step(usage: TokenUsage, model: str | None) -> dict[str, Any]:
    """Returns the usage step of one request."""
    step: dict[str, Any] = {
        "type": "usage",
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    if model is not None:
        step["model"] = model
    if usage.cost_usd is not None:
        step["cost_usd"] = usage.cost_usd
    return step
