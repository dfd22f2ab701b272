"""docs/peers.md: the table and what it means."""

from collections import Counter
from pathlib import Path

TEXT = Path(__file__).with_name("page.md")

# Caveats about the labels, by who assigned them.
LIMITS = {
    "two AI readers": """\
- The labels are by two independent AI readers with one rubric, not by people. If both readers make the same mistake, this page
  repeats it.
- Nearly all of the loops come from weak models, in one agent (SWE-agent), in one language (Java). Strong models in modern agents loop
  less often and differently. The few loops from elsewhere prove little by themselves.
- deloop was developed on these sessions, and the peers weren't. Its row is an upper bound, so expect less on new sessions. On
  those in `corpus/`, which are written to be hard, every detector does worse, including deloop:
  `bash bench/peers/run corpus/labels.jsonl --out corpus.md`.""",
    "its author": """\
- The authors of deloop wrote and labelled these sessions. They show what deloop is meant for, not how often such loops
  occur.""",
}


def table(rows):
    yield "| detector | version | precision | recall | F1 | 95 % of F1 | false alarms | early | false hard | delay | ms |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in sorted(rows, key=lambda row: -row.get("score", {"f1": -1})["f1"]):
        yield line(row)


def line(row):
    start = f"| {row['name']} | {row['version']} |"
    if "problem" in row:
        return f"{start} {row['problem'].replace('|', '/')} | | | | | | | | |"
    s = row["score"]
    early = s["false_alarms"] - s["healthy_alarms"]
    delay = "-" if s["median_delay"] is None else s["median_delay"]
    return (
        f"{start} {s['precision']:.2f} | {s['recall']:.2f} | {s['f1']:.2f} | {s['f1_low']:.2f} to {s['f1_high']:.2f} "
        f"| {s['healthy_alarms']} of {s['healthy']} | {early} | {s['false_hard']} | {delay} | {row['ms']:.1f} |"
    )


def page(rows, labels):
    counts = Counter(label["label"] for label in labels)
    formats = Counter((label["path"].split("/")[0], label["label"] == "loop") for label in labels)
    share = lambda loop: ", ".join(f"{n} {name}" for (name, is_loop), n in sorted(formats.items()) if is_loop == loop)  # noqa: E731
    text = TEXT.read_text()
    values = {
        "TABLE": "\n".join(table(rows)),
        "LOOPS": f"{counts['loop']} loops ({share(True)})",
        "LIMITS": "\n".join(LIMITS.get(by, f"- The labels are by {by}.") for by in sorted({label.get("by", "an unknown hand") for label in labels})),
        "STEP": f"{1 / max(1, counts['loop']):.2f}",
        "HEALTHY": f"{counts['legit'] + counts['none']} healthy sessions ({share(False)}), of which {counts['legit']} "
        "repeat visibly and make progress",
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
