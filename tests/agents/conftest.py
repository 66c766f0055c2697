"""Agents as their makers ship them, with a home of their own, against an API that a test scripts."""

import json
import os
import pathlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Api:
    """An Anthropic API on loopback: answers as told, and remembers what it was asked."""

    def __init__(self):
        self.requests: list[dict] = []
        self.summary = "Nothing in particular."
        #: Requests with at least this many messages are refused as too long, summaries excepted.
        self.longest: int | None = None
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(200, b"", "text/plain")

            do_GET = do_HEAD

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
                if self.path.split("?")[0].endswith("/count_tokens"):
                    return self.answer(200, json.dumps({"input_tokens": 9}).encode())
                code, kind, answer = api.reply(body)
                self.answer(code, answer, kind)

            def answer(self, code, body, kind="application/json"):
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, body: dict) -> tuple[int, str, bytes]:
        last = json.dumps(body["messages"][-1])
        asks_for_summary = "Respond with TEXT ONLY" in last
        self.requests.append({"summary": asks_for_summary, "body": body})
        too_long = self.longest is not None and len(body["messages"]) >= self.longest
        if too_long and not asks_for_summary:
            self.longest = None
            message = "prompt is too long: 205000 tokens > 200000 maximum"
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
            return 400, "application/json", json.dumps(error).encode()
        text = f"<analysis>a</analysis><summary>{self.summary}</summary>" if asks_for_summary else "Understood."
        return 200, "text/event-stream", stream(body["model"], text)

    def turns(self) -> list[str]:
        """The messages of each request that continues the conversation, as text."""
        turns = [r["body"]["messages"] for r in self.requests if not r["summary"] and r["body"].get("tools")]
        return [json.dumps(messages, ensure_ascii=False) for messages in turns]

    def summaries(self) -> list[str]:
        """The same of each request for a summary."""
        return [json.dumps(r["body"]["messages"], ensure_ascii=False) for r in self.requests if r["summary"]]


def stream(model: str, text: str) -> bytes:
    usage = {"input_tokens": 900, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


@pytest.fixture
def api():
    api = Api()
    yield api
    api.server.shutdown()


@pytest.fixture
def program() -> str:
    return os.environ.get("COMPACTCTL", str(ROOT / "target/debug/compactctl"))


def from_npm(pattern: str) -> pathlib.Path:
    """A program among the packages that `cargo xtask test` fetched."""
    folder = os.environ.get("COMPACT_AGENTS")
    found = sorted(pathlib.Path(folder).glob(f"node_modules/{pattern}")) if folder else []
    if found:
        return found[0]
    reason = f"{pattern} is not there: `cargo xtask test` fetches it and says why it could not"
    if os.environ.get("CI", "") not in ("", "0", "false"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def claude_from_npm() -> list[str]:
    return [str(from_npm("@anthropic-ai/claude-code-*/claude"))]


@pytest.fixture
def codex_program() -> list[str]:
    return [str(from_npm("@openai/codex-*/vendor/*/bin/codex"))]


@pytest.fixture
def gemini_program() -> list[str]:
    return ["node", str(from_npm("@google/gemini-cli/bundle/gemini.js"))]


@pytest.fixture
def opencode_program() -> list[str]:
    return [str(from_npm("opencode-*/bin/opencode"))]
