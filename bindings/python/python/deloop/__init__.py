"""Detect and break loops in AI agents."""

from ._deloop import Call, Decision, Guard, Step, __version__

__all__ = ["Call", "Decision", "Guard", "Step", "StopError", "__version__"]


class StopError(Exception):
    """Ends a run because deloop decided to stop it. `decision` says why."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        super().__init__(message or decision.user_message or decision.message or "deloop stopped the run")
        self.decision = decision

    def __reduce__(self) -> tuple[type["StopError"], tuple[Decision, str]]:
        return type(self), (self.decision, str(self))
