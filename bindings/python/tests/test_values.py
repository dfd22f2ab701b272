"""What values of Python mean, and which are errors."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import pickle
import sys
import types
import uuid
from collections import OrderedDict, deque
from typing import Any, NamedTuple

import deloop
import pytest


@dataclasses.dataclass
class Data:
    path: str
    lines: list[int]


class Model:
    """Looks like a model of pydantic."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class Broken:
    def model_dump(self) -> dict[str, Any]:
        raise RuntimeError("no database")


class Endless:
    """Turns into itself."""

    def model_dump(self) -> Endless:
        return Endless()


class Color(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


class Words:
    def __str__(self) -> str:
        return "words"


def read(value: Any) -> Any:
    """Returns what deloop reads from an argument."""
    return deloop.Step.from_dict({"type": "call", "tool": "t", "args": {"v": value}}).to_dict()["args"]["v"]


MEANINGS: list[tuple[Any, Any]] = [
    (float("nan"), None),
    (float("inf"), None),
    (10**400, None),
    (2**64, 1.8446744073709552e19),
    (-(2**63), -(2**63)),
    (b"caf\xc3\xa9", "café"),
    (b"\xff", "\ufffd"),
    (bytearray(b"a"), "a"),
    (memoryview(b"a"), "a"),
    ("half \ud83d", "half \ufffd"),
    ("pair \ud83d\ude00", "pair 😀"),
    ((1, 2), [1, 2]),
    (Point(1, 2), [1, 2]),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset(["b", "a"]), ["a", "b"]),
    (deque([1]), [1]),
    (range(3), [0, 1, 2]),
    ({"a": 1}.keys(), ["a"]),
    (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    ({1: "a", None: "b", True: "c", 1.5: "d", (1, 2): "e"}, {"1": "c", "null": "b", "1.5": "d", "(1, 2)": "e"}),
    (datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc), "2026-01-31T12:00:00+00:00"),
    (datetime.date(2026, 1, 31), "2026-01-31"),
    (datetime.timedelta(seconds=1), "0:00:01"),
    (decimal.Decimal("1.50"), "1.50"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (pathlib.PurePosixPath("/tmp/a"), "/tmp/a"),
    (Color.RED, "red"),
    (Data("a", [1]), {"path": "a", "lines": [1]}),
    (Model(a=1, b=Model(c=2)), {"a": 1, "b": {"c": 2}}),
    (ValueError("no"), "ValueError('no')"),
    (Words(), "words"),
    (1 + 2j, "(1+2j)"),
]


@pytest.mark.parametrize(("value", "meaning"), MEANINGS, ids=[repr(value)[:40] for value, _ in MEANINGS])
def test_meaning(value: Any, meaning: Any) -> None:
    found = read(value)
    assert found == meaning and type(found) is type(meaning)


def test_pydantic_models_and_attrs_classes() -> None:
    pydantic = pytest.importorskip("pydantic")
    attrs = pytest.importorskip("attrs")
    inner = pydantic.create_model("Inner", when=(datetime.date, ...))
    model = pydantic.create_model("Outer", path=(str, ...), inner=(inner, ...))
    value = model(path="a", inner=inner(when=datetime.date(2026, 1, 31)))
    assert read(value) == {"path": "a", "inner": {"when": "2026-01-31"}}
    assert read(attrs.make_class("C", ["x", "y"])(1, 2)) == {"x": 1, "y": 2}


def failure(value: Any) -> BaseException:
    with pytest.raises((TypeError, ValueError)) as raised:
        deloop.Guard().observe({"type": "call", "tool": "t", "args": {"a": [value]}})
    return raised.value


@pytest.mark.parametrize(
    "value", [object(), lambda: 0, (i for i in ()), Broken(), Endless(), type("Slots", (), {"__slots__": ()})()]
)
def test_what_has_no_meaning_is_an_error_that_names_the_field(value: Any) -> None:
    error = failure(value)
    assert isinstance(error, TypeError)
    assert str(error).startswith("`args.a[0]`: can't read a value of type "), error


def test_a_cycle_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    tree: dict[str, Any] = {}
    tree["b"] = [tree, tree]
    for value in (loop, tree):
        error = failure(value)
        assert isinstance(error, ValueError) and "contains itself" in str(error), error


def test_the_same_value_twice_is_no_cycle() -> None:
    shared = ["a"]
    assert read([shared, shared]) == [["a"], ["a"]]


def test_depth_is_no_danger() -> None:
    value: Any = 0
    for _ in range(100_000):
        value = [value]
    assert isinstance(read(value), list)
    guard = deloop.Guard()
    assert guard.observe({"type": "result", "output": value}).action == "continue"
    with pytest.raises(ValueError):
        guard.observe("[" * 1_000_000)


def test_a_large_value_is_cut_or_refused() -> None:
    guard = deloop.Guard()
    assert guard.observe({"type": "result", "output": "x" * 10_000_000}).action == "continue"
    assert guard.observe({"type": "result", "output": list(range(1_000_000))}).action == "continue"
    step = deloop.Step.result("s", output="x" * 10_000_000)
    assert len(step.to_json()) < 100_000
    shared: Any = "x" * 1000
    for _ in range(40):
        shared = [shared, shared]
    with pytest.raises(ValueError, match="64 MiB"):
        guard.observe({"type": "result", "output": shared})


def test_interrupts_pass() -> None:
    class Interrupting:
        def model_dump(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(Interrupting())


def test_a_dict_that_changes_while_it_is_read() -> None:
    outer: dict[str, Any] = {}

    class Growing:
        def model_dump(self) -> dict[str, Any]:
            outer[f"more{len(outer)}"] = 1
            return {}

    outer["a"] = Growing()
    outer["b"] = 1
    with pytest.raises(Exception) as raised:  # noqa: PT011
        deloop.Guard().observe({"type": "call", "tool": "t", "args": outer})
    assert isinstance(raised.value, RuntimeError)


STEP_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (3, TypeError, "a step is a deloop.Step, a dict, or JSON as str or bytes, not int"),
    (None, TypeError, "not NoneType"),
    ([], TypeError, "not list"),
    ({}, ValueError, "missing field `type`"),
    ({"type": "tool"}, ValueError, "unknown type `tool`: one of turn"),
    ({"type": "call"}, ValueError, "a `call` step needs the field `tool`"),
    ({"type": "call", "tool": 3}, TypeError, "`tool`: integer `3` instead of a string"),
    ({"type": "turn", "calls": [{"tool": "a"}, {"tool": None}]}, TypeError, "`calls[1].tool`: None instead of a string"),
    ({"type": "turn", "calls": {}}, TypeError, "`calls`: map instead of a sequence"),
    ({"type": "result", "ok": "yes"}, TypeError, '`ok`: string "yes" instead of a boolean'),
    ({"type": "result", "outcome": "fine"}, ValueError, "`outcome`: unknown variant `fine`"),
    ({"type": "end", "ts": "noon"}, ValueError, "RFC 3339"),
    ({"type": "end", "ts": datetime.datetime(2026, 1, 31)}, ValueError, "RFC 3339"),
    ({"type": "delivery", "step": -1, "ok": True}, ValueError, "a whole number from 0"),
    ("nope", ValueError, "not JSON"),
    (b"\xff", ValueError, "not JSON"),
    ("[]", ValueError, "not a list"),
    ('{"type":"call","tool":3}', ValueError, "invalid type: integer `3`, expected a string"),
]


@pytest.mark.parametrize(("step", "kind", "message"), STEP_ERRORS, ids=[str(step)[:40] for step, _, _ in STEP_ERRORS])
def test_a_bad_step_names_the_field(step: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as raised:
        deloop.Guard().observe(step)
    assert message in str(raised.value)


def test_typed_steps_are_the_dicts_they_stand_for() -> None:
    when = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc)
    call = deloop.Call(7, "bash", {"command": "ls"})
    pairs: list[tuple[deloop.Step, dict[str, Any]]] = [
        (deloop.Step.call("s", "c1", "bash", {"b": 1, "a": Data("x", [])}),
         {"type": "call", "session": "s", "id": "c1", "tool": "bash", "args": {"b": 1, "a": {"path": "x", "lines": []}}}),
        (deloop.Step.turn("s", "Hm.", [call], turn_id="t1", agent="a", ts=when),
         {"type": "turn", "session": "s", "agent": "a", "ts": "2026-01-31T12:00:00Z", "turn_id": "t1", "text": "Hm.",
          "calls": [{"id": "7", "tool": "bash", "args": {"command": "ls"}}]}),
        (deloop.Step.result("s", "c1", ok=False, output={"e": 1}, outcome="timeout", error_type="E", task="t"),
         {"type": "result", "session": "s", "task": "t", "id": "c1", "ok": False, "outcome": "timeout", "output": {"e": 1},
          "error_type": "E"}),
        (deloop.Step.user("s", "Go on.", origin="harness"), {"type": "user", "session": "s", "text": "Go on.", "origin": "harness"}),
        (deloop.Step.usage("s", "gpt-5", input_tokens=3, cost_usd=0.5),
         {"type": "usage", "session": "s", "model": "gpt-5", "input_tokens": 3, "cost_usd": 0.5}),
        (deloop.Step.chunk("s", "x"), {"type": "chunk", "session": "s", "text": "x"}),
        (deloop.Step.compact("s"), {"type": "compact", "session": "s"}),
        (deloop.Step.delivery("s", 3, True), {"type": "delivery", "session": "s", "step": 3, "ok": True}),
        (deloop.Step.embedding("s", 3, [0.5]), {"type": "embedding", "session": "s", "step": 3, "embedding": [0.5]}),
        (deloop.Step.intervention("s"), {"type": "intervention", "session": "s"}),
        (deloop.Step.end("s", project="p"), {"type": "end", "session": "s", "project": "p"}),
        (deloop.Step.swarm_end("s", "w"), {"type": "swarm_end", "session": "s", "swarm": "w"}),
        (deloop.Step.state("s", swarm="w", controller="boss"),
         {"type": "state", "session": "s", "swarm": "w", "controller": "boss"}),
    ]
    for step, as_dict in pairs:
        assert step == deloop.Step.from_dict(as_dict), as_dict
        assert deloop.Step.from_dict(step.to_dict()) == step
        assert deloop.Step.from_json(step.to_json()) == step
        assert pickle.loads(pickle.dumps(step)) == step
        assert step.type == as_dict["type"] and step.session == "s"
    with pytest.raises(TypeError, match="colour"):
        deloop.Step.end("s", colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"calls\[0\]"):
        deloop.Step.turn("s", calls=[{"tool": "x"}])  # type: ignore[list-item]


def test_numbers_of_models_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    assert read(numpy.int64(3)) == 3
    assert read(numpy.array([[1.5, 2.5]])) == [[1.5, 2.5]]


def test_the_order_of_keys_changes_nothing() -> None:
    guard = deloop.Guard("signature")
    for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}) * 3:
        decision = guard.observe({"type": "call", "tool": "t", "args": args})
    assert decision.action != "continue"


def test_recursion_limit_of_python_does_not_matter() -> None:
    limit = sys.getrecursionlimit()
    value: Any = 0
    for _ in range(limit * 3):
        value = {"a": value}
    assert json.dumps(read(value))
