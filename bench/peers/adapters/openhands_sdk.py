"""openhands-sdk: a `ConversationState` with the session's events, and the `StuckDetector` that a conversation asks before
each step: first for the nudge (soft), then whether it is stuck (hard: the run ends as STUCK).

A result that failed is an observation, as in the SDK, where only a call that could not be carried out is an
`AgentErrorEvent`; --errors makes every failed result one. The text of a turn is the thought of its first action;
--no-thoughts leaves it out, for the detector takes a call with another thought for another call.
"""

import json
import os
import sys
import tempfile
import uuid

os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"
os.environ["LOG_LEVEL"] = "ERROR"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from openhands.sdk import LLM, Agent, LocalWorkspace, Message, TextContent  # noqa: E402
from openhands.sdk.conversation.state import ConversationState  # noqa: E402
from openhands.sdk.conversation.stuck_detector import StuckDetector  # noqa: E402
from openhands.sdk.event import ActionEvent, AgentErrorEvent, MessageEvent, ObservationEvent  # noqa: E402
from openhands.sdk.llm import MessageToolCall  # noqa: E402
from openhands.sdk.tool import Action, Observation  # noqa: E402

from protocol import serve  # noqa: E402

ERRORS = "--errors" in sys.argv
THOUGHTS = "--no-thoughts" not in sys.argv
AGENT = Agent(llm=LLM(model="none", usage_id="none"), tools=[])
FOLDER = tempfile.mkdtemp(prefix="deloop-peers-")


class CallAction(Action):
    arguments: str


class CallObservation(Observation):
    pass


class Peer:
    def __init__(self):
        workspace = LocalWorkspace(working_dir=FOLDER)
        self.state = ConversationState.create(id=uuid.uuid4(), agent=AGENT, workspace=workspace)
        self.detector = StuckDetector(self.state)

    def message(self, source, role, text):
        content = Message(role=role, content=[TextContent(text=text)])
        self.state.append_event(MessageEvent(source=source, llm_message=content))

    def user(self, text, human):
        self.message("user" if human else "environment", "user", text)

    def turn(self, turn):
        if not turn.calls:
            self.message("agent", "assistant", turn.text)
        asked = []
        for place, call in enumerate(turn.calls):
            arguments = json.dumps(call.args, sort_keys=True)
            id = str(uuid.uuid4())
            thought = [TextContent(text=turn.text)] if THOUGHTS and place == 0 and turn.text else []
            event = ActionEvent(
                thought=thought,
                action=CallAction(arguments=arguments),
                tool_name=call.tool,
                tool_call_id=id,
                tool_call=MessageToolCall(id=id, name=call.tool, arguments=arguments, origin="completion"),
                llm_response_id=f"turn-{turn.number}",
            )
            self.state.append_event(event)
            asked.append((call, event))
        for call, event in asked:
            if call.output is None:
                continue
            about = {"tool_name": call.tool, "tool_call_id": event.tool_call_id}
            if call.failed and ERRORS:
                self.state.append_event(AgentErrorEvent(error=call.output, **about))
            else:
                seen = CallObservation(content=[TextContent(text=call.output)], is_error=call.failed)
                self.state.append_event(ObservationEvent(observation=seen, action_id=event.id, **about))
        nudge = self.detector.get_action_error_nudge()
        if nudge is not None:
            self.message("environment", "user", nudge)
            yield False, "same action, same error"
        elif self.detector.is_stuck():
            yield True, "stuck"


serve(Peer)
