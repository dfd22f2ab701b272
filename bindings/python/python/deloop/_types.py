"""The dicts that Steps and Decisions are on the wire, for type checkers."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Action: TypeAlias = Literal["continue", "warn", "nudge", "ask", "block", "stop"]
Mode: TypeAlias = Literal["observe", "nudge", "enforce"]
Role: TypeAlias = Literal["user", "tool", "system", "developer"]
Outcome: TypeAlias = Literal["ok", "error", "denied", "cancelled", "timeout", "running", "invalid"]
Origin: TypeAlias = Literal["human", "harness", "notice", "schedule"]


class CallDict(TypedDict):
    """A tool call of a turn."""

    id: NotRequired[str | int | None]
    tool: str
    args: NotRequired[Any]


class StepBase(TypedDict):
    """What every Step can have."""

    session: NotRequired[str | None]
    agent: NotRequired[str | None]
    swarm: NotRequired[str | None]
    controller: NotRequired[str | None]
    task: NotRequired[str | None]
    project: NotRequired[str | None]
    ts: NotRequired[Any]


class TurnDict(StepBase):
    """The model answered."""

    type: Literal["turn"]
    text: NotRequired[str | None]
    calls: NotRequired[list[CallDict] | None]
    turn_id: NotRequired[str | int | None]
    embedding: NotRequired[list[float] | None]


class CallStepDict(StepBase):
    """A turn with one call and no text."""

    type: Literal["call"]
    id: NotRequired[str | int | None]
    tool: str
    args: NotRequired[Any]
    turn_id: NotRequired[str | int | None]


class ResultDict(StepBase):
    """A call came back."""

    type: Literal["result"]
    id: NotRequired[str | int | None]
    ok: NotRequired[bool | None]
    outcome: NotRequired[Outcome | None]
    output: NotRequired[Any]
    error_type: NotRequired[str | None]


class UserDict(StepBase):
    """A message to the agent."""

    type: Literal["user"]
    text: NotRequired[str | None]
    origin: NotRequired[Origin | None]


class UsageDict(StepBase):
    """A request to the model was paid for."""

    type: Literal["usage"]
    model: NotRequired[str | None]
    input_tokens: NotRequired[int | None]
    output_tokens: NotRequired[int | None]
    cache_read_tokens: NotRequired[int | None]
    cache_write_tokens: NotRequired[int | None]
    cache_write_1h_tokens: NotRequired[int | None]
    cost_usd: NotRequired[float | None]
    weighted_tokens: NotRequired[int | None]


class ChunkDict(StepBase):
    """A piece of a message that is still streaming."""

    type: Literal["chunk"]
    text: str


class DeliveryDict(StepBase):
    """Whether the message of the Decision at `step` reached the agent."""

    type: Literal["delivery"]
    step: int
    ok: bool


class EmbeddingDict(StepBase):
    """The embedding of the turn at `step`."""

    type: Literal["embedding"]
    step: int
    embedding: list[float]


class SignalDict(StepBase):
    """A Step without fields of its own. `swarm_end` needs `swarm`."""

    type: Literal["compact", "intervention", "end", "swarm_end", "state"]


StepDict: TypeAlias = (
    TurnDict
    | CallStepDict
    | ResultDict
    | UserDict
    | UsageDict
    | ChunkDict
    | DeliveryDict
    | EmbeddingDict
    | SignalDict
)


class ShortCallDict(TypedDict):
    """A call, shortened."""

    tool: str
    about: str


class FindingDict(TypedDict):
    """A pattern that a detector found."""

    detector: str
    rule: NotRequired[str]
    threshold: NotRequired[float]
    pattern: NotRequired[str]
    repeats: str
    count: int
    period: int
    score: float
    since: int
    tool: str | None
    outcome: NotRequired[str]
    changed: NotRequired[bool]
    counted: NotRequired[list[int]]
    calls: NotRequired[list[ShortCallDict]]
    summary: str


class DecidedByDict(TypedDict):
    """Which finding a decision rests on."""

    detector: str
    rule: NotRequired[str]
    pattern: NotRequired[str]


class NoticeDict(TypedDict):
    """A message about an agent that this one started."""

    session: str
    agent: NotRequired[str]
    step: int
    action: Action
    level: int
    message: str


class RollbackDict(TypedDict):
    """The repeated steps to take out of the conversation."""

    from_step: int
    to_step: int
    summary: str


class DecisionDict(TypedDict):
    """A Decision. A profile may add fields of its own."""

    session: str
    step: int
    id: NotRequired[str]
    action: Action
    level: int
    rung: NotRequired[str]
    message: str | None
    user_message: NotRequired[str]
    role: Role | None
    calls: list[str]
    rollback: NotRequired[RollbackDict]
    status: str | None
    findings: list[FindingDict]
    by: NotRequired[DecidedByDict]
    notices: NotRequired[list[NoticeDict]]
    would: NotRequired[DecisionDict]


class EventDict(TypedDict):
    """A notification for people or other programs."""

    event: str
    session: str
    step: int
    agent: NotRequired[str]
    controller: NotRequired[str]
    task: NotRequired[str]
    ts: NotRequired[int]
    action: NotRequired[Action]
    level: NotRequired[int]
    reason: NotRequired[str]
    status: NotRequired[str]
    finding: NotRequired[FindingDict]
    calls: NotRequired[list[str]]
    model: NotRequired[str]
    tokens: NotRequired[int]
    cost_usd: NotRequired[float]
    total_tokens: NotRequired[int]
    total_usd: NotRequired[float]
    task_update: NotRequired[Any]
