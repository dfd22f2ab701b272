"""The conformance vectors of all profiles, through Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deloop
import pytest

VECTORS = Path(__file__).parents[3] / "conformance" / "vectors"
FILES = sorted(VECTORS.glob("*/*.json"))


def findings(decision: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["detector"], finding["count"]) for finding in decision["findings"]]


def check(vector: dict[str, Any], answers: list[dict[str, Any]]) -> None:
    for at, (answer, expected) in enumerate(zip(answers, vector["decisions"], strict=True)):
        for key, value in expected.items():
            about = f"step {at}: {key} ({vector['about']})"
            if key == "findings":
                assert findings(answer) == findings(expected), about
            else:
                assert answer.get(key) == value, about


def test_there_are_vectors_of_every_profile() -> None:
    profiles = {path.parent.name for path in FILES}
    assert len(FILES) >= 80
    assert profiles == {"behavioral", "doom-loop", "signature", "turn-hash", "turn-similarity"}


@pytest.mark.parametrize("form", ["dict", "json", "bytes", "typed"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_vector(path: Path, form: str) -> None:
    vector = json.loads(path.read_text())
    guard = deloop.Guard(vector["profile"], config=vector.get("config"))
    answers = []
    for step in vector["steps"]:
        given = {
            "dict": lambda step: step,
            "json": json.dumps,
            "bytes": lambda step: json.dumps(step).encode(),
            "typed": deloop.Step.from_dict,
        }[form](step)
        answers.append(guard.observe(given).to_dict())
    check(vector, answers)
