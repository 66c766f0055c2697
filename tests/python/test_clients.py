"""The clients of Anthropic and OpenAI, the real packages, against a provider that enforces its window."""

from __future__ import annotations

import pytest
from anthropic import Anthropic, AsyncAnthropic, BadRequestError
from openai import AsyncOpenAI, OpenAI

import compact
from compact import CompactManager, HeuristicEstimator
from compact.integrations.anthropic import CompactMiddleware
from compact.integrations.openai import compact_async_client, compact_client

from .conftest import chat, config
from .provider import Provider
from .test_kinds import anthropic, responses

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]


@pytest.fixture
def provider():
    with Provider(window=4_000) as provider:
        yield provider


def test_anthropic_requests_fit_and_repeat(provider):
    manager = CompactManager(config())
    client = Anthropic(base_url=provider.url, api_key="x", max_retries=0, middleware=[CompactMiddleware(manager)])
    history = anthropic(50)
    for _ in range(2):
        answer = client.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=history, tools=TOOLS, system="S")
        assert answer.content[0].text == "ok"
    first, second = provider.requests
    assert first == second and len(first["messages"]) < len(history)
    assert provider.refused == [] and len(history) == 201
    with pytest.raises(BadRequestError):
        Anthropic(base_url=provider.url, api_key="x", max_retries=0).messages.create(
            model="claude-sonnet-5-5", max_tokens=9, messages=history, tools=TOOLS
        )


async def test_anthropic_requests_that_are_refused_go_out_smaller(provider):
    # The manager believes in a window that the provider does not have.
    manager = CompactManager(config(window=9_000, token_estimator=HeuristicEstimator()))
    middleware = CompactMiddleware(manager, lambda body: "named")
    client = AsyncAnthropic(base_url=provider.url, api_key="x", max_retries=0, middleware=[middleware])
    answer = await client.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=anthropic(30), tools=TOOLS)
    assert answer.content[0].text == "ok" and provider.refused == ["too long"]
    assert len(manager.receipts("named")) == 1
    sync = Anthropic(base_url=provider.url, api_key="x", max_retries=0,
                     middleware=[CompactMiddleware(CompactManager(config(window=9_000)), "s")])
    assert sync.messages.create(model="m", max_tokens=9, messages=anthropic(30), tools=TOOLS, metadata={"user_id": "u"})
    await client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "x"}])


def test_openai_requests_fit_and_repeat(provider):
    manager = CompactManager(config())
    client = OpenAI(base_url=provider.url + "/v1", api_key="x", max_retries=0, http_client=compact_client(manager, "s"))
    for _ in range(2):
        assert client.chat.completions.create(model="m", messages=chat(60)).choices[0].message.content == "ok"
    first, second = provider.requests
    assert first == second and len(first["messages"]) < 241 and provider.refused == []
    made = client.responses.create(model="m", input=responses(40), instructions="S", prompt_cache_key="k", store=False)
    assert made.output_text == "ok"
    client.responses.create(model="m", input="plain")
    kept = client.responses.create(model="m", input=[{"role": "user", "content": "x"}], previous_response_id="resp_1")
    assert kept.output_text == "ok" and provider.requests[-1]["input"] == [{"role": "user", "content": "x"}]
    client.close()


async def test_openai_requests_that_are_refused_go_out_smaller(provider):
    manager = CompactManager(config(window=9_000, token_estimator=HeuristicEstimator()))
    client = AsyncOpenAI(base_url=provider.url + "/v1", api_key="x", max_retries=0,
                         http_client=compact_async_client(manager, lambda body: "named"))
    answer = await client.chat.completions.create(model="m", messages=chat(25))
    assert answer.choices[0].message.content == "ok" and provider.refused == ["too long"]
    assert len(manager.receipts("named")) == 1
    await client.close()
    sync = OpenAI(base_url=provider.url + "/v1", api_key="x", max_retries=0,
                  http_client=compact_client(CompactManager(config(window=9_000))))
    assert sync.chat.completions.create(model="m", messages=chat(25)).choices[0].message.content == "ok"


def test_what_the_engine_cannot_read_passes_as_it_is(provider):
    manager = CompactManager(config())
    client = OpenAI(base_url=provider.url + "/v1", api_key="x", max_retries=0, http_client=compact_client(manager))
    with pytest.raises(Exception):
        client.chat.completions.create(model="m", messages=[{"no": "role"}])
    assert compact.validate(chat(3), "openai-chat") == []
