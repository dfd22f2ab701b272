"""Forks of a process whose threads use a guard."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading
import deloop
from deloop._adapter import Adapter, ToolCall

adapter, stop = Adapter(mode="shadow"), threading.Event()
ready = [threading.Event() for _ in range(4)]

def work(number):
    watch, n = adapter.watch("shared"), 0
    while not stop.is_set():
        watch.answered("", [ToolCall(f"{number}-{n}", "read", {"n": n, "text": "x" * 20_000})])
        watch.result(f"{number}-{n}", "y" * 20_000)
        n += 1
        ready[number].set()

def child():
    watch = adapter.watch("shared")
    watch.answered("", [ToolCall("c", "read", {})])
    watch.result("c", "fine")
    adapter.watch("another").answered("", [ToolCall("d", "read", {})])
    assert adapter.guard.sessions >= 2

threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
for thread in threads:
    thread.start()
for event in ready:
    event.wait()
for fork in range(FORKS):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
stop.set()
for thread in threads:
    thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_forked_while_threads_observe_can_observe() -> None:
    program = PROGRAM.replace("FORKS", "60")
    # A child that hangs never ends, so the limit says only that it hung.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr
