"""Runs the peers and deloop over labelled sessions and writes the table. Started by `run`; see README.md."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import page
import sessions as corpus_sessions
from install import CouldNot, command
from score import judged, score

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROFILES = ["default", "signature", "doom-loop", "behavioral", "turn-hash", "turn-similarity"]


def main():
    args = arguments()
    deloop = os.environ.get("DELOOP_BIN") or build()
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    sessions = corpus_sessions.read(deloop, args.labels, args.corpus)
    print(f"{len(sessions)} sessions from {args.labels}", file=sys.stderr)
    rows, problems = deloop_rows(deloop, args, sessions)
    for peer in json.loads((HERE / "peers.json").read_text()):
        rows += peer_rows(peer, folder, sessions)
    out = Path(args.out or (folder / "check.md" if args.check else ROOT / "docs" / "peers.md"))
    out.write_text(page.page(rows, [label for label, _ in sessions]))
    (folder / "fires.json").write_text(json.dumps(rows, indent=1))
    print(f"wrote {out}, and every fire to {folder / 'fires.json'}", file=sys.stderr)
    if args.check:
        problems += check(rows)
    for problem in problems:
        print(f"WRONG: {problem}", file=sys.stderr)
    print("\n".join(page.table(rows)))
    return 1 if problems else 0


def arguments():
    parser = argparse.ArgumentParser(prog="bench/peers/run", description=__doc__.splitlines()[0])
    parser.add_argument("labels", nargs="?", help="labels, one JSON object a line; else those of DELOOP_CORPUS, of "
                        "a folder shared/corpus beside the repository, or of corpus/")
    parser.add_argument("--corpus", help="the folder that the labels' paths are relative to; else that of the labels")
    parser.add_argument("--out", help="the page to write; else docs/peers.md")
    parser.add_argument("--check", action="store_true", help="run on sessions of this repository only, and see that every "
                        "peer fires on the stuck one and on no other")
    args = parser.parse_args()
    if args.check:
        args.labels, args.corpus = HERE / "check.jsonl", ROOT
    if not args.labels:
        beside = Path(os.environ.get("DELOOP_CORPUS", ROOT.parent / "shared" / "corpus"))
        args.labels = next((f / "labels.jsonl" for f in (beside, ROOT / "corpus") if (f / "labels.jsonl").exists()), None)
    if not args.labels:
        parser.error("there are no labels: name a file of them, as `deloop eval` takes")
    args.corpus = args.corpus or Path(args.labels).parent
    return args


def build():
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "deloop-cli"], cwd=ROOT, check=True)
    return str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "deloop")


def peer_rows(peer, folder, sessions):
    base = {"package": peer["package"], "version": peer["version"]}
    try:
        run, env = command(peer, folder)
    except CouldNot as why:
        return [{**base, "name": peer["package"], "problem": f"could not be installed: {why}"}]
    lines = "".join(
        "".join(json.dumps(step) + "\n" for step in steps) + '{"type":"end"}\n' for _, steps in sessions
    )
    rows = []
    for row in peer["rows"]:
        print(f"{row['name']} …", file=sys.stderr)
        done = subprocess.run(run + row["options"], input=lines, capture_output=True, text=True, env=os.environ | env)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"fires"')]
        if done.returncode != 0 or len(answers) != len(sessions):
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            rows.append({**base, "name": row["name"], "problem": f"did not run: {why}"})
            continue
        all = [judged(label, answer["fires"]) for (label, _), answer in zip(sessions, answers)]
        times = sorted(answer["ms"] for answer in answers)
        rows.append({**base, "name": row["name"], "score": score(all), "judged": all,
                     "fires": [answer["fires"] for answer in answers],
                     "ms": sum(times) / len(times), "longest_ms": times[-1]})
    return rows


def deloop_rows(deloop, args, sessions):
    """deloop's profiles as `deloop eval` scores them, and what is wrong if our rules say something else."""
    version = subprocess.run([deloop, "--version"], capture_output=True, text=True).stdout.split()[-1]
    names = [part for profile in PROFILES for part in ("--profile", profile)]
    eval = [deloop, "eval", str(args.labels), "--corpus", str(args.corpus), "--labelled-only", "--json", *names]
    done = subprocess.run(eval, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    rows, problems = [], []
    for result in json.loads(done.stdout)["profiles"]:
        told = {**result["all"]["score"], "median_delay": result["all"]["rates"]["median_delay"]}
        fires, seconds = stream(deloop, result["profile"], sessions)
        all = [judged(label, fired) for (label, _), fired in zip(sessions, fires)]
        ours = score(all)
        # What is early depends on patterns, which `deloop stream` does not print.
        for key in ("positives", "hits", "healthy", "healthy_alarms", "recall", "median_delay"):
            value, theirs = ours[key], told[key]
            if theirs != value and not (isinstance(value, float) and abs(theirs - value) < 1e-9):
                problems.append(f"{result['profile']}: {key} is {theirs} in `deloop eval` and {value} here")
        rows.append({"package": "deloop", "version": version, "name": f"deloop, profile `{result['profile']}`",
                     "score": told, "judged": all, "fires": fires, "ms": seconds * 1000 / max(1, len(sessions))})
    return rows, problems


def stream(deloop, profile, sessions):
    """What `deloop stream` does in each session, and how long all of it takes, the start and the JSON included."""
    lines, places = [], []
    for number, (_, steps) in enumerate(sessions):
        turn = 0
        for step in steps:
            turn += step["type"] in ("turn", "call")
            lines.append(json.dumps({**step, "session": f"{number}/{step['session']}"}))
            places.append((number, max(0, turn - 1)))
    start = time.perf_counter()
    done = subprocess.run([deloop, "stream", "--profile", profile, "--mode", "enforce"], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, cwd=HERE)
    seconds = time.perf_counter() - start
    fires = [[] for _ in sessions]
    for (number, turn), line in zip(places, done.stdout.splitlines(), strict=True):
        decision = json.loads(line)
        action, fired = decision["action"], fires[number]
        # A stop stands until the session ends; it fires once.
        if action != "continue" and not (action == "stop" and fired and fired[-1]["why"] == "stop"):
            fired.append({"turn": turn, "hard": action in ("block", "stop"), "why": action})
    return fires, seconds


def check(rows):
    """Every row must catch the stuck session and leave the others alone, or it shows nothing about its peer."""
    for row in rows:
        if "problem" in row:
            yield f"{row['name']} {row['problem']}"
        elif row["package"] != "deloop" or "default" in row["name"]:
            for one in row["judged"]:
                if one["positive"] != one["hit"] or one["alarm"]:
                    yield f"{row['name']}: {one['label']['path']} came out wrong"


if __name__ == "__main__":
    sys.exit(main())
