"""The rules of `deloop eval` (crates/cli/src/eval), for anything that fires.

`scoreboard.py` judges deloop's own fires by them too and compares with what `deloop eval` says: they must stay the same.
One rule is missing: fires of the same detector and pattern are one alarm however far apart. Other detectors name no pattern.
"""

TOGETHER = 10  # a fire so many turns after the last one of an alarm belongs to it
POSITIVE = {"loop": True, "legit": False, "none": False}  # borderline is left out


def judged(label, fires):
    """How one labelled session came out; `fires` are {"turn", "hard"} in order."""
    positive = POSITIVE[label["label"]]
    onset = label.get("onset_turn")
    earliest = max(0, (onset or 0) - 6)
    last = label.get("last_turn")
    latest = float("inf") if last is None else last + 2
    hits = [f for f in fires if positive and earliest <= f["turn"] <= latest]
    alarms = []
    for fire in fires:
        if alarms and fire["turn"] <= alarms[-1][-1]["turn"] + TOGETHER:
            alarms[-1].append(fire)
        else:
            alarms.append([fire])
    early = [a for a in alarms if a[0]["turn"] < earliest and not any(f in hits for f in a)]
    wrong = [f for a in (early if positive else alarms) for f in a]
    return {
        "label": label,
        "positive": positive,
        "hit": bool(hits),
        "alarm": bool(wrong),
        "hard": any(f["hard"] for f in wrong),
        "delay": hits[0]["turn"] - onset if hits and onset is not None else None,
    }


def score(all):
    count = lambda test: sum(1 for j in all if test(j))  # noqa: E731
    positives, hits = count(lambda j: j["positive"]), count(lambda j: j["hit"])
    alarms = count(lambda j: j["alarm"])
    precision, recall, f1 = rates(hits, alarms, positives)
    low, high = interval(all)
    delays = sorted(j["delay"] for j in all if j["delay"] is not None)
    return {
        "positives": positives,
        "hits": hits,
        "healthy": len(all) - positives,
        "healthy_alarms": count(lambda j: not j["positive"] and j["alarm"]),
        "false_alarms": alarms,
        "false_hard": count(lambda j: j["hard"]),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "f1_low": low,
        "f1_high": high,
        "median_delay": delays[len(delays) // 2] if delays else None,
    }


def rates(hits, alarms, positives):
    share = lambda a, b: a / b if b else 0.0  # noqa: E731
    f1 = share(2 * hits, 2 * hits + alarms + (positives - hits))
    return share(hits, hits + alarms), share(hits, positives), f1


def interval(all):
    """The 95 % interval of F1: 1,000 resamples of the sessions, from the same seed as `deloop eval`."""
    if not all:
        return 0.0, 0.0
    state, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    scores = []
    for _ in range(1000):
        hits = alarms = positives = 0
        for _ in all:
            state ^= state << 13 & mask
            state ^= state >> 7
            state ^= state << 17 & mask
            one = all[state % len(all)]
            positives += one["positive"]
            hits += one["hit"]
            alarms += one["alarm"]
        scores.append(rates(hits, alarms, positives)[2])
    scores.sort()
    return scores[25], scores[974]
