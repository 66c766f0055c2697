"""A provider on loopback: OpenAI's two wires and Anthropic's, with a window that it enforces."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import compact


class Provider:
    """Answers "ok", or refuses what breaks a rule or is larger than ``window``; remembers requests."""

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.requests: list[dict[str, Any]] = []
        self.refused: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = provider.answer(self.path.partition("?")[0], body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Provider:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        wire = {"/v1/messages": "anthropic", "/v1/responses": "openai-responses"}.get(path, "openai-chat")
        list_key = "input" if wire == "openai-responses" else "messages"
        if not isinstance(body.get(list_key), list):
            return 200, {"object": "list", "data": []}
        broken = compact.validate(body, wire)
        tokens = compact.account(body[list_key], codec=compact.Codec(wire)).total
        if broken:
            self.refused.append(str(broken[0]))
            return 400, {"error": {"message": str(broken[0]), "type": "invalid_request_error"}}
        if self.window is not None and tokens > self.window:
            self.refused.append("too long")
            return 400, _too_long(wire, tokens, self.window)
        self.requests.append(body)
        return 200, _ok(wire, tokens)


def _too_long(wire: str, tokens: int, window: int) -> dict[str, Any]:
    if wire == "anthropic":
        message = f"prompt is too long: {tokens} tokens > {window} maximum"
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    message = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    return {"error": {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}}


def _ok(wire: str, tokens: int) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    if wire == "anthropic":
        content = [{"type": "text", "text": "ok"}]
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
        }
    if wire == "openai-responses":
        said = [{"type": "output_text", "text": "ok", "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": said}
        return {
            "id": "resp_1", "object": "response", "created_at": 0, "status": "completed", "model": "m",
            "output": [item], "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }
    message = {"role": "assistant", "content": "ok"}
    return {
        "id": "c1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1},
    }
