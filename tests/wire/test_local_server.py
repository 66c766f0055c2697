"""A real server with a real model answers what is compacted, on three wires."""

import http.client
import json

import pytest

pytest.importorskip("xllamacpp", reason="the server's wheel is for Linux")
import serve  # noqa: E402

# What one small model on one thread reads in a few seconds.
BUDGET = 700
WINDOW = 4096


@pytest.fixture(scope="session")
def server() -> str:
    running, address = serve.start(WINDOW)
    yield address
    del running


def post(address: str, method: str, path: str, body: dict | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=100)
    headers = {"content-type": "application/json"}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize(
    ("format", "path", "limit"),
    [
        ("openai-chat", "/v1/chat/completions", "max_tokens"),
        ("openai-responses", "/v1/responses", "max_output_tokens"),
        ("anthropic", "/v1/messages", "max_tokens"),
    ],
)
def test_a_compacted_body_is_answered(maker, server, format, path, limit):
    body = maker.compacted("support-session.json", format, BUDGET)
    body[limit] = 8
    body["model"] = "smollm2"
    status, answer = post(server, "POST", path, body)
    assert status == 200, answer
    usage = json.loads(answer)["usage"]
    assert usage.get("prompt_tokens", usage.get("input_tokens")) > 100
