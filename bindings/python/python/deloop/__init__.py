"""Detect and break loops in AI agents.

    guard = deloop.Guard()
    decision = guard.observe({"type": "call", "session": "s1", "id": "c1", "tool": "bash", "args": {"command": "ls"}})
    if decision.action == "stop": ...
"""

from ._deloop import Call, Decision, Guard, Step, __version__
from ._errors import StopError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._command import command, scan, steps
    from ._types import (
        Action,
        CallDict,
        CallStepDict,
        ChunkDict,
        DecidedByDict,
        DecisionDict,
        DeliveryDict,
        EmbeddingDict,
        EventDict,
        FindingDict,
        Mode,
        NoticeDict,
        Origin,
        Outcome,
        ResultDict,
        Role,
        RollbackDict,
        ShortCallDict,
        SignalDict,
        StepDict,
        TurnDict,
        UsageDict,
        UserDict,
    )

__all__ = [
    "Action",
    "Call",
    "CallDict",
    "CallStepDict",
    "ChunkDict",
    "Decision",
    "DecidedByDict",
    "DecisionDict",
    "DeliveryDict",
    "EmbeddingDict",
    "EventDict",
    "FindingDict",
    "Guard",
    "Mode",
    "NoticeDict",
    "Origin",
    "Outcome",
    "ResultDict",
    "Role",
    "RollbackDict",
    "ShortCallDict",
    "SignalDict",
    "Step",
    "StepDict",
    "StopError",
    "TurnDict",
    "UsageDict",
    "UserDict",
    "__version__",
    "command",
    "scan",
    "steps",
]


def __getattr__(name: str) -> object:
    # What most programs never use is imported when it is used, so that `import deloop` stays fast.
    if name in ("command", "scan", "steps"):
        from . import _command

        found: object = getattr(_command, name)
    elif name in __all__:
        from . import _types

        found = getattr(_types, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
