"""APIs on loopback that answer as a test tells them, and remember what they were asked."""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A status, a content type and a body.
Reply = tuple[int, str, bytes]


def as_json(value: dict, code: int = 200) -> Reply:
    return code, "application/json", json.dumps(value).encode()


def as_events(events: list[dict], named: bool = False) -> Reply:
    lines = [(f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events]
    return 200, "text/event-stream", "".join(lines).encode()


class Loopback:
    """A server on a free port. What is asked with POST goes to `respond`."""

    #: What is answered to everything else.
    otherwise: Reply = (200, "text/plain", b"")

    def __init__(self):
        #: What the model says when it is asked to summarize.
        self.summary = "Nothing in particular."
        #: What it says otherwise.
        self.words = "Understood."
        #: How many tokens a request is said to take, until the conversation was summarized.
        self.tokens = 100
        #: Each request, whether it asks for a summary, and what it holds of the conversation.
        self.requests: list[dict] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(*api.otherwise)

            do_GET = do_HEAD

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                self.answer(*api.respond(self.path.split("?")[0], body))

            def answer(self, code, kind, body):
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def respond(self, path: str, body: dict) -> Reply:
        raise NotImplementedError

    def remember(self, body: dict, key: str, is_summary: bool, is_turn: bool = True) -> None:
        held = json.dumps(body[key], ensure_ascii=False)
        self.requests.append({"summary": is_summary, "turn": is_turn and not is_summary, "held": held, "body": body})

    def used(self, asks_for_summary: bool) -> int:
        if asks_for_summary:
            self.tokens = 100
        return self.tokens

    def turns(self) -> list[str]:
        """What each request that continues the conversation holds of it, as text."""
        return [request["held"] for request in self.requests if request["turn"]]

    def summaries(self) -> list[str]:
        """The same of each request for a summary."""
        return [request["held"] for request in self.requests if request["summary"]]


class Anthropic(Loopback):
    """Messages, as Claude Code asks for them."""

    def __init__(self):
        super().__init__()
        #: Requests with at least this many messages are refused as too long, summaries excepted.
        self.longest: int | None = None

    def respond(self, path: str, body: dict) -> Reply:
        if path.endswith("/count_tokens"):
            return as_json({"input_tokens": 9})
        return self.reply(body)

    def reply(self, body: dict) -> Reply:
        asks_for_summary = "Respond with TEXT ONLY" in json.dumps(body["messages"][-1])
        self.remember(body, "messages", asks_for_summary, is_turn=bool(body.get("tools")))
        too_long = self.longest is not None and len(body["messages"]) >= self.longest
        if too_long and not asks_for_summary:
            self.longest = None
            message = "prompt is too long: 205000 tokens > 200000 maximum"
            return as_json({"type": "error", "error": {"type": "invalid_request_error", "message": message}}, 400)
        text = f"<analysis>a</analysis><summary>{self.summary}</summary>" if asks_for_summary else self.words
        return 200, "text/event-stream", stream(body["model"], text)


def stream(model: str, text: str) -> bytes:
    """A message of the assistant, as Anthropic streams it."""
    usage = {"input_tokens": 900, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {
        "id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model, "content": [],
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
    return as_events(events, named=True)[2]


class Responses(Loopback):
    """OpenAI's Responses, as Codex asks for them."""

    #: Codex first tries a WebSocket, and goes on at once when it hears this.
    otherwise = (426, "text/plain", b"")

    def respond(self, path: str, body: dict) -> Reply:
        asks_for_summary = "CONTEXT CHECKPOINT COMPACTION" in json.dumps(body["input"][-1])
        self.remember(body, "input", asks_for_summary)
        text = self.summary if asks_for_summary else self.words
        used = self.used(asks_for_summary)
        item = {
            "type": "message", "role": "assistant", "id": f"msg_{len(self.requests)}",
            "content": [{"type": "output_text", "text": text}],
        }
        usage = {
            "input_tokens": used, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": used + 5,
        }
        response = {"id": f"resp_{len(self.requests)}", "usage": usage}
        events = [
            {"type": "response.created", "response": {"id": response["id"]}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": response},
        ]
        return as_events(events, named=True)


class Gemini(Loopback):
    """Google's generateContent, as Gemini CLI asks for it."""

    def respond(self, path: str, body: dict) -> Reply:
        if path.endswith(":countTokens"):
            return as_json({"totalTokens": self.tokens})
        asks_for_summary = "<state_snapshot>" in json.dumps(body.get("systemInstruction", ""))
        self.remember(body, "contents", asks_for_summary, is_turn=bool(body.get("tools")))
        used = self.used(asks_for_summary)
        text = f"<state_snapshot>{self.summary}</state_snapshot>" if asks_for_summary else self.words
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": used, "candidatesTokenCount": 5, "totalTokenCount": used + 5},
            "modelVersion": "gemini-2.5-flash",
        }
        return as_events([answer]) if path.endswith(":streamGenerateContent") else as_json(answer)


class Chat(Loopback):
    """OpenAI's Chat Completions, as opencode asks a compatible server for them."""

    otherwise = (404, "application/json", b"{}")

    def respond(self, path: str, body: dict) -> Reply:
        asks_for_summary = "summar" in json.dumps(body["messages"][-1]).lower() and not body.get("tools")
        self.remember(body, "messages", asks_for_summary, is_turn=bool(body.get("tools")))
        text = self.summary if asks_for_summary else self.words
        used = self.used(asks_for_summary)
        usage = {"prompt_tokens": used, "completion_tokens": 5, "total_tokens": used + 5}
        head = {"id": f"c{len(self.requests)}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        return as_events([head | {"choices": [choice]}, head | {"choices": [end], "usage": usage}])
