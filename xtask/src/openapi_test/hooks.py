"""What schemathesis doesn't know about the server by itself."""

import json
import os
from urllib.parse import unquote

import requests
import schemathesis
from requests.adapters import HTTPAdapter

KEY = os.environ.get("DELOOP_TEST_KEY")
send_request = HTTPAdapter.send


def send(adapter, *arguments, **options):
    """Ends a stream of events behind its headers: its body never ends."""
    response = send_request(adapter, *arguments, **options)
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        response.close()
        response._content, response._content_consumed = b"", True
    return response


HTTPAdapter.send = send


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """Writes a list as one JSON value per line, and text as it is."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, list):
        return "\n".join(json.dumps(item) for item in value).encode()
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes the session or the swarm that a request names exist. Otherwise nearly all of them would be unknown.

    Not for the phase `coverage`, which tests unknown ones, and `stateful`, which tests what was deleted before.
    """
    names = [case.path_parameters.get(name) for name in ("session", "swarm")]
    name = next((unquote(name) for name in names if isinstance(name, str)), None)
    phase = case.meta.phase.name.value if case.meta else "stateful"
    if name is None or phase in ("coverage", "stateful"):
        return
    step = {"type": "call", "session": name, "swarm": name, "tool": "bash", "args": {"command": "ls"}}
    project = case.query.get("project") if case.query else None
    requests.post(
        case.operation.base_url.rstrip("/") + "/v1/steps",
        params={"project": project} if isinstance(project, str) else {},
        data=json.dumps(step),
        headers={"Authorization": f"Bearer {KEY}"} if KEY else {},
        timeout=10,
    )
