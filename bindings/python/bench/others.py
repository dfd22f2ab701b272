"""Loop detectors of other projects, on the same calls. Each runs in an environment of its own, because their dependencies
exclude each other: `python others.py NAME < calls.json` prints microseconds per call.

A detector gets each call with a result, because some of them compare results. Only its own check is measured, not the
objects of its project that are made for it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# The package of each detector, with the version that was measured.
PACKAGES = {
    "OpenHands StuckDetector": "openhands-sdk==1.58.0",
    "browser-use ActionLoopDetector": "browser-use==0.13.14",
    "trajectory-fuse AgentFuse": "trajectory-fuse==0.3.0",
}
SIZES = (20, 100, 500)
RESULT = "no such file or directory"

Check = Callable[[], object]
Enter = Callable[[dict[str, Any]], Check]


def openhands() -> Enter:
    """Appends the action and its observation to a conversation in memory; `is_stuck` is the check."""
    # Otherwise the package asks the network for prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import tempfile
    import uuid

    from openhands.sdk import LLM, Agent
    from openhands.sdk.conversation.state import ConversationState
    from openhands.sdk.conversation.stuck_detector import StuckDetector
    from openhands.sdk.event import ActionEvent, ObservationEvent
    from openhands.sdk.llm import MessageToolCall, TextContent
    from openhands.sdk.tool.schema import Action, Observation
    from openhands.sdk.workspace import LocalWorkspace

    class BashAction(Action):
        command: str
        description: str
        timeout: int

    class BashObservation(Observation):
        text: str

    agent = Agent(llm=LLM(model="gpt-4o", api_key="none", usage_id="bench"), tools=[])
    workspace = LocalWorkspace(working_dir=tempfile.mkdtemp())
    state = ConversationState.create(id=uuid.uuid4(), agent=agent, workspace=workspace)
    detector = StuckDetector(state)

    def enter(call: dict[str, Any]) -> Check:
        arguments = json.dumps(call["args"])
        tool_call = MessageToolCall(id=call["id"], name=call["tool"], arguments=arguments, origin="completion")
        action = ActionEvent(
            thought=[TextContent(text="")],
            action=BashAction(**call["args"]),
            tool_name=call["tool"],
            tool_call_id=call["id"],
            tool_call=tool_call,
            llm_response_id=call["id"],
        )
        observation = ObservationEvent(
            observation=BashObservation(text=RESULT),
            action_id=action.id,
            tool_name=call["tool"],
            tool_call_id=call["id"],
        )
        state.append_event(action)
        state.append_event(observation)
        return detector.is_stuck

    return enter


def browser_use() -> Enter:
    """Recording the action and asking for a message is the check."""
    from browser_use.agent.views import ActionLoopDetector

    detector = ActionLoopDetector()

    def enter(call: dict[str, Any]) -> Check:
        def check() -> object:
            detector.record_action(call["tool"], call["args"])
            return detector.get_nudge_message()

        return check

    return enter


def trajectory_fuse() -> Enter:
    """Checking the call before it runs and observing it afterwards is the check."""
    from trajectory_fuse import Action, AgentFuse

    fuse = AgentFuse()

    def enter(call: dict[str, Any]) -> Check:
        action = Action(call["tool"], call["args"], result=RESULT, success=True)

        def check() -> object:
            fuse.check(call["tool"], call["args"])
            return fuse.observe(action)

        return check

    return enter


DETECTORS: dict[str, Callable[[], Enter]] = {
    "OpenHands StuckDetector": openhands,
    "browser-use ActionLoopDetector": browser_use,
    "trajectory-fuse AgentFuse": trajectory_fuse,
}


def cost(prepare: Callable[[], Enter], calls: list[dict[str, Any]], rounds: int = 5) -> float:
    """Returns what the check takes per call, in microseconds: the sum of the shortest times of each call, over all rounds."""
    shortest = [float("inf")] * len(calls)
    for _ in range(rounds):
        enter = prepare()
        for at, call in enumerate(calls):
            check = enter(call)
            start = time.perf_counter()
            check()
            shortest[at] = min(shortest[at], time.perf_counter() - start)
    return sum(shortest) / len(calls) * 1e6


def main() -> None:
    logging.disable(logging.CRITICAL)
    calls = json.load(sys.stdin)
    prepare = DETECTORS[sys.argv[1]]
    print(json.dumps({str(size): cost(prepare, calls[:size]) for size in SIZES}))


if __name__ == "__main__":
    main()
