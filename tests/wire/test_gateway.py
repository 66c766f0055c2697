"""The official SDKs through `compactctl serve`, with nothing but a base URL changed."""

import http.server
import json
import os
import subprocess
import threading

import anthropic
import openai
import pytest
from google import genai

#: What the upstream takes, in tokens of four bytes.
LIMIT = 8_000
#: What an agent says before it is done.
TURNS = 60


class Upstream(http.server.ThreadingHTTPServer):
    """Answers on four wires, and refuses what is too long."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(body)
        tokens = len(body) // 4
        if tokens > LIMIT:
            message = f"prompt is too long: {tokens} tokens > {LIMIT} maximum"
            self.answer(400, "application/json", json.dumps({"error": {"message": message, "code": 400}}))
        else:
            kind, text = ANSWERS[next(end for end in ANSWERS if end in self.path)](json.loads(body), tokens)
            self.answer(200, kind, text)

    def answer(self, status: int, kind: str, text: str):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


def events(*values: dict, end: str = "") -> tuple[str, str]:
    lines = [f"event: {v.get('type', 'message')}\ndata: {json.dumps(v)}\n\n" for v in values]
    return "text/event-stream", "".join(lines) + end


def chat(body: dict, tokens: int) -> tuple[str, str]:
    usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    if body.get("stream"):
        said = {"index": 0, "delta": {"role": "assistant", "content": "Done."}, "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunks = [head | {"choices": [said]}, head | {"choices": [ended]}, head | {"choices": [], "usage": usage}]
        return events(*chunks, end="data: [DONE]\n\n")
    message = {"role": "assistant", "content": "Done."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return "application/json", json.dumps(head | {"object": "chat.completion", "choices": [choice], "usage": usage})


def responses(body: dict, tokens: int) -> tuple[str, str]:
    usage = {
        "input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens + 1,
    }
    content = [{"type": "output_text", "text": "Done.", "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    response = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": body["model"],
        "output": [message], "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }
    return "application/json", json.dumps(response)


def messages(body: dict, tokens: int) -> tuple[str, str]:
    usage = {"input_tokens": tokens, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
    if not body.get("stream"):
        content = [{"type": "text", "text": "Done."}]
        whole = {"content": content, "stop_reason": "end_turn", "usage": usage}
        return "application/json", json.dumps(message | whole)
    return events(
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )


def generate(body: dict, tokens: int) -> tuple[str, str]:
    content = {"role": "model", "parts": [{"text": "Done."}]}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 1, "totalTokenCount": tokens + 1}
    answer = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    return "application/json", json.dumps(answer)


ANSWERS = {"/chat/completions": chat, "/responses": responses, "/messages": messages, ":generateContent": generate}


@pytest.fixture
def upstream():
    server = Upstream()
    yield server
    server.shutdown()


@pytest.fixture
def gateway(maker, tmp_path, upstream):
    names = ["OPENAI", "ANTHROPIC", "GEMINI"]
    environment = {
        **os.environ, "COMPACT_STORAGE_PATH": str(tmp_path), "COMPACT_MAX_CONTEXT_TOKENS": str(LIMIT),
        **{f"COMPACT_GATEWAY_{name}_URL": upstream.url for name in names},
    }
    served = subprocess.Popen(
        [maker.program, "serve", "--listen", "127.0.0.1:0"], env=environment, stderr=subprocess.PIPE, text=True
    )
    yield served.stderr.readline().removeprefix("listening on ").strip()
    served.terminate()
    assert served.wait(20) == 0


def question(n: int) -> str:
    return f"Measure run {n} of the parser and write it to out/run_{n}.csv. " + "It takes a while. " * 30


def check_upstream(upstream: Upstream, key: str) -> None:
    """Most requests were views, all within the limit, each the beginning of the next but where one was made."""
    sent = [json.loads(body)[key] for body in upstream.bodies]
    assert len(sent) >= TURNS
    assert max(len(body) // 4 for body in upstream.bodies) <= LIMIT, "nothing too long was sent"
    breaks = sum(after[: len(before)] != before for before, after in zip(sent, sent[1:]))
    assert 1 <= breaks <= TURNS // 4, f"{breaks} compactions"
    assert "COMPACT-SUMMARY" in json.dumps(sent[-1])


@pytest.mark.parametrize("stream", [False, True])
def test_openai_chat(gateway, upstream, stream):
    client = openai.OpenAI(base_url=f"{gateway}/v1", api_key="sk-test", max_retries=0)
    history = []
    for n in range(TURNS):
        history.append({"role": "user", "content": question(n)})
        answer = client.chat.completions.create(model="gpt-5", messages=history, stream=stream)
        text = "".join(c.choices[0].delta.content or "" for c in answer if c.choices) if stream else answer.choices[0].message.content
        assert text == "Done."
        history.append({"role": "assistant", "content": text})
    check_upstream(upstream, "messages")


def test_openai_responses(gateway, upstream):
    client = openai.OpenAI(base_url=f"{gateway}/v1", api_key="sk-test", max_retries=0)
    history = []
    for n in range(TURNS):
        history.append({"role": "user", "content": question(n)})
        answer = client.responses.create(model="gpt-5", input=history, store=False)
        assert answer.output_text == "Done."
        history.append({"role": "assistant", "content": answer.output_text})
    check_upstream(upstream, "input")


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic(gateway, upstream, stream):
    client = anthropic.Anthropic(base_url=gateway, api_key="sk-test", max_retries=0)
    history = []
    for n in range(TURNS):
        history.append({"role": "user", "content": question(n)})
        asked = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": history}
        if stream:
            with client.messages.stream(**asked) as answer:
                text = "".join(answer.text_stream)
        else:
            text = client.messages.create(**asked).content[0].text
        assert text == "Done."
        history.append({"role": "assistant", "content": text})
    check_upstream(upstream, "messages")


def test_google_genai(gateway, upstream):
    client = genai.Client(api_key="test", http_options={"base_url": gateway})
    history = []
    for n in range(TURNS):
        history.append({"role": "user", "parts": [{"text": question(n)}]})
        answer = client.models.generate_content(model="gemini-2.5-pro", contents=history)
        assert answer.text == "Done."
        history.append({"role": "model", "parts": [{"text": answer.text}]})
    check_upstream(upstream, "contents")
