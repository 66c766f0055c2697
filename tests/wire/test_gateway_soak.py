"""Two gateways on one store, one of which is killed again and again, before a model that enforces its window.

Sessions of every API, with as many calls of tools as chance wants, go through whichever gateway answers. They grow past
the window, fork, go back, are sent twice and are hung up on, some in the middle of an answer. No client hears of an
overflow, no prompt lacks what was said last, holds another session's words or parts a call from its result, and everything
that was archived can be restored. `COMPACT_TRIALS` says how many sessions there are.
"""

import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from conftest import ROOT

SESSIONS = int(os.environ.get("COMPACT_TRIALS") or 12)
WINDOW = 8_000
#: Turns of a session; together they fill the window about three times.
TURNS = 24
#: How long a request is tried, with gateways that are killed meanwhile.
PATIENCE = 300
WORDS = "account balance cursor delta entry figure ground harbour index journal kernel ledger margin number order".split()


class Window:
    """The model: counts, refuses what is too long, and looks for what does not belong there."""

    def __init__(self):
        self.faults: list[str] = []
        self.asked = self.refused = self.views = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                text = self.rfile.read(int(self.headers["content-length"])).decode()
                code, kind, body = model.answer(self.path, text, self.headers["x-newest"])
                try:
                    self.send_response(code)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    # Whoever hangs up does it in the middle.
                    for half in (body[: len(body) // 2], body[len(body) // 2 :]):
                        self.wfile.write(half)
                        self.wfile.flush()
                except OSError:
                    pass  # A gateway was killed, or its client left.

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # A gateway was killed while it waited.

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str, text: str, newest: str | None) -> tuple[int, str, bytes]:
        self.asked += 1
        tokens = len(text) // 4
        if tokens > WINDOW:
            self.refused += 1
            return 400, "application/json", json.dumps(refusal(path, tokens)).encode()
        self.views += "COMPACT-SUMMARY" in text
        families = set(re.findall(r"family-(\d+)", text))
        if len(families) != 1:
            self.faults.append(f"words of {families} in one prompt")
        if "Never delete the table" not in text:
            self.faults.append(f"the rule of {families} is lost")
        if newest and newest not in text:
            self.faults.append(f"what {families} said last is lost")
        if not is_paired(list(WIRES[path][3](json.loads(text)))):
            self.faults.append(f"a call of {families} is not answered")
        return 200, *answer(path, f"Noted for family-{next(iter(families), '?')}.", tokens, '"stream": true' in text)


def refusal(path: str, tokens: int) -> dict:
    if path.endswith("/messages"):
        message = f"prompt is too long: {tokens} tokens > {WINDOW} maximum"
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    if "generateContent" in path:
        message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({WINDOW})."
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    message = f"This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {tokens} tokens."
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "context_length_exceeded"}}


def answer(path: str, words: str, tokens: int, streams: bool) -> tuple[str, bytes]:
    """An answer as each API gives it."""
    if path.endswith("/messages") and streams:
        usage = {"input_tokens": tokens, "output_tokens": 1}
        events = [
            {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
        lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return "text/event-stream", lines.encode()
    if path.endswith("/messages"):
        answer = {"content": [{"type": "text", "text": words}], "usage": {"input_tokens": tokens, "output_tokens": 5}}
    elif path.endswith("/responses"):
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
        answer = {"object": "response", "output": [item], "usage": {"input_tokens": tokens, "output_tokens": 5}}
    elif "generateContent" in path:
        content = {"role": "model", "parts": [{"text": words}]}
        answer = {"candidates": [{"content": content}], "usageMetadata": {"promptTokenCount": tokens}}
    elif streams:
        chunk = {"choices": [{"index": 0, "delta": {"content": words}}]}
        usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 5}}
        return "text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode()
    else:
        answer = {"choices": [{"message": {"content": words}}], "usage": {"prompt_tokens": tokens, "completion_tokens": 5}}
    return "application/json", json.dumps(answer).encode()


def chat_message(role: str, words: str, call: str) -> dict:
    if role == "call":
        function = {"name": TOOL, "arguments": json.dumps({"what": words})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]}
    return {"role": "tool", "tool_call_id": call, "content": words} if role == "result" else {"role": role, "content": words}


def chat_steps(body: dict):
    for message in body["messages"]:
        yield from (("call", call["id"]) for call in message.get("tool_calls") or [])
        if message["content"] is not None:
            yield ("result", message["tool_call_id"]) if message["role"] == "tool" else SPOKEN


def response_item(role: str, words: str, call: str) -> dict:
    if role == "call":
        return {"type": "function_call", "call_id": call, "name": TOOL, "arguments": json.dumps({"what": words})}
    if role == "result":
        return {"type": "function_call_output", "call_id": call, "output": words}
    return {"role": role, "content": words}


def response_steps(body: dict):
    kinds = {"function_call": "call", "function_call_output": "result"}
    for item in body["input"]:
        kind = kinds.get(item.get("type", ""))
        yield (kind, item["call_id"]) if kind else SPOKEN


def message(role: str, words: str, call: str) -> dict:
    if role == "call":
        return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": TOOL, "input": {"what": words}}]}
    if role == "result":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": words}]}
    return {"role": role, "content": words}


def message_steps(body: dict):
    for message in body["messages"]:
        blocks = message["content"]
        for block in blocks if isinstance(blocks, list) else [{"type": "text"}]:
            if block["type"] == "tool_use":
                yield "call", block["id"]
            else:
                yield ("result", block["tool_use_id"]) if block["type"] == "tool_result" else SPOKEN


def content(role: str, words: str, call: str) -> dict:
    part = {
        "call": {"functionCall": {"id": call, "name": TOOL, "args": {"what": words}}},
        "result": {"functionResponse": {"id": call, "name": TOOL, "response": {"output": words}}},
    }.get(role, {"text": words})
    return {"role": "user" if role in ("user", "result") else "model", "parts": [part]}


def content_steps(body: dict):
    for part in (part for content in body["contents"] for part in content["parts"]):
        if "functionCall" in part:
            yield "call", part["functionCall"]["id"]
        else:
            yield ("result", part["functionResponse"]["id"]) if "functionResponse" in part else SPOKEN


SPOKEN = ("said", None)
TOOL = "measure"
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}
#: What each API is sent beside a history, where that stands, how a step of it is written, and how they are read again.
WIRES = {
    "/v1/chat/completions": (
        {"model": "gpt-5", "tools": [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]},
        "messages", chat_message, chat_steps,
    ),
    "/v1/responses": (
        {"model": "gpt-5", "tools": [{"type": "function", "name": TOOL, "parameters": SCHEMA}]},
        "input", response_item, response_steps,
    ),
    "/v1/messages": (
        {"model": "claude-sonnet-4-5", "max_tokens": 1000, "tools": [{"name": TOOL, "input_schema": SCHEMA}]},
        "messages", message, message_steps,
    ),
    "/v1beta/models/gemini-2.5-flash:generateContent": (
        {"tools": [{"functionDeclarations": [{"name": TOOL, "parameters": SCHEMA}]}]}, "contents", content, content_steps,
    ),
}


def is_paired(steps: list[tuple[str, str | None]]) -> bool:
    """Whether each call is answered at once, and nothing is answered that was not called."""
    calls = [at for at, (kind, _) in enumerate(steps) if kind == "call"]
    answered = [steps[at + 1 : at + 2] == [("result", steps[at][1])] for at in calls]
    return all(answered) and len(calls) == sum(kind == "result" for kind, _ in steps)


class Pair:
    """Two gateways, of which at least one runs."""

    def __init__(self, folder: pathlib.Path, url: str):
        self.folder = folder
        self.environment = {
            "HOME": str(folder), "PATH": os.environ["PATH"], "COMPACT_STORAGE_PATH": str(folder / "store"),
            "COMPACT_MAX_CONTEXT_TOKENS": str(WINDOW), "COMPACT_GATEWAY_ANTHROPIC_URL": url,
            "COMPACT_GATEWAY_OPENAI_URL": url, "COMPACT_GATEWAY_GEMINI_URL": url,
        }
        self.program = os.environ.get("COMPACTCTL", str(ROOT / "target/debug/compactctl"))
        self.running = [self.start(), self.start()]
        self.kills = 0

    def start(self) -> tuple[subprocess.Popen, str]:
        process = subprocess.Popen(
            [self.program, "serve", "--listen", "127.0.0.1:0"], env=self.environment, cwd=self.folder,
            stderr=subprocess.PIPE, text=True,
        )
        for line in process.stderr:
            if line.startswith("listening on http://"):
                break
        # Whatever else it says must not fill the pipe.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        return process, line.removeprefix("listening on http://").strip()

    def kill_one(self, chance: random.Random) -> None:
        at = chance.randrange(2)
        self.running[at][0].send_signal(signal.SIGKILL)
        self.running[at][0].wait()
        self.running[at] = self.start()
        self.kills += 1

    def stop(self) -> None:
        for process, _ in self.running:
            process.terminate()
            assert process.wait(120) == 0

    def compactctl(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.program, *arguments], env=self.environment, cwd=self.folder, capture_output=True, text=True
        )

    def restored(self, session: str) -> str:
        """All that a session held; of one whose history went apart, which is refused by name, every compaction's input."""
        done = self.run("restore", session)
        if done.returncode == 0:
            return done.stdout
        assert done.returncode == 2 and "went apart" in done.stderr, f"{session}: {done.stderr}"
        shown = json.loads(self.compactctl("archive", "show", session, "--json"))
        receipts = [made["receipt_id"] for made in shown["compactions"]]
        assert len(receipts) > 1
        return "".join(self.compactctl("restore", receipt) for receipt in receipts)


class Client:
    """A session of an agent."""

    def __init__(self, pair: Pair, number: int):
        self.pair, self.chance = pair, random.Random(number)
        self.family = f"family-{number}"
        self.path = list(WIRES)[number % len(WIRES)]
        self.streams = self.chance.random() < 0.5
        #: How much of the work is calls of tools.
        self.density = self.chance.random()
        self.calls = 0
        self.headers = {"content-type": "application/json"}
        if self.chance.random() < 0.5:
            self.headers["x-compact-session"] = f"session-{number}"
        self.overflows = 0

    def words(self) -> str:
        filler = " ".join(self.chance.choices(WORDS, k=self.chance.randrange(150, 700)))
        return f"Item {uuid.UUID(int=self.chance.getrandbits(128))} of {self.family}: {filler}."

    def run(self) -> int:
        history = [("user", f"We sort {self.family}. Never delete the table {self.family}_rows.", "")]
        for _ in range(TURNS):
            dice = self.chance.random()
            if dice < 0.1 and len(history) > 5:
                history = self.rewound(history)
            if dice > 0.95:
                self.leave(history)
            if 0.85 < dice < 0.9:
                self.send(history)  # The same once more.
            if 0.8 < dice < 0.85:
                self.send([*history, ("assistant", "Noted.", ""), ("user", f"Otherwise: {self.words()}", "")])  # A fork.
            self.send(history)
            history += self.step()
        return self.overflows

    def step(self) -> list[tuple[str, str, str]]:
        """What comes next: a tool's result or a word of the user's."""
        if self.chance.random() < self.density:
            self.calls += 1
            call = f"call_{self.family}_{self.calls}"
            return [("call", f"{self.family} {self.calls}", call), ("result", self.words(), call)]
        return [("assistant", f"Noted for {self.family}.", ""), ("user", self.words(), "")]

    def rewound(self, history) -> list[tuple[str, str, str]]:
        """The history without its last steps."""
        return history[: -2 * self.chance.randrange(1, 3)]

    def body(self, history) -> str:
        beside, place, write, _ = WIRES[self.path]
        stream = {"stream": True} if self.streams and place == "messages" else {}
        return json.dumps(beside | stream | {place: [write(*step) for step in history]})

    def send(self, history) -> None:
        """Sends a history until a gateway answers."""
        body, end = self.body(history), time.monotonic() + PATIENCE
        newest = re.search("Item ([0-9a-f-]{36})", history[-1][1])
        headers = self.headers | ({"x-newest": newest[1]} if newest else {})
        while time.monotonic() < end:
            _, address = self.chance.choice(self.pair.running)
            connection = http.client.HTTPConnection(address, timeout=PATIENCE)
            try:
                connection.request("POST", self.path, body, headers)
                answer = connection.getresponse()
                text = answer.read().decode()
            except (OSError, http.client.HTTPException):
                continue  # It was killed.
            finally:
                connection.close()
            if answer.status == 200:
                assert self.family in text, text
                return
            self.overflows += "too long" in text or "maximum" in text
            assert answer.status < 500, text
            return
        raise TimeoutError(f"no gateway answered {self.family}")

    def leave(self, history) -> None:
        """Sends a history and hangs up."""
        body = self.body(history).encode()
        head = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        host, port = self.chance.choice(self.pair.running)[1].split(":")
        try:
            with socket.create_connection((host, int(port)), 10) as connection:
                connection.sendall(head.encode() + body)
                if self.chance.random() < 0.5:
                    connection.recv(64)
        except OSError:
            pass  # It was killed.


def test_no_client_overflows_and_nothing_is_lost_while_gateways_are_killed(tmp_path):
    model = Window()
    pair = Pair(tmp_path, model.url)
    chance = random.Random(1)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(Client(pair, number).run) for number in range(SESSIONS)]
        asked = 0
        while not all(run.done() for run in runs):
            # Between two kills something is answered.
            if model.asked >= asked + 25:
                pair.kill_one(chance)
                asked = model.asked
            time.sleep(0.05)
    overflows = sum(run.result() for run in runs)
    pair.stop()
    print(f"{SESSIONS} sessions, {model.asked} prompts, {model.views} views, {model.refused} refused, {pair.kills} kills")
    assert (overflows, model.faults) == (0, [])
    assert model.views and pair.kills
    pair.compactctl("archive", "verify", "--quiet")
    sessions = json.loads(pair.compactctl("archive", "list", "--json"))["sessions"]
    for session in sessions:
        restored = pair.restored(session["session_id"])
        assert len(set(re.findall(r"family-(\d+)", restored))) == 1
    model.server.shutdown()
