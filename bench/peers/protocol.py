"""What an adapter reads and writes.

In: Steps, one JSON object a line, as `deloop steps` prints them; an `end` step (or the end of input) ends a session.
Out: one JSON line a session: {"fires": [{"turn": 3, "hard": false, "why": "…"}], "turns": 9, "calls": 8, "ms": 0.4}.

A peer is a class with two methods: `user(text, human)` for a message to the agent, and `turn(turn)` for what the agent
said and called, with what came back; `turn` yields a (hard, why) for each time it fires. Every agent of a session gets a
peer of its own, as each would have in its own process. `ms` is the time spent in those two methods.
"""

import json
import sys
import time
from dataclasses import dataclass, field


@dataclass
class Call:
    tool: str
    args: object
    id: str | None = None
    output: str | None = None  # None: nothing came back
    failed: bool = False
    answered: bool = False


@dataclass
class Turn:
    number: int  # from 0, over all agents of the session
    text: str
    calls: list[Call] = field(default_factory=list)


@dataclass
class User:
    text: str
    human: bool


def as_text(output):
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def story(steps):
    """(agent, Turn or User) in order, each call with its result: peers look at a turn when its results are in."""
    told, turns = [], {}
    count = 0
    for step in steps:
        agent = (step.get("session"), step.get("agent"))
        kind = step["type"]
        if kind in ("turn", "call"):
            calls = step.get("calls") or [] if kind == "turn" else [step]
            calls = [Call(c["tool"], c.get("args"), c.get("id")) for c in calls]
            turn = Turn(count, step.get("text") or "", calls)
            count += 1
            told.append((agent, turn))
            turns.setdefault(agent, []).append(turn)
        elif kind == "user":
            told.append((agent, User(step.get("text") or "", step.get("origin", "human") == "human")))
        elif kind == "result":
            call = asked(turns.get(agent, []), step.get("id"))
            if call:
                call.answered = True
                call.output = as_text(step.get("output", ""))
                ended = step.get("outcome") or {True: "ok", False: "error"}.get(step.get("ok"))
                call.failed = ended in ("error", "timeout")
    return told


def asked(turns, id):
    """The call that a result answers: by id, else the oldest open one of the latest turn that has any."""
    for turn in reversed(turns):
        for call in turn.calls:
            if not call.answered and (id is None or call.id == id):
                return call
    return None


def judge(new_peer, steps):
    peers, fires, spent, turns, calls = {}, [], 0.0, 0, 0
    for agent, what in story(steps):
        if agent not in peers:
            peers[agent] = new_peer()
        start = time.perf_counter()
        if isinstance(what, User):
            peers[agent].user(what.text, what.human)
            fired = []
        else:
            fired = list(peers[agent].turn(what))
        spent += time.perf_counter() - start
        if isinstance(what, Turn):
            turns, calls = turns + 1, calls + len(what.calls)
            fires += [{"turn": what.number, "hard": hard, "why": why} for hard, why in fired]
    return {"fires": fires, "turns": turns, "calls": calls, "ms": round(spent * 1000, 3)}


def serve(new_peer):
    steps = []
    for line in sys.stdin:
        step = json.loads(line)
        if step["type"] == "end":
            print(json.dumps(judge(new_peer, steps)), flush=True)
            steps = []
        else:
            steps.append(step)
    if steps:
        print(json.dumps(judge(new_peer, steps)), flush=True)
