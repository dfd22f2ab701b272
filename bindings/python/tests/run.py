"""Runs the adapters' tests, each against the real framework at its pinned version.

    python bindings/python/tests/run.py [NAME…] --wheel FILE     tests the wheel
    python bindings/python/tests/run.py [NAME…] --extension FILE tests the sources of this folder with a built extension
    python bindings/python/tests/run.py --list                   prints the names

Each framework gets a virtual environment of its own in target/bindings. Exit code 1: a test failed; 2: the packages of
a framework could not be installed. Nothing but pip needs the network.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "frameworks"
REPO = HERE.parents[2]
BUILT = REPO / "target" / "bindings"


def names() -> list[str]:
    """Lists the frameworks that have a requirements file."""
    return sorted(path.stem.removeprefix("requirements-") for path in FOLDER.glob("requirements-*.txt"))


def environment(name: str) -> Path | None:
    """Makes the virtual environment of a framework, or reuses it if its requirements are the same; None if pip failed."""
    wanted = FOLDER / f"requirements-{name}.txt"
    folder = BUILT / f"venv-{name}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    mark = folder / "installed"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(wanted)])
    if pip.returncode:
        return None
    mark.write_text(digest)
    return python


def overlay(extension: Path) -> Path:
    """Puts the Python sources and a built extension into one folder and returns the folder to search."""
    folder = BUILT / "overlay"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE.parent / "python" / "deloop", folder / "deloop", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(extension, folder / "deloop")
    return folder


def tests(name: str) -> list[str]:
    """Lists the test files of a framework: test_NAME.py and test_NAME__*.py."""
    stem = f"test_{name.replace('-', '_')}"
    return [str(path) for path in sorted(FOLDER.glob("test_*.py")) if path.stem == stem or path.stem.startswith(f"{stem}__")]


def run(name: str, options: argparse.Namespace) -> int:
    """Runs the tests of one framework and returns the exit code."""
    python = environment(name)
    if python is None:
        print(f"{name}: its packages could not be installed", file=sys.stderr)
        return 2
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if options.wheel:
        done = subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(options.wheel)])
        if done.returncode:
            return 2
    else:
        env["PYTHONPATH"] = str(overlay(options.extension))
    (BUILT / "rows" / f"{name}.json").unlink(missing_ok=True)
    return 1 if subprocess.run([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests(name)], env=env).returncode else 0


def main() -> int:
    """Runs the tests of the named frameworks, or of all."""
    parser = argparse.ArgumentParser(description="Run the adapters' tests against the real frameworks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(names())} [default: all]")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--wheel", type=Path, help="the wheel to install and test")
    what.add_argument("--extension", type=Path, help="the built extension module to test the sources with")
    what.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names()))
        return 0
    unknown = set(options.names) - set(names())
    if unknown:
        parser.error(f"unknown framework: {', '.join(sorted(unknown))} (there are: {', '.join(names())})")
    codes = {name: run(name, options) for name in options.names or names()}
    for name, code in codes.items():
        print(f"{name}: {['passed', 'FAILED', 'could not be installed'][code]}")
    return max(codes.values(), key=lambda code: (code == 1, code), default=0)


if __name__ == "__main__":
    sys.exit(main())
