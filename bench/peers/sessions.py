"""The labelled sessions, as Steps."""

import json
import subprocess
from pathlib import Path

from score import POSITIVE


def read(deloop, labels, corpus):
    """(label, Steps) of every session that counts, in the order of the labels."""
    wanted = [json.loads(line) for line in Path(labels).read_text().splitlines() if line.strip()]
    wanted = [label for label in wanted if label["label"] in POSITIVE]
    files, sessions = {}, []
    for label in wanted:
        if label["path"] not in files:
            files[label["path"]] = steps(deloop, Path(corpus) / label["path"])
        file = files[label["path"]]
        if label.get("id"):
            if label["id"] not in file:
                raise SystemExit(f"{label['path']}: no session `{label['id']}` in it")
            sessions.append((label, file[label["id"]]))
        else:
            sessions.append((label, [step for one in file.values() for step in one]))
    return sessions


def steps(deloop, path):
    """The Steps of a file, by session. A file that holds many runs of one session is still one session."""
    done = subprocess.run([deloop, "steps", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    found = {}
    for line in done.stdout.splitlines():
        step = json.loads(line)
        if step["type"] != "end":
            found.setdefault(step["session"], []).append(step)
    return found
