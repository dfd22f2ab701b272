"""Session files, in process and through the command that comes with the package."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from ._deloop import StepFile


def steps(path: str | os.PathLike[str], format: str | None = None) -> StepFile:
    """Iterates over the Steps of a session file of any format, as dicts. The file may be compressed.

    Without a format, the first bytes of the file tell it; `deloop formats` lists the known ones. What can't be read is
    skipped and listed in `notes` of the iterator, once the file is over.
    """
    return StepFile(path, format)


def command() -> str:
    """Returns the path of the command `deloop` that comes with this package.

    Raises FileNotFoundError if the package was built without it and there is none on the PATH.
    """
    import shutil
    import sysconfig
    from importlib import metadata

    name = "deloop.exe" if os.name == "nt" else "deloop"
    places: list[str] = []
    try:
        files = metadata.distribution("deloop").files or []
        places += [str(file.locate()) for file in files if file.name == name and "bin" in str(file).lower()]
        places += [str(file.locate()) for file in files if file.name == name and "scripts" in str(file).lower()]
    except metadata.PackageNotFoundError:
        pass
    places.append(os.path.join(sysconfig.get_path("scripts"), name))
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.abspath(place)
    found = shutil.which("deloop")
    if found is None:
        raise FileNotFoundError(
            "the command `deloop` isn't installed with this package, nor on the PATH; install the package from a wheel"
        )
    return found


def scan(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    *,
    profile: str | None = None,
    format: str | None = None,
    since: str | None = None,
    min_level: str | int | None = None,
    redact: bool = False,
) -> Iterator[dict[str, Any]]:
    """Finds loops in session files and folders with the command `deloop scan`, costliest first.

    Without paths, it scans the sessions of the agents on this machine. Each dict is one of `loops` in the output of
    `deloop scan --json`; `deloop schema scan` describes it. Files that can't be read are skipped, and the logger `deloop`
    gets a warning.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    arguments = [command(), "scan", "--json"]
    options = (("--profile", profile), ("--format", format), ("--since", since), ("--min-level", min_level))
    for option, value in options:
        if value is not None:
            arguments += [option, str(value)]
    if redact:
        arguments.append("--redact")
    return _loops([*arguments, "--", *(os.fspath(path) for path in paths)])


def _loops(arguments: list[str]) -> Iterator[dict[str, Any]]:
    import json
    import logging
    import subprocess

    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    problem = done.stderr.decode("utf-8", "replace").strip()
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(problem or f"`deloop scan` ended with exit code {done.returncode}") from None
    if done.returncode != 0:
        logging.getLogger("deloop").warning("deloop scan: %s", problem)
    yield from report["loops"]
