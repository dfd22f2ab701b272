"""The programs in the guide and in the README run as they stand."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
STEPS = [
    {"type": kind, "session": "s", "id": f"c{turn}", **rest}
    for turn in range(12)
    for kind, rest in (
        ("call", {"tool": "bash", "args": {"command": "make"}}),
        ("result", {"ok": False, "output": "boom"}),
    )
]


@pytest.mark.parametrize("page", ["docs/python.md", "bindings/python/README.md"])
def test_page(
    page: str, binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from deloop import _command

    monkeypatch.setattr(_command, "command", lambda: binary)
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(step) + "\n" for step in STEPS).encode()
    Path("session.jsonl.gz").write_bytes(gzip.compress(lines))
    Path("runs").mkdir()
    Path("runs/session.jsonl").write_bytes(lines)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    printed = capsys.readouterr().out
    if page.startswith("docs"):
        assert printed.count("result s") == 12 and "`make`" in printed
    else:
        words = [line.split()[0] for line in printed.splitlines() if line]
        assert (words.index("nudge"), words.index("block"), words.index("stop")) == (5, 10, 14)
