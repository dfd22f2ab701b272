"""A program for type checkers: `mypy --strict` and `pyright` in strict mode accept it."""

from __future__ import annotations

import deloop


def watch(guard: deloop.Guard, steps: list[deloop.StepDict]) -> deloop.Decision | None:
    for step in steps:
        decision = guard.observe(step)
        if decision.action == "stop":
            return decision
    return None


def main() -> str:
    guard = deloop.Guard("default", mode="nudge", deliver="tool", config={"ceilings": {"turns": 9}}, max_sessions=1000)
    turn: deloop.TurnDict = {"type": "turn", "text": "Hm.", "calls": [{"id": "c1", "tool": "ls", "args": {}}]}
    stopped = watch(guard, [turn, {"type": "result", "id": "c1", "ok": True}, {"type": "compact"}])
    if stopped is not None:
        raise deloop.StopError(stopped)
    typed = deloop.Step.turn("s", "Hm.", [deloop.Call("c2", "ls", {"path": "."})], agent="w1", ts=0)
    decision, events = guard.observe_all(typed)
    names: list[str] = [event["event"] for event in events]
    action: deloop.Action = decision.action
    wire: deloop.DecisionDict = decision.to_dict()
    detectors: list[str] = [finding["detector"] for finding in decision.findings]
    state: str | None = guard.checkpoint("s")
    if state is not None:
        guard.restore("s", state)
    guard.reset("s")
    count: int = guard.sessions
    return f"{action} {names} {wire['level']} {detectors} {count} {deloop.__version__}"


def files(path: str) -> tuple[int, list[str]]:
    file = deloop.steps(path)
    calls = sum(1 for step in file if step["type"] == "call")
    return calls, [str(loop["pattern"]) for loop in deloop.scan([path])] + [deloop.command(), *file.notes]


if __name__ == "__main__":
    print(main())
