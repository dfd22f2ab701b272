"""Runs the tests of the core, and those of the adapters, each against the real framework at its pinned version.

    python bindings/python/tests/run.py [NAME…] --wheel FILE     tests the wheel
    python bindings/python/tests/run.py [NAME…] --built FOLDER   tests the sources with what cargo built in target/debug
    python bindings/python/tests/run.py --list                   prints the names

`cargo xtask setup` installs the packages that this needs; this installs none and needs no network.
Exit code 1: a test failed; 2: something isn't installed or built.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "frameworks"
REPO = HERE.parents[2]
TARGET = REPO / os.environ.get("CARGO_TARGET_DIR", "target")
CORE = "core"
WINDOWS = os.name == "nt"
COMMAND = "deloop.exe" if WINDOWS else "deloop"


class NotThereError(Exception):
    """Says what the tests need and don't find."""


def names() -> list[str]:
    """Lists the core and the frameworks that have a requirements file."""
    return [CORE, *sorted(path.stem.removeprefix("requirements-") for path in FOLDER.glob("requirements-*.txt"))]


def environment(name: str) -> Path:
    """Returns the interpreter of the virtual environment with the packages of these tests."""
    wanted = (HERE if name == CORE else FOLDER) / f"requirements-{name}.txt"
    folder = TARGET / "bindings" / f"venv-{name}"
    mark = folder / "installed"
    # As xtask/src/bindings/python.rs writes it.
    version = f"# Python {sys.version_info.major}.{sys.version_info.minor}\n"
    if not mark.exists() or mark.read_text() != wanted.read_text() + version:
        raise NotThereError(f"the packages of {name} aren't installed: run `cargo xtask setup`")
    return folder / ("Scripts/python.exe" if WINDOWS else "bin/python")


def built_files(folder: Path) -> tuple[Path, Path]:
    """Returns the extension and the command in a folder of cargo's."""
    library = {"darwin": "lib_deloop.dylib", "win32": "_deloop.dll"}.get(sys.platform, "lib_deloop.so")
    files = folder / library, folder / COMMAND
    for file in files:
        if not file.exists():
            raise NotThereError(f"{file} isn't built: run `cargo build --workspace --lib --bins --examples`")
    return files


def overlay(name: str, built: Path) -> Path:
    """Lays out the sources, the extension and the command as a wheel's installation does; returns the folder to search."""
    extension, command = built_files(built.resolve())
    folder = TARGET / "bindings" / f"overlay-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE.parent / "python" / "deloop", folder / "deloop", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    put(extension, folder / "deloop" / ("_deloop.pyd" if WINDOWS else "_deloop.abi3.so"))
    put(command, folder / "bin" / COMMAND)
    version = tomllib.loads((REPO / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    about = folder / f"deloop-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.4\nName: deloop\nVersion: {version}\n")
    (about / "RECORD").write_text(f"bin/{COMMAND},,\n")
    return folder


def put(source: Path, target: Path) -> None:
    """Links a file, which may have 100 MB, or copies it where links aren't possible."""
    target.parent.mkdir(exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def tests(name: str) -> list[str]:
    """Lists the test files of the core, or of a framework: test_NAME.py and test_NAME__*.py."""
    if name == CORE:
        return [str(path) for path in sorted(HERE.glob("test_*.py"))]
    stem = f"test_{name.replace('-', '_')}"
    return [str(path) for path in sorted(FOLDER.glob("test_*.py")) if path.stem == stem or path.stem.startswith(f"{stem}__")]


def run(name: str, options: argparse.Namespace) -> int:
    """Runs the tests of one framework, or of the core, and returns the exit code."""
    python = environment(name)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["PATH"] = os.pathsep.join([str(python.parent), env.get("PATH", os.defpath)])
    if options.wheel:
        # The wheel as a user installs it; it needs nothing from an index.
        install = ["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall", str(options.wheel)]
        subprocess.run([str(python), *install], check=True)
        scripts = python.parent
    else:
        place = overlay(name, options.built)
        env["PYTHONPATH"] = str(place)
        scripts = place / "bin"
    if name == CORE:
        env["DELOOP_BINARY"] = str(scripts / COMMAND)
    (TARGET / "bindings" / "rows" / f"{name}.json").unlink(missing_ok=True)
    pytest = [str(python), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *tests(name)]
    with tempfile.TemporaryDirectory(prefix="deloop-tests-", ignore_cleanup_errors=True) as scratch:
        done = subprocess.run([*pytest, f"--basetemp={scratch}/tests"], env=env, cwd=REPO)
    if options.built:
        # Its links would keep old builds on the disk.
        shutil.rmtree(place)
    return 1 if done.returncode else 0


def main() -> int:
    """Runs the tests of the named frameworks, or of all."""
    parser = argparse.ArgumentParser(description="Run the tests of the core, and the adapters' against the real frameworks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(names())} [default: all]")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--wheel", type=Path, help="the wheel to install and test")
    what.add_argument("--built", type=Path, help="the folder with the extension and the command that cargo built")
    what.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names()))
        return 0
    unknown = set(options.names) - set(names())
    if unknown:
        parser.error(f"unknown framework: {', '.join(sorted(unknown))} (there are: {', '.join(names())})")
    codes: list[int] = []
    for name in options.names or names():
        try:
            codes.append(run(name, options))
        except NotThereError as missing:
            print(f"not run: {missing}", flush=True)
            codes.append(2)
        else:
            print(f"{name}: {['passed', 'FAILED'][codes[-1]]}", flush=True)
    return 1 if 1 in codes else max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
