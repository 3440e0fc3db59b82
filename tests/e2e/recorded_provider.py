"""A provider with recorded answers: the same question always gets the same answer, streamed or not. It counts what it is
asked, and how much of it is under way."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def recorded_answer(messages: list[dict[str, Any]]) -> str:
    """Right or wrong, by the digest of the last message; a grade where one is asked for."""
    text = json.dumps(messages[-1]["content"])
    number = int(hashlib.sha256(text.encode()).hexdigest(), 16)
    if "GRADE:" in text:
        return f"Thought about it. GRADE: {'CIC'[number % 3]}"
    return f"Thinking {number % 1000}. The answer is {number % 2 + 4}."


class RecordedProvider:
    """Serves for as long as the block lasts."""

    def __init__(self, latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self.questions: list[dict[str, Any]] = []
        self.under_way = 0
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with provider.asked(body):
                    time.sleep(provider.latency_s)
                    kind, content = rendered(body, recorded_answer(body["messages"]))
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that was killed does not wait for its answer."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def asked(self, body: dict[str, Any]) -> _UnderWay:
        self.questions.append(body)
        return _UnderWay(self, self._lock)

    def __enter__(self) -> RecordedProvider:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _UnderWay:
    def __init__(self, provider: RecordedProvider, lock: threading.Lock) -> None:
        self._provider, self._lock = provider, lock

    def __enter__(self) -> None:
        with self._lock:
            self._provider.under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._provider.under_way -= 1


def rendered(body: dict[str, Any], answer: str) -> tuple[str, bytes]:
    base = {"id": "c", "created": 1, "model": body["model"]}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if body.get("stream"):
        delta = {"index": 0, "delta": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        chunks = [{"choices": [delta]}, {"choices": [], "usage": usage}]
        lines = [json.dumps({**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        return "text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
    choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
    return "application/json", json.dumps(
        {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    ).encode()
