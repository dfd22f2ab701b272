from ._deloop import Decision


class StopError(Exception):
    """Ends a run because deloop decided to stop it. `decision` says why."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        super().__init__(message or decision.message or decision.user_message or "deloop stopped the run")
        self.decision = decision

    def __reduce__(self) -> tuple[type["StopError"], tuple[Decision, str]]:
        return type(self), (self.decision, str(self))
