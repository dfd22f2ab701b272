"""A fake model on loopback: OpenAI Chat Completions, OpenAI Responses and Anthropic Messages, streamed or whole.

A script decides what it answers, every request is recorded, and a request whose messages are in an order that
the provider would refuse gets a 400 with the reason. In a test:

    with FakeModel(same_failing_call()) as model:
        ...  # point the client at model.url
    assert model.refused == []

As a process, for tests in other languages:

    python fake_model.py --port 0 --script same-failing-call

prints one line of JSON, `{"url": ..., "port": ...}`. `GET /_requests` returns what was recorded, `POST /_reset`
forgets it.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from model_order import wrong_order
from model_wire import ROUTES, Answer, Entry, Reply, conversation, response_items, tool_names


@dataclass
class Failure:
    """Makes the fake model answer with an HTTP error, as an overloaded provider does."""

    status: int = 500
    message: str = "the fake model was told to fail"


@dataclass
class Request:
    """Holds one request to the model, as recorded."""

    number: int
    api: str
    path: str
    body: dict[str, Any]
    raw: bytes
    conversation: list[Entry]
    headers: dict[str, str]
    status: int = 200
    reason: str | None = None
    tools: list[str] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """Counts the model's answers in the conversation so far."""
        return sum(entry["role"] == "assistant" for entry in self.conversation)

    @property
    def results(self) -> list[str]:
        """Lists the texts of all tool results in the conversation."""
        return [entry["text"] for entry in self.conversation if entry["role"] == "tool"]

    @property
    def user(self) -> str:
        """Returns the last user text."""
        return next((entry["text"] for entry in reversed(self.conversation) if entry["role"] == "user"), "")

    def shows(self, text: str) -> bool:
        """Tells whether a text stands anywhere in the conversation."""
        return any(text in entry["text"] for entry in self.conversation)

    def to_dict(self) -> dict[str, Any]:
        """Returns what `GET /_requests` shows of this request."""
        shown = ("number", "api", "path", "body", "conversation", "headers", "status", "reason", "tools")
        return {name: getattr(self, name) for name in shown}


Script = Callable[[Request], Reply | Failure | str]


class FakeModel:
    """Serves the model APIs on a loopback port until closed."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._stored: dict[str, list[Any]] = {}
        self._calls = 0
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.root = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.root}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeModel:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def refused(self) -> list[str]:
        """Lists the reasons of all requests that were in an order no provider accepts."""
        return [request.reason for request in self.requests if request.reason]

    @property
    def env(self) -> dict[str, str]:
        """Returns the environment variables that point the providers' clients at this server."""
        return {
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_KEY": "fake",
            "ANTHROPIC_BASE_URL": self.root,
            "ANTHROPIC_API_KEY": "fake",
        }

    def reset(self) -> None:
        """Forgets the recorded requests."""
        with self._lock:
            self.requests.clear()

    def answer(self, api: str, path: str, raw: bytes, headers: dict[str, str]) -> tuple[Request, Answer | Failure]:
        """Records a request, checks its order and asks the script for an answer."""
        body = json.loads(raw)
        earlier = self._stored.get(body.get("previous_response_id") or "", [])
        with self._lock:
            number = len(self.requests)
            request = Request(number, api, path, body, raw, [], headers, tools=tool_names(body))
            self.requests.append(request)
        request.reason = wrong_order(api, body, earlier)
        if request.reason:
            request.status = 400
            return request, Failure(400, request.reason)
        request.conversation = conversation(api, body, earlier)
        said = self.script(request)
        if isinstance(said, Failure):
            request.status = said.status
            return request, said
        reply = Reply(said) if isinstance(said, str) else said
        with self._lock:
            first, self._calls = self._calls + 1, self._calls + len(reply.calls)
        answer = Answer(api, body, reply, number, first)
        if api == "responses":
            self._stored[f"resp_{number:05d}"] = response_items(body, earlier) + answer.output_items()
        return request, answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are written one after the other: without this, each answer waits 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    model: FakeModel

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer: Answer) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in answer.events():
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def _read(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while length := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.path == "/_requests":
            return self._send([request.to_dict() for request in self.model.requests])
        if "/models" in self.path:
            return self._send({"object": "list", "data": [{"id": "fake-model", "object": "model"}]})
        self._send({"error": {"message": f"no route {self.path}"}}, 404)

    def do_POST(self) -> None:
        raw = self._read()
        path = self.path.split("?")[0]
        if path == "/_reset":
            self.model.reset()
            return self._send({})
        if path.endswith("/count_tokens"):
            return self._send({"input_tokens": 10})
        api = next((api for end, api in ROUTES.items() if path.endswith(end)), None)
        if api is None:
            return self._send({"error": {"message": f"no route {path}"}}, 404)
        try:
            request, answer = self.model.answer(api, path, raw, {k.lower(): v for k, v in self.headers.items()})
        except Exception as wrong:  # a broken script must not look like a slow model
            return self._send({"error": {"message": f"fake model: {wrong!r}", "type": "fake_model"}}, 418)
        if isinstance(answer, Failure):
            kind = "invalid_request_error" if answer.status == 400 else "api_error"
            return self._send({"type": "error", "error": {"type": kind, "message": answer.message}}, answer.status)
        if request.body.get("stream"):
            return self._stream(answer)
        self._send(answer.whole())


def main() -> None:
    """Runs the fake model as a process until stdin closes or it is killed."""
    from model_scripts import NAMED

    parser = argparse.ArgumentParser(description="A fake model on loopback that enforces the providers' message order.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", choices=sorted(NAMED), default="same-failing-call")
    parser.add_argument("--tool", help="the tool to call [default: the first one offered]")
    parser.add_argument("--args", type=json.loads, help="the arguments of the call, as JSON")
    parser.add_argument("--max", type=int, help="answer with text after this many turns of a conversation")
    options = parser.parse_args()
    given = {"tool": options.tool, "args": options.args, "turns": options.max}
    model = FakeModel(NAMED[options.script](**{name: value for name, value in given.items() if value is not None}), options.port)
    print(json.dumps({"url": model.url, "root": model.root, "port": model.port}), flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    import fake_model  # the scripts import it too: one module, not two

    fake_model.main()
