"""What `observe` costs from Python, beside Rust and beside the loop detectors of other projects, on the same calls.

    python bindings/python/bench/observe.py --rust target/release/examples/observe

`--rust` is the program of `cargo build --release -p deloop-bind --example observe`. Without it, there is no figure for Rust
to compare with. `--others FOLDER` also measures the other detectors: their packages are installed into environments in that
folder, and one that can't be installed is listed. `--check` ends with exit code 1 if a figure is over its limit.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import deloop

sys.path.insert(0, str(Path(__file__).parent))
import others  # noqa: E402

BYTES = 200
CALLS = 1024
PART = 32
ROUNDS = 80
# How much more than in Rust, in microseconds.
LIMITS = {"dict": 2.0, "JSON str": 2.0, "JSON bytes": 2.0, "typed": 5.0}
IMPORT_MS = 20.0
SESSIONS = 100_000


def call(number: int) -> dict[str, Any]:
    """Returns a call that is exactly BYTES long as JSON; the same as in crates/bind/examples/observe.rs."""

    def padded(dots: int) -> dict[str, Any]:
        args = {
            "command": f"grep -rn handler_{number:05} src tests | head -20",
            "description": f"Find handler {number:05}" + "." * dots,
            "timeout": 120000,
        }
        return {"type": "call", "session": "s1", "id": f"c{number:05}", "tool": "bash", "args": args}

    return padded(BYTES - len(line(padded(0))))


def line(step: dict[str, Any]) -> str:
    return json.dumps(step, separators=(",", ":"))


def best(inputs: Iterable[Any], prepare: Callable[[], Callable[[Any], object]]) -> float:
    """Returns the time per call, in microseconds: the sum of the shortest times of each part, over all rounds.

    Parts are short, so that other programs rarely interrupt all rounds of one. Each round has a guard of its own.
    """
    inputs = list(inputs)
    parts = [inputs[at : at + PART] for at in range(0, len(inputs), PART)]
    shortest = [float("inf")] * len(parts)
    for _ in range(ROUNDS):
        observe = prepare()
        gc.disable()
        for at, part in enumerate(parts):
            start = time.perf_counter()
            for item in part:
                observe(item)
            shortest[at] = min(shortest[at], time.perf_counter() - start)
        gc.enable()
    return sum(shortest) / len(inputs) * 1e6


def typed(guard: deloop.Guard) -> Callable[[dict[str, Any]], object]:
    """Makes the typed objects as a program would, from the parts of a call."""
    observe, make = guard.observe, deloop.Step.call
    return lambda step: observe(make("s1", step["id"], step["tool"], step["args"]))


def rust(program: str | None) -> dict[str, float] | None:
    if program is None:
        return None
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    assert figures["bytes"] == BYTES and figures["calls"] == CALLS
    return figures


def other(name: str, folder: Path, calls: list[dict[str, Any]]) -> dict[str, float] | str:
    """Returns what another detector costs per call, by the number of calls; or why it can't be measured."""
    package = others.PACKAGES[name]
    environment = folder / f"bench-{package.split('==')[0]}"
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    last_line = lambda text: (text.strip().splitlines() or ["no reason given"])[-1]  # noqa: E731
    marker = environment / "installed"
    if not marker.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", package]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"can't be installed on this machine: {last_line(done.stderr)}"
        marker.touch()
    command = [str(python), str(Path(others.__file__)), name]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"doesn't run on this machine: {last_line(done.stderr)}"
    costs: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return costs


def import_ms() -> float:
    """Returns how long `import deloop` takes, in milliseconds: the median of several new interpreters."""
    times = []
    for _ in range(15):
        code = "import time; s = time.perf_counter(); import deloop; print((time.perf_counter() - s) * 1e3)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    return statistics.median(times)


def eight_threads() -> tuple[int, int, float]:
    """Returns how many steps 8 threads sent to one guard, how many were entered, and how many a second."""
    guard, threads, each = deloop.Guard(), 8, 10_000
    steps = [[{**call(n), "session": f"t{thread}"} for n in range(each)] for thread in range(threads)]

    def work(own: list[dict[str, Any]]) -> None:
        for step in own:
            guard.observe(step)

    workers = [threading.Thread(target=work, args=(own,)) for own in steps]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    entered = sum(guard.observe(deloop.Step.state(f"t{thread}")).step for thread in range(threads))
    return threads * each, entered, threads * each / seconds


def many_sessions() -> tuple[int, float]:
    """Returns how many of SESSIONS sessions a guard holds, and how much memory each takes, in KiB."""
    guard = deloop.Guard(max_sessions=SESSIONS + SESSIONS // 10)
    before = memory()
    for number in range(SESSIONS):
        session = f"session-{number}"
        for turn in range(3):
            guard.observe({**call(turn), "session": session})
            guard.observe({"type": "result", "session": session, "id": f"c{turn:05}", "ok": False, "output": "no such file"})
    return guard.sessions, (memory() - before) / SESSIONS


def memory() -> float:
    """Returns the memory of this process, in KiB."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rust", metavar="PROGRAM")
    parser.add_argument("--others", metavar="FOLDER", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()

    calls = [call(number) for number in range(CALLS)]
    lines = [line(step) for step in calls]
    assert {len(text) for text in lines} == {BYTES}
    native = rust(options.rust)
    figures: dict[str, Any] = {"python": sys.version.split()[0], "rust": native}
    measured = {
        "dict": best(calls, lambda: deloop.Guard().observe),
        "JSON str": best(lines, lambda: deloop.Guard().observe),
        "JSON bytes": best([text.encode() for text in lines], lambda: deloop.Guard().observe),
        "typed": best(calls, lambda: typed(deloop.Guard())),
    }
    figures["observe_us"] = measured
    over = []
    print(f"observe of a call of {BYTES} bytes, in microseconds ({CALLS} calls, best of {ROUNDS} rounds)")
    if native:
        print(f"  {'Rust, ready Step':34}{native['step_ns'] / 1e3:9.2f}")
        print(f"  {'Rust, JSON':34}{native['json_ns'] / 1e3:9.2f}")
    for name, value in measured.items():
        more = value - native["step_ns"] / 1e3 if native else None
        shown = "" if more is None else f"   {more:+.2f} over Rust, limit {LIMITS[name]:+.1f}"
        print(f"  {'Python, ' + name:34}{value:9.2f}{shown}")
        if more is not None and more > LIMITS[name]:
            over.append(name)
    if options.others:
        print("\nother detectors, the same calls, in microseconds per call of a session of so many calls")
        figures["others_us"] = {name: other(name, options.others, calls) for name in others.DETECTORS}
        for name, found in figures["others_us"].items():
            if isinstance(found, dict):
                found = "".join(f"{value:9.2f} ({size})" for size, value in found.items())
            print(f"  {name:34}{found}")
    figures["import_ms"] = import_ms()
    print(f"\nimport deloop: {figures['import_ms']:.1f} ms, limit {IMPORT_MS:.0f}")
    if figures["import_ms"] > IMPORT_MS:
        over.append("import")
    sent, entered, rate = eight_threads()
    figures["threads"] = {"sent": sent, "entered": entered, "per_second": rate}
    print(f"8 threads on one guard: {sent} steps sent, {entered} entered, {rate:,.0f} a second")
    if sent != entered:
        over.append("threads")
    held, kib = many_sessions()
    figures["sessions"] = {"held": held, "kib_each": kib}
    print(f"{SESSIONS:,} sessions in one process: {held:,} held, {kib:.1f} KiB each")
    if held != SESSIONS:
        over.append("sessions")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")
    if over:
        print(f"\nover the limit: {', '.join(over)}")
    return 1 if over and options.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
