"""Installs each peer from its own package, at its pinned version, into a folder of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
UV = "0.13.7"


class CouldNot(Exception):
    """Why a peer cannot be installed or run, in one line."""


def command(peer, folder):
    """The command that runs a peer's adapter, and its environment; installs what is not there yet."""
    adapter = str(HERE / "adapters" / peer["adapter"])
    if peer["from"] == "npm":
        modules = node_modules(peer, folder)
        return ["node", adapter], {"PEERS_NODE_MODULES": str(modules)}
    # -P: an adapter has the name of what it adapts, and must not be imported in its place.
    return [str(venv(peer, folder)), "-P", adapter], {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}


def venv(peer, folder):
    place = folder / f"{peer['package']}-{peer['version']}"
    python = place / "bin" / "python"
    if (place / "installed").exists():
        return python
    uv = [str(tool_uv(folder))]
    wanted = os.environ.get("PEERS_PYTHON", f">={peer['python']}")
    say(uv + ["venv", "--quiet", "--clear", "--python", wanted, str(place)])
    packages = [f"{peer['package']}=={peer['version']}", *peer.get("with", [])]
    say(uv + ["pip", "install", "--quiet", "--python", str(python), *packages])
    (place / "installed").touch()
    return python


def tool_uv(folder):
    found = shutil.which("uv")
    if found:
        return Path(found)
    place = folder / "uv"
    if not (place / "bin" / "uv").exists():
        say([sys.executable, "-m", "venv", str(place)])
        say([str(place / "bin" / "pip"), "install", "--quiet", f"uv=={UV}"])
    return place / "bin" / "uv"


def node_modules(peer, folder):
    place = folder / f"npm-{peer['package'].rsplit('/', 1)[-1]}-{peer['version']}"
    if not (place / "installed").exists():
        if not shutil.which("npm"):
            raise CouldNot("npm is not there")
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}\n')
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        say(["npm", "install", *quiet, f"{peer['package']}@{peer['version']}"], cwd=place)
        (place / "installed").touch()
    return place / "node_modules"


def say(command, cwd=None):
    print("  " + " ".join(command), file=sys.stderr)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise CouldNot("; ".join(lines[:2]) or f"{command[0]} ended with {done.returncode}")
