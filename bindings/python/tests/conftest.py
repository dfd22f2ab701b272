"""What the tests of the core need: the command, to compare with."""

from __future__ import annotations

import os
from pathlib import Path

import deloop
import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def binary() -> str:
    """The command `deloop`: the one that DELOOP_BINARY names, the one of the package, or the one that cargo built."""
    named = os.environ.get("DELOOP_BINARY")
    if named:
        return named
    built = [ROOT / "target" / kind / "deloop" for kind in ("dist", "release", "debug")]
    for path in built:
        if path.is_file():
            return str(path)
    try:
        return deloop.command()
    except FileNotFoundError:
        pytest.skip("there is no command `deloop` to compare with; set DELOOP_BINARY")
