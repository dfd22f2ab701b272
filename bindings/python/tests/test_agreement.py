"""Python's answers are those of `deloop stream`, on random steps with odd values."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import deloop
import pytest

PROFILES = ["default", "behavioral", "doom-loop", "signature", "turn-hash", "turn-similarity"]
STEPS = int(os.environ.get("DELOOP_CASES", "3000"))

TEXTS = [
    "",
    "Let me look.",
    "Let me look again.",
    "grüße 😀",
    "half \ud83d",
    "pair \ud83d\ude00",
    "\x00\x1b[31mred",
    "a" * 300,
    "x" * 70_000,
    "\u2028 \\ \" \t",
]
ODD = [
    None,
    True,
    False,
    0,
    -1,
    1.0,
    -0.0,
    1e16,
    1e-7,
    0.1,
    2**53 + 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    10**40,
    10**400,
    float("nan"),
    float("inf"),
    -float("inf"),
    "",
    "npm test",
    "/tmp/a.txt",
    "half \udc00",
    [],
    {},
]


class Steps:
    """Makes steps of a few sessions that repeat themselves often enough to be judged."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.calls = 0
        self.loop: list[dict[str, Any]] = []

    def value(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if kind < 0.7 or depth > 4:
            return self.random.choice(ODD)
        size = self.random.choice([0, 1, 2, 3, 8])
        if kind < 0.85:
            return [self.value(depth + 1) for _ in range(size)]
        return {self.key(): self.value(depth + 1) for _ in range(size)}

    def key(self) -> str:
        return self.random.choice(["command", "path", "file_path", "content", "n", "ü", "half \ud800", "", "z"])

    def args(self) -> Any:
        kind = self.random.random()
        if kind < 0.6:
            return {"command": self.random.choice(["make test", "npm test", "cat a.txt", "ls -la"])}
        if kind < 0.62:
            return nested(self.random.choice([50, 64, 65, 130, 300]))
        if kind < 0.63:
            return {"list": list(range(self.random.choice([100, 5000])))}
        return self.value()

    def call(self) -> dict[str, Any]:
        self.calls += 1
        tool = self.random.choice(["bash", "Read", "edit", "Task"])
        call: dict[str, Any] = {"tool": tool, "args": self.args()}
        if self.random.random() < 0.8:
            call["id"] = self.random.choice([f"c{self.calls}", self.calls, "same"])
        return call

    def body(self) -> dict[str, Any]:
        kind = self.random.choices(
            ["turn", "call", "result", "user", "usage", "chunk", "compact", "delivery", "intervention", "end", "state"],
            [25, 20, 35, 3, 5, 2, 1, 3, 1, 1, 2],
        )[0]
        step: dict[str, Any] = {"type": kind}
        if kind == "turn":
            step["text"] = self.random.choice(TEXTS)
            step["calls"] = [self.call() for _ in range(self.random.choice([0, 1, 1, 1, 2, 4]))]
        elif kind == "call":
            step |= self.call()
        elif kind == "result":
            if self.random.random() < 0.7:
                step["id"] = f"c{max(1, self.calls - self.random.choice([0, 0, 0, 1, 3]))}"
            step["ok"] = self.random.choice([True, False, False, None])
            step["output"] = self.random.choice(["boom", "1 failed", "ok", self.value(), self.random.choice(TEXTS)])
            if self.random.random() < 0.2:
                outcomes = ["ok", "error", "denied", "cancelled", "timeout", "running", "invalid"]
                step["outcome"] = self.random.choice(outcomes)
            if self.random.random() < 0.1:
                step["error_type"] = self.random.choice(["ENOENT", "ValueError"])
        elif kind in ("user", "chunk"):
            step["text"] = self.random.choice(TEXTS)
            if kind == "user":
                step["origin"] = self.random.choice(["human", "harness"])
        elif kind == "usage":
            model = self.random.choice(["claude-sonnet-4-5", "gpt-5", "unknown", None])
            step |= {"model": model, "input_tokens": self.random.choice([0, 7, 3.0, 10**6])}
            step |= {"output_tokens": 5, "cost_usd": self.random.choice([None, 0.25, float("nan"), 10**400])}
        elif kind == "delivery":
            step |= {"step": self.random.choice([0, 3.0, 17]), "ok": self.random.choice([True, False])}
        return step

    def begin_loop(self) -> None:
        """Lets a session of its own repeat a call that fails, so that every profile has something to decide."""
        session, args = f"loop{self.calls}", self.args()
        for turn in range(12):
            call = {"id": f"{session}-{turn}", "tool": "bash", "args": args}
            self.loop.append({"type": "turn", "session": session, "text": "Again.", "calls": [call]})
            self.loop.append({"type": "result", "session": session, "id": call["id"], "ok": False, "output": "boom"})
        self.loop.reverse()

    def step(self) -> dict[str, Any]:
        if self.loop:
            return self.loop.pop()
        if self.random.random() < 0.01:
            self.begin_loop()
        step = self.body()
        step["session"] = self.random.choice(["a", "b", "c" * 300])
        if self.random.random() < 0.1:
            step["agent"] = self.random.choice(["w1", "w2"])
        if self.random.random() < 0.05:
            step["swarm"] = "swarm"
        if self.random.random() < 0.1:
            step["task"] = "task-1"
        if self.random.random() < 0.3:
            step["ts"] = self.random.choice([1_700_000_000_000 + self.calls * 1000, "2026-01-31T12:00:00Z", 1.5])
        if self.random.random() < 0.05:
            step["unknown"] = self.value()
        if self.random.random() < 0.02:
            step[self.random.choice(["type", "tool", "text", "ts", "ok", "calls", "id"])] = self.value()
        return step


def nested(depth: int) -> Any:
    value: Any = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def line(step: dict[str, Any]) -> str:
    return json.dumps(step, separators=(",", ":"))


def stream(binary: str, profile: str, steps: list[dict[str, Any]], home: Path) -> list[dict[str, Any]]:
    lines = "".join(line(step) + "\n" for step in steps)
    done = subprocess.run(
        [binary, "stream", "--profile", profile],
        input=lines.encode(),
        capture_output=True,
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode in (0, 2), done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def answer(guard: deloop.Guard, step: Any) -> dict[str, Any]:
    try:
        return json.loads(guard.observe(step).to_json())
    except (TypeError, ValueError) as error:
        return {"error": str(error)}


def without_times(value: Any) -> Any:
    """Return a decision without the times that the library and the command take from their clocks."""
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    clocks = ("lastWarningTime", "timestamp")
    return {name: without_times(inner) for name, inner in value.items() if name not in clocks}


@pytest.mark.parametrize("profile", PROFILES)
def test_python_decides_as_the_command_does(profile: str, binary: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("DELOOP_SEED", "1"))
    made = Steps(seed)
    steps = [made.step() for _ in range(STEPS)]
    expected = stream(binary, profile, steps, tmp_path)
    assert len(expected) == len(steps)
    by_dict, by_json = deloop.Guard(profile), deloop.Guard(profile)
    actions, errors = set(), 0
    for at, (step, wanted) in enumerate(zip(steps, expected, strict=True)):
        about = f"profile {profile}, seed {seed}, step {at}: {json.dumps(step)[:500]}"
        from_dict, from_json = answer(by_dict, step), answer(by_json, line(step))
        if "error" in wanted:
            errors += 1
            assert "error" in from_dict and "error" in from_json, about
        else:
            assert without_times(from_json) == without_times(wanted), about
            assert without_times(from_dict) == without_times(wanted), about
            actions.add(wanted["action"])
    assert len(actions) > 1 and errors > 0, f"the steps lead to {actions} and {errors} errors"
