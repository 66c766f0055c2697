"""LiteLLM's hook, against the real package and a fake provider on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
litellm = pytest.importorskip("litellm")

import compact  # noqa: E402
from compact import CompactManager  # noqa: E402

from .conftest import chat, config  # noqa: E402
from .isolation import LiteLlm, manager_of  # noqa: E402
from .provider import Provider  # noqa: E402
from .test_isolation import REQUESTS, USERS, check, in_parallel  # noqa: E402


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


async def ask(provider: Provider, messages, **more):
    return await litellm.acompletion(
        model="openai/m1", api_base=provider.url + "/v1", api_key="x", messages=messages, **more
    )


async def test_what_goes_out_is_smaller(provider, monkeypatch):
    from compact.integrations.litellm import CompactLogger

    manager = CompactManager(config())
    monkeypatch.setattr(litellm, "callbacks", [CompactLogger(manager)])
    messages = chat(60)
    await ask(provider, messages, metadata={"session_id": "mine"})
    await ask(provider, messages, metadata={"session_id": "mine"})
    first, second = (request["messages"] for request in provider.requests)
    assert first == second and len(first) < len(messages)
    assert compact.validate(first, "openai-chat") == []
    assert len(manager.receipts("mine")) == 1


async def test_the_proxys_hook_names_sessions_and_leaves_the_rest_alone():
    from compact.integrations.litellm import CompactLogger

    manager = CompactManager(config())
    hook = CompactLogger(manager)
    messages = chat(60)
    data = await hook.async_pre_call_hook(None, None, {"messages": messages}, "completion")
    assert len(data["messages"]) < len(messages)
    assert await hook.async_pre_call_hook(None, None, {"input": "x"}, "embeddings") == {"input": "x"}
    # The proxy calls both hooks, one after the other.
    assert await hook.async_pre_call_deployment_hook(data, None) is data
    odd = {"messages": [{"no": "role"}]}
    assert await hook.async_pre_call_hook(None, None, odd, "completion") == odd


def test_two_users_have_nothing_of_each_other(tmp_path):
    first, second, third = (LiteLlm(user) for user in USERS)
    manager = manager_of(tmp_path)
    in_parallel(lambda: first.talk(manager, REQUESTS), lambda: second.talk(manager, REQUESTS))
    again = manager_of(tmp_path)
    in_parallel(lambda: first.talk(again, 10), lambda: third.talk(again, REQUESTS))
    check(first, second, third)


def test_customers_of_a_proxy_may_call_their_sessions_alike():
    from compact.integrations.litellm import _session_name

    keys = [{"session_id": "1", "user_api_key_hash": key} for key in ("ann", "bob")]
    assert [_session_name({"metadata": metadata}) for metadata in keys] == ["ann/1", "bob/1"]
    assert _session_name({"litellm_metadata": keys[0], "metadata": {}}) == "ann/1"
    assert _session_name({"metadata": {"session_id": "1"}}) == "1" == _session_name({"litellm_session_id": "1"})
    # Who asks is not what is asked.
    assert _session_name({"user": "ann", "metadata": {"user_api_key_hash": "ann"}}) is None


def test_the_example_runs_without_a_key(tmp_path):
    script = Path("examples/litellm_hook.py").absolute()
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "the next call would send " in done.stdout and "<Receipt " in done.stdout
