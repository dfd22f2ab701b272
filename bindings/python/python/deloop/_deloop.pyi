"""The native part of the package."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, final

from ._types import (
    Action,
    DecidedByDict,
    DecisionDict,
    EventDict,
    FindingDict,
    NoticeDict,
    Origin,
    Outcome,
    Role,
    RollbackDict,
    StepDict,
)

__version__: str

_Mode: TypeAlias = Literal["observe", "shadow", "nudge", "enforce"]
_Time: TypeAlias = datetime | str | int | float
_Id: TypeAlias = str | int

@final
class Guard:
    """Watches any number of sessions and returns a decision after each step.

    Use one guard for all threads and sessions of a program. A step is read while Python is locked; the decision about it is
    made while other threads run.
    """

    def __new__(
        cls,
        profile: str = "default",
        *,
        mode: _Mode = "enforce",
        attended: bool = False,
        config: Mapping[str, Any] | None = None,
        deliver: Role | Sequence[Role] | None = None,
        rollback: bool = False,
        max_sessions: int | None = None,
    ) -> Self:
        """Creates a guard.

        `profile` is the name of a built-in profile, the path of a `.toml` file, or the text of one. `config` has settings
        over the profile's, as in deloop.yaml. `deliver` says where you can put a message for the agent.

        Raises ValueError for an argument without a meaning. The message names the fix.
        """

    def observe(self, step: Step | StepDict | Mapping[str, Any] | str | bytes) -> Decision:
        """Adds a step to its session and returns what to do.

        Raises TypeError or ValueError for a step that can't be read, with the name of the field. Nothing that an agent does
        is an error.
        """

    def observe_all(
        self, step: Step | StepDict | Mapping[str, Any] | str | bytes
    ) -> tuple[Decision, list[EventDict]]:
        """Does the same as `observe` and also returns the events."""

    def checkpoint(self, session: str) -> str | None:
        """Returns the state of a session as JSON, or None when there is no such session."""

    def restore(self, session: str, text: str) -> None:
        """Restores a session from a checkpoint and replaces any state it has.

        Raises ValueError for a text that isn't a checkpoint, or one of another release that this guard can't read.
        """

    def reset(self, session: str) -> None:
        """Deletes the state of a session."""

    @property
    def sessions(self) -> int:
        """The number of sessions in memory."""

@final
class Decision:
    """The decision about a step. It can't be changed."""

    @property
    def session(self) -> str:
        """The session of the step."""
    @property
    def step(self) -> int:
        """The index of the step in its session, from 0."""
    @property
    def id(self) -> str | None:
        """A stable id, unless the action is `continue`."""
    @property
    def action(self) -> Action:
        """What to do."""
    @property
    def level(self) -> int:
        """The rung of the ladder; 0 for `continue`."""
    @property
    def rung(self) -> str | None:
        """The rung's name, if the profile sets one."""
    @property
    def message(self) -> str | None:
        """The message: for the model on a nudge or a block, for people otherwise."""
    @property
    def user_message(self) -> str | None:
        """One line for the user: what deloop did and why."""
    @property
    def role(self) -> Role | None:
        """The role under which the message is added to the conversation."""
    @property
    def calls(self) -> list[str]:
        """The ids of the calls to refuse or to ask about. `#N` is the Nth call of a turn without ids."""
    @property
    def status(self) -> str | None:
        """How the run ended, on `stop`."""
    @property
    def findings(self) -> list[FindingDict]:
        """All findings at this step."""
    @property
    def by(self) -> DecidedByDict | None:
        """The finding that decided, unless the action is `continue`."""
    @property
    def notices(self) -> list[NoticeDict]:
        """Messages for this agent about agents that it started."""
    @property
    def would(self) -> Decision | None:
        """The decision before the mode capped it."""
    @property
    def rollback(self) -> RollbackDict | None:
        """The repeated steps to take out of the conversation."""
    @property
    def extra(self) -> dict[str, Any]:
        """Fields that the profile adds, and the answer to a `state` step."""
    def to_dict(self) -> DecisionDict:
        """Returns the decision as it is on the wire."""
    def to_json(self) -> str:
        """Returns the decision as one line of JSON."""
    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads a decision that `to_json` wrote."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Call:
    """One tool call of a turn. It can't be changed."""

    def __new__(cls, id: _Id | None, tool: str, args: Any = None) -> Self: ...
    @property
    def id(self) -> str | None:
        """The id that the result refers to."""
    @property
    def tool(self) -> str:
        """The tool's name."""
    @property
    def args(self) -> Any:
        """The arguments."""
    def __eq__(self, other: object) -> bool: ...

@final
class Step:
    """One thing that happened in an agent's session. It can't be changed."""

    @staticmethod
    def turn(
        session: str,
        text: str | None = None,
        calls: Iterable[Call] | None = None,
        *,
        turn_id: _Id | None = None,
        embedding: Sequence[float] | None = None,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Creates an answer of the model: text, calls or both."""

    @staticmethod
    def call(
        session: str,
        id: _Id | None,
        tool: str,
        args: Any = None,
        *,
        turn_id: _Id | None = None,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Creates a turn with one call and no text."""

    @staticmethod
    def result(
        session: str,
        id: _Id | None = None,
        *,
        ok: bool | None = None,
        output: Any = None,
        outcome: Outcome | None = None,
        error_type: str | None = None,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Creates the result of a call."""

    @staticmethod
    def user(
        session: str,
        text: str = "",
        *,
        origin: Origin | None = None,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Creates a message to the agent; from a person, unless `origin` is `harness`."""

    @staticmethod
    def usage(
        session: str,
        model: str | None = None,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        cache_write_1h_tokens: int = 0,
        cost_usd: float | None = None,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Creates what a request to the model used. Input tokens don't include those from the cache."""

    @staticmethod
    def chunk(
        session: str,
        text: str,
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Creates a piece of a message that is still streaming."""

    @staticmethod
    def compact(
        session: str,
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Reports that the agent's context was cut or summarized."""

    @staticmethod
    def delivery(
        session: str,
        step: int,
        ok: bool,
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Reports whether the message of the decision at `step` reached the agent."""

    @staticmethod
    def embedding(
        session: str,
        step: int,
        embedding: Sequence[float],
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Adds the embedding of the turn at `step`, if it wasn't known with the turn."""

    @staticmethod
    def intervention(
        session: str,
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Reports that a person stepped in outside the conversation."""

    @staticmethod
    def end(
        session: str,
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Ends the session."""

    @staticmethod
    def swarm_end(
        session: str,
        swarm: str,
        *,
        agent: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Ends a swarm."""

    @staticmethod
    def state(
        session: str,
        *,
        agent: str | None = None,
        swarm: str | None = None,
        controller: str | None = None,
        task: str | None = None,
        project: str | None = None,
        ts: _Time | None = None,
    ) -> Step:
        """Asks for the state of the session. The answer is in `extra` of the decision."""

    @staticmethod
    def from_dict(step: StepDict | Mapping[str, Any]) -> Step:
        """Reads a step from a dict."""
    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads a step from JSON."""
    @property
    def session(self) -> str:
        """The session it belongs to."""
    @property
    def type(self) -> str:
        """Its type on the wire. A turn with one call and no text is a `call`."""
    def to_dict(self) -> dict[str, Any]:
        """Returns the step as it is on the wire."""
    def to_json(self) -> str:
        """Returns the step as one line of JSON."""
    def __eq__(self, other: object) -> bool: ...

@final
class StepFile:
    """Iterates over the Steps of a session file, as dicts."""

    def __new__(cls, path: str | os.PathLike[str], format: str | None = None) -> Self: ...
    @property
    def notes(self) -> list[str]:
        """What couldn't be read, once the file is over."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> dict[str, Any]: ...
