"""browser-use: the agent's `ActionLoopDetector`, in the order of `Agent.step`: actions after a step, then the page and the
nudge before the next. It only ever nudges. Other agents have no page; with --pages, what came back stands in for it.
"""

import os
import sys

os.environ["ANONYMIZED_TELEMETRY"] = "false"
os.environ["BROWSER_USE_SETUP_LOGGING"] = "false"

from browser_use.agent.views import ActionLoopDetector  # noqa: E402

from protocol import serve  # noqa: E402

PAGES = "--pages" in sys.argv
# `Agent` does not record these.
EXEMPT = {"wait", "done", "go_back"}


class Peer:
    def __init__(self):
        self.detector = ActionLoopDetector()

    def user(self, text, human):
        pass

    def turn(self, turn):
        for call in turn.calls:
            if call.tool not in EXEMPT:
                self.detector.record_action(call.tool, call.args if isinstance(call.args, dict) else {})
        if PAGES and turn.calls:
            page = "\n".join(call.output or "" for call in turn.calls)
            self.detector.record_page_state("", page, 0)
        if self.detector.get_nudge_message():
            seen = self.detector
            yield False, f"action x{seen.max_repetition_count}, page x{seen.consecutive_stagnant_pages}"


serve(Peer)
