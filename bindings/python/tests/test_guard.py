"""The guard: arguments, decisions, checkpoints, threads."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import deloop
import pytest


def failing(guard: deloop.Guard, turns: int, session: str = "s") -> list[deloop.Decision]:
    """Lets the same call fail again and again."""
    decisions = []
    for turn in range(turns):
        call = {"id": f"c{turn}", "tool": "bash", "args": {"command": "make test"}}
        decisions.append(guard.observe({"type": "turn", "session": session, "calls": [call]}))
        decisions.append(guard.observe(deloop.Step.result(session, f"c{turn}", ok=False, output="boom")))
    return decisions


def test_the_ladder() -> None:
    decisions = failing(deloop.Guard(deliver="tool"), 9)
    actions = [decision.action for decision in decisions if decision.action != "continue"]
    assert actions[:5] == ["nudge", "nudge", "block", "block", "stop"]
    nudge = next(decision for decision in decisions if decision.action == "nudge")
    assert nudge.role == "tool" and nudge.message is not None and "make test" in nudge.message
    assert nudge.findings[0]["detector"] == "repeated-failure"
    block = next(decision for decision in decisions if decision.action == "block")
    assert block.calls == ["c5"]
    assert decisions[-1].action == "stop" and decisions[-1].status == "LOOP_DETECTED"


def test_a_decision() -> None:
    decision = failing(deloop.Guard(), 3)[-1]
    assert decision == deloop.Decision.from_json(decision.to_json())
    assert decision == pickle.loads(pickle.dumps(decision))
    assert decision != failing(deloop.Guard(), 3)[-2] and decision != 3
    assert {decision: 1}[deloop.Decision.from_json(decision.to_json())] == 1
    assert json.loads(decision.to_json()) == decision.to_dict()
    assert list(decision.to_dict())[:4] == ["session", "step", "id", "action"]
    assert repr(decision).startswith("Decision(session=\"s\", step=5, action='nudge', level=1, message=")
    with pytest.raises(AttributeError):
        decision.action = "stop"  # type: ignore[misc]


def test_modes() -> None:
    observed = failing(deloop.Guard(mode="observe"), 3)[-1]
    assert observed.action == "continue" and observed.would is not None and observed.would.action == "nudge"
    assert {decision.action for decision in failing(deloop.Guard(mode="nudge"), 9)} == {"continue", "warn", "nudge"}


def test_bad_arguments_name_the_fix() -> None:
    for arguments, message in [
        ({"profile": "defualt"}, "known profiles: default"),
        ({"mode": "block"}, "known modes: observe, nudge, enforce"),
        ({"deliver": "chat"}, "known places"),
        ({"config": {"mode": "nudge"}}, "argument of its own"),
        ({"config": {"serve": {}}}, "a setting of the command"),
        ({"config": {"detectors": {"repeated-failure": {"att": 3}}}}, "unknown key"),
        ({"config": [1]}, "must be a table"),
        ({"max_sessions": 0}, "at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            deloop.Guard(**arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        deloop.Guard(mode=3)  # type: ignore[arg-type]


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    text = 'order = ["duplicate-turn"]\n[detectors.duplicate-turn]\nladder = "l"\n[[ladders.l.rungs]]\nat = 2\naction = "nudge"\nmessage = "Stop it."\n'
    path = tmp_path / "own.toml"
    path.write_text(text)
    for profile in (text, str(path)):
        guard = deloop.Guard(profile)
        guard.observe(deloop.Step.turn("s", "Again."))
        assert guard.observe(deloop.Step.turn("s", "Again.")).message == "Stop it."


def test_a_checkpoint_continues_in_another_guard() -> None:
    guard, other = deloop.Guard(), deloop.Guard()
    assert guard.checkpoint("s") is None
    failing(guard, 2)
    text = guard.checkpoint("s")
    assert text is not None
    other.restore("s", text)
    call = {"id": "c2", "tool": "bash", "args": {"command": "make test"}}
    other.observe({"type": "turn", "session": "s", "calls": [call]})
    assert other.observe(deloop.Step.result("s", "c2", ok=False, output="boom")).action == "nudge"
    guard.reset("s")
    assert (guard.sessions, other.sessions) == (0, 1)
    for bad in ("", "{}", "[]", text[:-3]):
        with pytest.raises(ValueError, match="checkpoint"):
            other.restore("s", bad)


def test_events() -> None:
    guard = deloop.Guard("turn-hash")
    guard.observe(deloop.Step.turn("s", "Again."))
    decision, events = guard.observe_all(deloop.Step.turn("s", "Again."))
    assert decision.action == "nudge"
    assert [event["event"] for event in events][0] == "loop_detected"


def test_eight_threads_on_one_guard_lose_nothing() -> None:
    guard = deloop.Guard()
    each, threads = 2000, 8
    shared_steps: list[list[int]] = [[] for _ in range(threads)]
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(each):
                own = guard.observe({"type": "call", "session": f"own{number}", "tool": "t", "args": {"n": turn}})
                assert own.step == turn
                step = {"type": "call", "session": "shared", "tool": "t", "args": {"n": turn, "of": number}}
                shared_steps[number].append(guard.observe(step).step)
        except BaseException as problem:
            problems.append(problem)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems
    assert guard.sessions == threads + 1
    # Every step of the shared session has a number of its own.
    assert sorted(step for steps in shared_steps for step in steps) == list(range(each * threads))


def test_off() -> None:
    code = "import deloop; g = deloop.Guard('turn-hash'); s = {'type': 'turn', 'text': 'a'}; g.observe(s); print(g.observe(s).action)"
    run = lambda **env: subprocess.run(  # noqa: E731
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert (run(), run(DELOOP="off")) == ("nudge", "continue")


def test_a_stop_error_carries_its_decision() -> None:
    decision = failing(deloop.Guard(), 9)[-1]
    error = deloop.StopError(decision)
    assert error.decision is decision and "make test" in str(error)
    assert pickle.loads(pickle.dumps(error)).decision == decision


def test_everything_that_is_listed_exists() -> None:
    for name in deloop.__all__:
        assert getattr(deloop, name) is not None
    assert set(deloop.__all__) <= set(dir(deloop))
    with pytest.raises(AttributeError):
        deloop.nothing  # type: ignore[attr-defined]  # noqa: B018
