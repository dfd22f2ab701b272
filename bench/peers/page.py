"""docs/peers.md: the table and what it means."""

from collections import Counter
from pathlib import Path

TEXT = Path(__file__).with_name("page.md")


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
        "HEALTHY": f"{counts['legit'] + counts['none']} healthy sessions ({share(False)}), of which {counts['legit']} "
        "repeat visibly and make progress",
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
