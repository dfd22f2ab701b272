"""The base of all adapters, without any framework."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import date
from typing import Any

import deloop
import pytest
from deloop import _adapter
from deloop._adapter import Adapter, Nudge, TokenUsage, ToolCall, TurnPlan, Watch
from deloop._plain import plain

ERROR = "Error: no such table: orders"


def call(n: int, args: Any = None) -> ToolCall:
    return ToolCall(f"c{n}", "convert", {"url": "x"} if args is None else args)


def fail(watch: Watch, n: int, **usage: Any) -> tuple[TurnPlan, Nudge | None]:
    """Makes one failing call, as an adapter does."""
    plan = watch.answered("", [call(n)])
    if watch.refusal(f"c{n}") is not None:
        nudge = watch.result(f"c{n}", outcome="denied")
    else:
        nudge = watch.result(f"c{n}", ERROR, ok=False)
    watch.delivered(nudge)
    return plan, nudge


def run_to_the_stop(watch: Watch, first: int = 0) -> list[str]:
    """Fails until the run is stopped, and returns what happened in each turn."""
    happened = []
    for n in range(first, first + 20):
        plan, nudge = fail(watch, n)
        happened.append("stop" if plan.stop else "block" if plan.refuse else "nudge" if nudge else "-")
        if watch.stop is not None:
            return happened
    raise AssertionError(happened)


class Crashing:
    """A guard that raises."""

    def __init__(self, error: type[Exception] = RuntimeError) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def crash(*_: Any, **__: Any) -> Any:
            raise self.error(name)

        return crash


def test_the_ladder() -> None:
    watch = Adapter().watch("s")
    watch.user("go")
    assert run_to_the_stop(watch) == ["-", "-", "nudge", "-", "nudge", "block", "block", "stop"]
    error = watch.stop_error()
    assert error is not None and error.decision.status == "LOOP_DETECTED"


def test_a_stop_names_every_call_of_the_turn_and_a_person_lifts_it() -> None:
    watch = Adapter().watch("s")
    watch.user("go")
    run_to_the_stop(watch)
    plan = watch.answered("", [call(50), ToolCall("other", "read", {})])
    assert set(plan.refuse) == {"c50", "other"} and plan.stop is watch.stop
    watch.user("continue", origin="harness")
    assert watch.stop is not None
    watch.user("try something else")
    assert watch.stop is None and watch.stop_error() is None
    assert watch.answered("", [ToolCall("more", "read", {})]).refuse == {}


def test_an_intervention_lifts_a_stop() -> None:
    watch = Adapter().watch("s")
    run_to_the_stop(watch)
    watch.intervention()
    assert watch.stop is None and watch.answered("", [ToolCall("more", "read", {})]).refuse == {}


def test_the_same_turn_sent_again_is_one_turn() -> None:
    watch = Adapter().watch("s")
    first = watch.answered("", [call(1)], turn_id="t1")
    assert watch.answered("", [call(1)], turn_id="t1") is first and watch.turns == 1
    watch.result("c1", "fine")
    assert watch.answered("", [call(1)], turn_id="t1") is first and watch.turns == 1
    watch.answered("", [call(2)])
    watch.answered("", [call(2)])
    assert watch.turns == 2, "without results it's the same turn"


@pytest.mark.parametrize("ids", [1, 3])
def test_ids_that_a_provider_uses_again_are_other_calls(ids: int) -> None:
    watch = Adapter().watch("s")
    happened = []
    for n in range(12):
        id = f"call_{n % ids}"
        plan = watch.answered("", [ToolCall(id, "convert", {"url": "x"})])
        refused = watch.refusal(id) is not None
        watch.delivered(watch.result(id, outcome="denied") if refused else watch.result(id, ERROR, ok=False))
        happened.append("stop" if plan.stop else "block" if plan.refuse else "-")
        if watch.stop:
            break
    assert happened == ["-"] * 5 + ["block", "block", "stop"]


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_checkpoint_continues_on_the_same_rung(cut: int) -> None:
    whole = Adapter().watch("s")
    expected = run_to_the_stop(whole)
    old = Adapter().watch("s")
    happened = []
    for n in range(cut):
        plan, nudge = fail(old, n)
        happened.append("stop" if plan.stop else "block" if plan.refuse else "nudge" if nudge else "-")
    state = old.checkpoint()
    assert state is not None
    new = Adapter().watch("s")
    assert new.restore(state)
    assert (new.stop is None) == (old.stop is None)
    if new.stop is None:
        happened += run_to_the_stop(new, cut)
    assert happened == expected


def test_a_checkpoint_in_the_middle_of_a_turn_knows_the_refusals() -> None:
    old = Adapter().watch("s")
    for n in range(5):
        fail(old, n)
    plan = old.answered("", [call(5), ToolCall("fine", "read", {"path": "y"})], turn_id="t")
    assert set(plan.refuse) == {"c5"}
    state = old.checkpoint()
    new = Adapter().watch("s")
    assert state is not None and new.restore(state)
    assert new.refusal("c5") == old.refusal("c5") and new.refusal("fine") is None
    assert new.turn_id == "t"


@pytest.mark.parametrize("state", [{}, {"v": 2}, {"v": 1, "guard": "no JSON"}, {"v": 1, "guard": None}])
def test_a_checkpoint_that_cannot_be_read_is_no_error(state: Any) -> None:
    watch = Adapter().watch("s")
    assert not watch.restore(state)
    assert run_to_the_stop(watch)[-1] == "stop"


@pytest.mark.parametrize("error", [RuntimeError, ValueError, TypeError, MemoryError])
def test_a_failure_of_deloop_is_logged_once_and_changes_nothing(error: Any, caplog: pytest.LogCaptureFixture) -> None:
    watch = Adapter(Crashing(error)).watch("s")  # type: ignore[arg-type]
    for n in range(10):
        watch.user("go")
        assert watch.answered("text", [call(n)], TokenUsage(1, 1)) == TurnPlan()
        assert watch.refusal(f"c{n}") is None and watch.result(f"c{n}", ERROR) is None
        watch.compact()
        watch.intervention()
        assert watch.checkpoint() is None and watch.stop is None
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(set(messages)) == 7


def test_a_callback_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def callback(decision: Any) -> None:
        raise KeyError("a bug")

    assert run_to_the_stop(Adapter(on_decision=callback).watch("s"))[-1] == "stop"
    assert sum("on_decision" in record.getMessage() for record in caplog.records) == 1


def test_decisions_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    with caplog.at_level(logging.INFO, "deloop"):
        watch = Adapter(on_decision=seen.append).watch("s")
        run_to_the_stop(watch)
        for n in range(60, 64):
            fail(watch, n)
    assert [decision.action for decision in seen] == ["nudge", "nudge", "block", "block", "stop"]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4 + ["ERROR"]


@pytest.mark.parametrize(("answer", "refused"), [(None, False), (True, False), (False, True), ("nobody", True)])
def test_a_person_is_asked(answer: Any, refused: bool) -> None:
    asked: list[Any] = []

    def callback(decision: Any) -> Any:
        asked.append(decision.action)
        return answer

    watch = Adapter(attended=True, on_decision=None if answer == "nobody" else callback).watch("s")
    plans = [fail(watch, n)[0] for n in range(7)]
    assert any(plan.refuse for plan in plans) is refused
    assert answer == "nobody" or "ask" in asked


def test_observing_changes_nothing() -> None:
    watch = Adapter(mode="observe").watch("s")
    assert all(fail(watch, n) == (TurnPlan(), None) for n in range(15))


def test_a_nudge_that_was_not_placed_is_given_again() -> None:
    watch = Adapter().watch("s")
    given = 0
    for n in range(6):
        watch.answered("", [call(n)])
        nudge = watch.result(f"c{n}", ERROR)
        given += nudge is not None
        watch.delivered(nudge, ok=False)
    assert given > 2 and watch.answered("", [call(6)]).refuse == {}


def test_a_nudge_that_is_kept_goes_with_the_next_result() -> None:
    watch = Adapter().watch("s")
    for n in range(2):
        fail(watch, n)
    watch.answered("", [call(2), ToolCall("read", "read", {"path": "y"})])
    nudge = watch.result("c2", ERROR)
    assert nudge is not None
    watch.keep(nudge)
    assert watch.result("read", "text") == nudge
    watch.keep(nudge)
    watch.user("never mind")
    assert watch.take_nudge() is None


def test_watches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_adapter, "SESSIONS", 10)
    monkeypatch.setattr(_adapter, "UNNAMED", 5)
    adapter = Adapter()
    first = adapter.watch("s0")
    for n in range(12):
        adapter.watch(f"s{n}")
    assert adapter.watch("s0") is not first and len(adapter._watches) == 10
    unnamed = [adapter.watch() for _ in range(8)]
    assert len({watch.session for watch in unnamed}) == 8 and all(watch.unnamed for watch in unnamed)
    assert len(adapter._unnamed) == 5 and adapter.guard.sessions <= 16
    assert adapter.watch("s0", "agent") is not adapter.watch("s0")


def test_threads_lose_nothing() -> None:
    adapter = Adapter()

    def work(name: str) -> None:
        happened[name] = run_to_the_stop(adapter.watch(name))

    happened: dict[str, list[str]] = {}
    threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(happened) == 16
    assert all(one == ["-", "-", "nudge", "-", "nudge", "block", "block", "stop"] for one in happened.values())


def test_results_of_one_turn_from_many_threads() -> None:
    watch = Adapter().watch("s")
    for turn in range(3):
        ids = [f"t{turn}-{n}" for n in range(16)]
        watch.answered("", [ToolCall(id, "convert", {"url": id[3:]}) for id in ids])
        nudges: list[Nudge | None] = []
        threads = [threading.Thread(target=lambda id=id, into=nudges: into.append(watch.result(id, ERROR))) for id in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(nudges) == 16 and sum(nudge is not None for nudge in nudges) == (1 if turn == 2 else 0)


@dataclass
class Point:
    x: int
    day: date


def test_odd_arguments_and_outputs_are_counted_too() -> None:
    watch = Adapter().watch("s")
    cycle: list[Any] = []
    cycle.append(cycle)
    odd = {
        "when": date(2026, 1, 1),
        "raw": b"\xff",
        "point": Point(1, date(2026, 1, 1)),
        "set": {3, 1},
        "nan": float("nan"),
    }
    happened = []
    for n in range(8):
        plan = watch.answered("", [ToolCall(f"c{n}", "convert", {**odd, "cycle": cycle, "big": 2**80, "bad": "\ud800"})])
        if plan.refuse:
            watch.result(f"c{n}", outcome="denied")
        else:
            watch.delivered(watch.result(f"c{n}", object_that_failed(), ok=False))
        happened.append(bool(plan.refuse))
    assert happened[-1] is True


def object_that_failed() -> Any:
    return {"error": ValueError("no"), "at": date(2026, 1, 1)}


def test_plain_values() -> None:
    assert plain({"a": (1, 2.5, None, True), 3: b"x", "d": date(2026, 1, 2)}) == {
        "a": [1, 2.5, None, True],
        "3": "x",
        "d": "2026-01-02",
    }
    assert plain(Point(1, date(2026, 1, 2))) == {"x": 1, "day": "2026-01-02"}
    assert plain(float("inf")) == "inf" and plain(2**70) == str(2**70) and plain({2, 1}) == [1, 2]
    assert plain("\ud800") == "?"


@pytest.mark.parametrize("output", [ERROR, "Traceback (most recent call last):", {"error": "no"}, {"success": False}])
def test_what_an_output_says_is_not_declared(output: Any) -> None:
    """The Node package has the same test: nine steps, and the same decisions."""
    sent: list[Any] = []
    guard = deloop.Guard(deliver="tool")

    class Noting:
        def observe(self, step: Any) -> Any:
            sent.append(step)
            return guard.observe(step)

    watch = Adapter(Noting()).watch("s")  # type: ignore[arg-type]
    happened = []
    for n in range(9):
        plan = watch.answered("", [call(n)])
        nudge = watch.result(f"c{n}", output)
        watch.delivered(nudge)
        happened.append("stop" if plan.stop else "block" if plan.refuse else "nudge" if nudge else "-")
    results = [step for step in sent if step["type"] == "result"]
    assert len(results) == 9 and all(not {"ok", "outcome", "error_type"} & set(step) for step in results)
    assert "nudge" in happened and not {"block", "stop"} & set(happened), happened


def test_wrong_options_name_the_fix() -> None:
    with pytest.raises(ValueError, match='"end" or "error"'):
        Adapter(exit_behavior="continue")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="either guard="):
        Adapter(deloop.Guard(), mode="observe")
