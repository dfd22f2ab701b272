"""Installs a wheel into a clean environment, without Rust on the PATH, and uses it there.

    python bindings/python/tests/wheel_check.py target/wheels/deloop-*.whl [--any-size]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LARGEST = 15_000_000
HOOK = {
    "session_id": "s1",
    "transcript_path": "",
    "cwd": "/",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t1",
}
PROGRAM = """
import sys, deloop
guard = deloop.Guard()
actions = []
for turn in range(8):
    call = {"id": f"c{turn}", "tool": "bash", "args": {"command": "make test"}}
    actions.append(guard.observe({"type": "turn", "session": "s", "calls": [call]}).action)
    actions.append(guard.observe(deloop.Step.result("s", f"c{turn}", ok=False, output="boom")).action)
assert actions[5] == "nudge" and actions[-2] == "stop", actions
steps = list(deloop.steps(sys.argv[1]))
assert len(steps) == 24, len(steps)
loops = list(deloop.scan(sys.argv[1]))
assert loops and loops[0]["tool"] == "bash", loops
print(deloop.__version__, deloop.command())
"""
ADAPTER = """
from deloop.openai import ToolLoop
loop, messages, ran = ToolLoop(), [{"role": "user", "content": "Fetch the page."}], []
def convert(name, arguments):
    ran.append(name)
    raise ValueError("no such table: orders")
for turn in range(30):
    call = {"id": f"c{turn}", "type": "function", "function": {"name": "convert", "arguments": "{}"}}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    answer = loop.answered({"choices": [{"message": messages[-1]}]}, messages)
    messages += answer.results(convert)
    if answer.done():
        break
assert answer.stop.action == "stop" and len(ran) == 5, (answer.text, ran)
print(answer.text)
"""


def main(wheel: Path, largest: int) -> int:
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.1f} MB")
    if size > largest:
        print(f"larger than {largest / 1e6:.0f} MB", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        use(wheel.resolve(), Path(folder))
    print("the wheel works")
    return 0


def use(wheel: Path, folder: Path) -> None:
    venv.create(folder / "env", with_pip=True)
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    home = folder / "home"
    (home / ".claude").mkdir(parents=True)
    path = os.pathsep.join([str(scripts), "/usr/bin", "/bin"])
    environment = {"PATH": path, "HOME": str(home), "USERPROFILE": str(home), "PYTHONNOUSERSITE": "1"}

    def run(*arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            arguments, input=given, cwd=home, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        print("$", " ".join(arguments)[:100], "\n ", (done.stdout.strip().splitlines() or [""])[0][:100])
        return done.stdout

    def absent(program: str) -> bool:
        return not any(os.access(Path(place) / program, os.X_OK) for place in path.split(os.pathsep))

    assert absent("cargo") and absent("rustc"), "Rust is on the PATH, so this shows nothing"
    run(str(scripts / "python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    with open(scripts / "deloop", "rb") as command:
        assert command.read(4) in (b"\x7fELF", b"\xcf\xfa\xed\xfe"), "the command isn't a native program"
    version = run("deloop", "--version").split()[1]
    session = home / "session.jsonl"
    session.write_text("".join(json.dumps(step) + "\n" for step in failing(12)))
    report = json.loads(run("deloop", "scan", "--json", str(session)))
    assert report["totals"]["loops"] == 1
    run("deloop", "install", "claude-code")
    settings = (home / ".claude" / "settings.json").read_text()
    # Either by name, since it is on the PATH, or by its own path: a native program in both cases.
    assert "deloop hook claude-code" in settings, settings
    reply = run("deloop", "hook", "claude-code", given=json.dumps({**HOOK, "cwd": str(home)}))
    assert "deny" not in reply
    assert run("python", "-c", PROGRAM, str(session)).split()[0] == version
    assert run("python", "-c", ADAPTER).startswith("[deloop] Stopped: ")
    run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "deloop")
    assert not (scripts / "deloop").exists()


def failing(turns: int) -> list[dict[str, object]]:
    steps: list[dict[str, object]] = []
    for turn in range(turns):
        steps.append({"type": "call", "session": "s", "id": f"c{turn}", "tool": "bash", "args": {"command": "make"}})
        steps.append({"type": "result", "session": "s", "id": f"c{turn}", "ok": False, "output": "boom"})
    return steps


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), sys.maxsize if "--any-size" in sys.argv else LARGEST))
