"""A real server with a real model behind the gateway: its prompt cache keeps hitting while a view is frozen."""

import http.client
import json
import os
import subprocess

import pytest

pytest.importorskip("xllamacpp", reason="the server's wheel is for Linux")
import serve  # noqa: E402

#: What the gateway takes for the window; the server's is larger, since its tokens are smaller.
WINDOW = 1_000
#: Turns that fill the window about twice.
TURNS = 16
#: How many tokens at the end of a prompt are not the beginning of the next.
OPEN_END = 8


@pytest.fixture
def gateway(maker, tmp_path):
    running, address = serve.start(4 * WINDOW)
    environment = {
        **os.environ, "COMPACT_STORAGE_PATH": str(tmp_path), "COMPACT_MAX_CONTEXT_TOKENS": str(WINDOW),
        "COMPACT_GATEWAY_OPENAI_URL": f"http://{address}",
    }
    served = subprocess.Popen(
        [maker.program, "serve", "--listen", "127.0.0.1:0"], env=environment, stderr=subprocess.PIPE, text=True
    )
    yield served.stderr.readline().removeprefix("listening on http://").strip()
    served.terminate()
    assert served.wait(60) == 0
    del running


def ask(address: str, history: list[dict]) -> tuple[dict, bool]:
    """What the server reports, and whether a view was made for it."""
    connection = http.client.HTTPConnection(address, timeout=300)
    # It ends at its first blank: what it says does not matter, and an answer of few tokens by request would be a probe.
    body = {"model": "smollm2", "messages": history, "stop": [" ", "\n"], "temperature": 0}
    headers = {"content-type": "application/json", "x-compact-session": "local"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    return json.loads(text)["usage"], answer.headers["x-compact-receipt"] is not None


def test_the_prompt_cache_hits_on_all_that_is_frozen(gateway):
    history = [{"role": "system", "content": "You are a clerk who notes what is measured."}]
    before, views, hits = None, 0, 0
    for n in range(TURNS):
        measured = f"Run {n} of the parser took {n * 37 % 101} ms and wrote out/run_{n}.csv. The rows are sorted by date. " * 3
        history.append({"role": "user", "content": measured})
        usage, is_new_view = ask(gateway, history)
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        if is_new_view:
            views += 1
        elif before is not None:
            assert cached >= before - OPEN_END, f"turn {n}: {cached} of the {before} tokens before were cached"
            hits += views > 0
        before = usage["prompt_tokens"]
        history.append({"role": "assistant", "content": f"Noted: run {n}."})
    assert views and hits, f"{views} views, {hits} hits behind one"
    assert usage["prompt_tokens"] < 2 * WINDOW, "a view was sent"
