"""What the tests of all framework adapters share."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fake_model import FakeModel, Request

REPO = Path(__file__).resolve().parents[4]
ROWS = REPO / os.environ.get("CARGO_TARGET_DIR", "target") / "bindings" / "rows"
FIRST, SECOND = "[deloop] You ran", "[deloop] This is the second"
BLOCKED, AGAIN, STOPPED = "[deloop] Blocked.", "[deloop] Blocked again", "[deloop] Stopped"
# Seconds after which a test that waits for something fails instead of hanging.
HANGS = 60
LADDER = ["nudge", "nudge", "block", "block", "stop"]
_ID = re.compile(
    r"\b(?:call|toolu|chatcmpl|resp|msg|fc|run|item|req)[-_][A-Za-z0-9]{4,}\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
_TIME = re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


def normalized(requests: Iterable[Request]) -> list[str]:
    """Returns the bodies of requests as text, ids numbered by their first appearance and times taken out."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return numbers.setdefault(found.group(0), f"id{len(numbers)}")

    return [_TIME.sub("TIME", _ID.sub(number, request.raw.decode())) for request in requests]


def assert_same_requests(without: Iterable[Request], with_deloop: Iterable[Request]) -> int:
    """Checks that two runs sent the same requests, ids and times aside, and returns how many."""
    a, b = normalized(without), normalized(with_deloop)
    for index, (left, right) in enumerate(zip(a, b)):
        if left != right:
            at = next((i for i, (x, y) in enumerate(zip(left, right)) if x != y), min(len(left), len(right)))
            near = slice(max(0, at - 120), at + 120)
            raise AssertionError(f"request {index} differs at {at}:\n- …{left[near]}…\n+ …{right[near]}…")
    assert len(a) == len(b), f"{len(a)} requests without deloop, {len(b)} with it"
    return len(a)


def first_with(requests: Iterable[Request], text: str) -> int:
    """Returns the number of the first request that shows a text, and checks that all later ones show it too."""
    shown = [request.shows(text) for request in requests]
    assert any(shown), f"no request shows {text!r}"
    first = shown.index(True)
    assert all(shown[first:]), f"{text!r} is in request {first} but not in all later ones: {shown}"
    return first


def place_of(request: Request, text: str) -> str:
    """Returns where a text stands in a request: the role of its entry."""
    return next(entry["role"] for entry in request.conversation if text in entry["text"])


class Tools:
    """Offers the failing tool of the loop tests, and counts what really ran."""

    def __init__(self, error: str = "Error: no such table: orders") -> None:
        self.error = error
        self.ran: list[str] = []
        self._lock = threading.Lock()

    def note(self, url: str) -> None:
        """Counts one run of the tool."""
        with self._lock:
            self.ran.append(url)

    def convert(self, url: str) -> str:
        """Convert a page."""
        self.note(url)
        return self.error

    def raising(self, url: str) -> str:
        """Convert a page, and raise."""
        self.note(url)
        raise ConnectionError(self.error)


class Workspace:
    """Offers the tools of the healthy run over files in memory; the script `healthy` calls them."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.calls = 0

    def read_file(self, path: str) -> str:
        """Read a file."""
        self.calls += 1
        if path.startswith("missing"):
            raise FileNotFoundError(f"no such file: {path}")
        return self.files.get(path, f"# {path} is empty\n")

    def edit_file(self, path: str, text: str) -> str:
        """Write a file."""
        self.calls += 1
        self.files[path] = text
        return f"wrote {len(text)} characters to {path}"

    def run_tests(self, name: str) -> str:
        """Run the tests of one part."""
        self.calls += 1
        source = self.files.get(f"src/{name}.py")
        return f"{name}: 1 passed" if source else f"{name}: 1 failed: {name}() returned None"

    def search(self, pattern: str) -> str:
        """Search all files."""
        self.calls += 1
        hits = [path for path, source in sorted(self.files.items()) if pattern in source]
        return "\n".join(hits) or f"no match for {pattern}"

    @property
    def tools(self) -> list[Callable[..., str]]:
        """Lists the four tools."""
        return [self.read_file, self.edit_file, self.run_tests, self.search]


class RecordingGuard:
    """Passes everything on to a real Guard and keeps the steps and the decisions: all but `continue`, and a stop once."""

    def __init__(self, **options: Any) -> None:
        from deloop import Guard

        self.guard = Guard(**options)
        self.steps: list[dict[str, Any]] = []
        self.decisions: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.guard, name)

    def observe(self, step: dict[str, Any]) -> Any:
        """Records a step and returns the guard's decision."""
        decision = self.guard.observe(step)
        self.steps.append(dict(step))
        known = any(decision.action == before.action == "stop" and decision.session == before.session for before in self.decisions)
        if decision.action != "continue" and not known:
            self.decisions.append(decision)
        return decision

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Lists the steps of one type."""
        return [step for step in self.steps if step["type"] == kind]

    @property
    def actions(self) -> list[str]:
        """Lists what was decided."""
        return [decision.action for decision in self.decisions]


class BrokenGuard:
    """Stands for a Guard that crashes in every method."""

    def __getattr__(self, name: str) -> Any:
        def crash(*_: Any, **__: Any) -> Any:
            raise RuntimeError(f"crash inside deloop: {name}")

        return crash

    @property
    def sessions(self) -> int:
        """Crashes, as every other member does."""
        raise RuntimeError("crash inside deloop: sessions")


def run_python(code: str, *args: str, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 120) -> str:
    """Runs a program in a new process of this interpreter and returns what it printed; it must exit with 0."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program_under_test.py"
        path.write_text(code)
        search = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
        done = subprocess.run(
            [sys.executable, str(path), *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": search, **(env or {})},
        )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def page_program(name: str, most_lines: int = 20) -> str:
    """Returns the program of docs/frameworks/NAME.md: its first python block, at most `most_lines` long."""
    page = (REPO / "docs" / "frameworks" / f"{name}.md").read_text()
    found = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found, f"docs/frameworks/{name}.md has no python block"
    program = found.group(1)
    lines = len(program.rstrip("\n").splitlines())
    assert lines <= most_lines, f"the program of docs/frameworks/{name}.md has {lines} lines"
    return program


def run_page_program(name: str, model: FakeModel, env: dict[str, str] | None = None) -> str:
    """Runs the program of a page as it stands against the fake model and returns what it printed."""
    return run_python(page_program(name), env={**model.env, **(env or {})})


def write_row(name: str, **cells: str) -> None:
    """Adds cells to the row of a framework in target/bindings/rows/NAME.json; the docs' table is made from these."""
    ROWS.mkdir(parents=True, exist_ok=True)
    path = ROWS / f"{name}.json"
    row = json.loads(path.read_text()) if path.exists() else {"framework": name}
    row.update(cells)
    path.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
