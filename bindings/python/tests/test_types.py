"""The stubs hold for mypy and pyright in strict mode, and describe what is there."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import deloop
import pytest
from deloop import _deloop

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_strict(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("there is no Node, and pyright would fetch one")
    arguments = ["--cache-dir", str(tmp_path)] if checker == "mypy" else []
    command = [sys.executable, "-m", checker, *arguments]
    # Otherwise pyright asks an index for its newest version.
    env = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_class_of_the_stub_has_the_members_that_it_says() -> None:
    stub = ast.parse((Path(deloop.__file__).parent / "_deloop.pyi").read_text())
    classes = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    assert {node.name for node in classes} == {
        name for name, found in vars(_deloop).items() if isinstance(found, type)
    }
    for node in classes:
        said = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        there = {name for name in vars(getattr(_deloop, node.name)) if not name.startswith("__")}
        assert there == {name for name in said if not name.startswith("__")}, node.name


def test_the_typed_program_runs() -> None:
    done = subprocess.run([sys.executable, HERE / "tests" / "typed_program.py"], capture_output=True, text=True, check=True)
    assert done.stdout == f"continue [] 0 [] 1 {deloop.__version__}\n"
