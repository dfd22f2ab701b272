"""Builds the wheel: the extension, and the command `deloop` as a script of the package.

    python bindings/python/build_wheel.py --out target/wheels

Needs cargo and maturin. `--command FILE` takes a command that is already built, and `--profile` another cargo profile than
`dist`.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LARGEST = 15_000_000
# A regular file that everyone may run.
RUNNABLE = 0o100755 << 16


def run(arguments: list[str], folder: Path) -> None:
    print("$", " ".join(arguments), flush=True)
    subprocess.run(arguments, cwd=folder, check=True)


def build_command(profile: str) -> Path:
    run(["cargo", "build", "--profile", profile, "--package", "deloop", "--bin", "deloop"], ROOT)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    folder = "debug" if profile == "dev" else profile
    return target / folder / ("deloop.exe" if os.name == "nt" else "deloop")


def build_extension(profile: str, out: Path) -> Path:
    before = set(out.glob("*.whl"))
    for wheel in before:
        wheel.unlink()
    run([sys.executable, "-m", "maturin", "build", "--profile", profile, "--out", str(out)], HERE)
    (wheel,) = out.glob("*.whl")
    return wheel


def add_command(wheel: Path, command: Path) -> None:
    """Adds the command to the scripts of a wheel, which `pip` puts on the PATH as they are."""
    with zipfile.ZipFile(wheel) as source:
        parts = [(info, source.read(info)) for info in source.infolist()]
    (record_name,) = (info.filename for info, _ in parts if info.filename.endswith(".dist-info/RECORD"))
    place = record_name.replace(".dist-info/RECORD", ".data/scripts/") + command.name
    program = command.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(program).digest()).rstrip(b"=").decode()
    finished = wheel.with_suffix(".tmp")
    with zipfile.ZipFile(finished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for info, data in parts:
            if info.filename != record_name:
                out.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
                continue
            script = zipfile.ZipInfo(place, date_time=info.date_time)
            script.external_attr = RUNNABLE
            out.writestr(script, program, zipfile.ZIP_DEFLATED, 9)
            rows = list(csv.reader(io.StringIO(data.decode())))
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([[place, f"sha256={digest}", str(len(program))], *rows])
            out.writestr(info, text.getvalue(), zipfile.ZIP_DEFLATED, 9)
    finished.replace(wheel)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the wheel of deloop, with the command in it.")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "wheels")
    parser.add_argument("--profile", default="dist", help="the cargo profile (default: dist)")
    parser.add_argument("--command", type=Path, help="a command that is already built")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    command = options.command or build_command(options.profile)
    wheel = build_extension(options.profile, options.out.resolve())
    add_command(wheel, command)
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB, with a command of {command.stat().st_size / 1e6:.1f} MB")
    if options.profile == "dist" and size > LARGEST:
        print(f"the wheel is larger than {LARGEST / 1e6:.0f} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
