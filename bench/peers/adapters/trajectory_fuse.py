"""trajectory-fuse: each call and its result to `AgentFuse.observe`, which raises; the README's loop breaks there."""

from trajectory_fuse import Action, AgentFuse, DeadlockDetected

from protocol import serve


class Peer:
    def __init__(self):
        self.fuse = AgentFuse()

    def user(self, text, human):
        pass

    def turn(self, turn):
        for call in turn.calls:
            try:
                action = Action(tool=call.tool, args=call.args, result=call.output, success=not call.failed)
                self.fuse.observe(action)
            except DeadlockDetected as found:
                yield True, found.detection.kind.value


serve(Peer)
