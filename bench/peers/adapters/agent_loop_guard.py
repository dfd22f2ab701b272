"""agent-loop-guard: each call and its output to `LoopGuard.check`. WARN is soft, STOP and ESCALATE are hard.

Its edit distance is plain Python and takes seconds a call on outputs of 2,000 characters, hours for a corpus, so that of
rapidfuzz stands in for it: the same numbers, sooner. --own-distance leaves it as it is.
"""

import sys

from loop_guard import Action, LoopGuard, similarity
from rapidfuzz.distance import Levenshtein

from protocol import serve


def distance(one, other):
    return Levenshtein.distance(one, other) / max(len(one), len(other), 1)


if "--own-distance" not in sys.argv:
    similarity.normalized_edit_distance = distance


class Peer:
    def __init__(self):
        self.guard = LoopGuard()

    def user(self, text, human):
        pass

    def turn(self, turn):
        for call in turn.calls:
            args = call.args if isinstance(call.args, (dict, str)) else str(call.args)
            decision = self.guard.check(tool=call.tool, args=args, output=call.output)
            if decision.action != Action.CONTINUE:
                yield decision.is_loop, decision.strategy


serve(Peer)
