"""Session files: steps in process, scan through the command."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import deloop
import pytest

CORPUS = Path(__file__).parents[3] / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.suffix in {".jsonl", ".json", ".traj"})


def from_command(binary: str, path: Path) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run([binary, "steps", str(path)], capture_output=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_every_file_of_the_corpus_has_the_steps_that_the_command_prints(binary: str) -> None:
    formats = {}
    for path in FILES:
        formats.setdefault(path.parent.name, []).append(path)
    checked = 0
    for paths in formats.values():
        for path in paths[:2]:
            code, expected = from_command(binary, path)
            if code != 0:
                continue
            assert list(deloop.steps(path)) == expected, path
            checked += len(expected)
    assert checked > 500


def test_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"type":"turn","text":"a"}\nbroken\n{"type":"end"}\n'))
    file = deloop.steps(path)
    assert [step["type"] for step in file] == ["turn", "end"]
    assert file.notes[0].startswith("skipped 1 unreadable line")
    assert [step["type"] for step in deloop.steps(str(path), format="native")] == ["turn", "end"]


def test_what_is_no_session(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    with pytest.raises(ValueError, match="unknown session format"):
        list(deloop.steps(path))
    with pytest.raises(ValueError, match="known formats: claude-code"):
        deloop.steps(path, format="codecs")
    with pytest.raises(FileNotFoundError):
        deloop.steps(tmp_path / "none")
    with pytest.raises(OSError, match="not a regular file"):
        deloop.steps(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        deloop.steps(tmp_path / "pipe")


def test_scan(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from deloop import _command

    monkeypatch.setattr(_command, "command", lambda: binary)
    loops = list(deloop.scan(CORPUS / "swe-agent"))
    assert loops and {"session", "pattern", "detector", "count"} <= set(loops[0])
    assert list(deloop.scan([str(CORPUS / "swe-agent")], min_level="stop", redact=True)) != loops
    with pytest.raises(RuntimeError, match="unknown profile"):
        list(deloop.scan(CORPUS, profile="defualt"))
