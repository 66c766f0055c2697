"""The clients of Anthropic and OpenAI, the real packages, against a provider that enforces its window."""

from __future__ import annotations

import json

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic, BadRequestError
from openai import AsyncOpenAI, OpenAI

import compact
from compact import CompactManager, CompactPolicy, HeuristicEstimator
from compact.integrations.anthropic import CompactMiddleware
from compact.integrations.openai import CompactTransport, compact_async_client, compact_client

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


async def test_a_refused_anthropic_request_is_sent_again_with_the_summary_in_its_system_prompt(provider):
    def believing() -> CompactMiddleware:
        policy = CompactPolicy(placement="system_suffix")
        return CompactMiddleware(CompactManager(config(9_000, token_estimator=HeuristicEstimator(), policy=policy)), "s")

    request = {"model": "m", "max_tokens": 9, "messages": anthropic(30), "system": "Be careful."}
    common = {"base_url": provider.url, "api_key": "x", "max_retries": 0}
    Anthropic(**common, middleware=[believing()]).messages.create(**request)
    await AsyncAnthropic(**common, middleware=[believing()]).messages.create(**request)
    assert provider.refused == ["too long", "too long"] and len(provider.requests) == 2
    for sent in provider.requests:
        assert len(sent["messages"]) < 60
        assert "Be careful." in json.dumps(sent["system"]) and "COMPACT-SUMMARY" in json.dumps(sent["system"])


class Reports:
    """Collects the reports of usage that managers get."""

    def __init__(self, monkeypatch):
        self.seen = []
        monkeypatch.setattr(CompactManager, "observe", lambda _, *report: self.seen.append(report))


async def test_the_usage_of_anthropic_responses_is_observed(provider, monkeypatch):
    reports = Reports(monkeypatch)
    common = {"base_url": provider.url, "api_key": "x", "max_retries": 0}
    request = {"model": "m", "max_tokens": 9, "messages": anthropic(3)}
    Anthropic(**common, middleware=[CompactMiddleware(CompactManager(config()), "a")]).messages.create(**request)
    unnamed = CompactMiddleware(CompactManager(config()))
    await AsyncAnthropic(**common, middleware=[unnamed]).messages.create(**request)
    # Refused first: the report is about what was sent again.
    wrong = CompactManager(config(9_000, token_estimator=HeuristicEstimator()))
    long = {**request, "messages": anthropic(30)}
    Anthropic(**common, middleware=[CompactMiddleware(wrong, "c")]).messages.create(**long)
    names, usages, sources = zip(*reports.seen, strict=True)
    assert (names[0], names[2]) == ("a", "c") and names[1] and set(sources) == {"anthropic"}
    assert usages[0] == usages[1] and 0 < usages[0]["input_tokens"] < usages[2]["input_tokens"] <= 4_000


async def test_the_usage_of_openai_responses_is_observed(provider, monkeypatch):
    reports = Reports(monkeypatch)
    common = {"base_url": provider.url + "/v1", "api_key": "x", "max_retries": 0}
    client = OpenAI(**common, http_client=compact_client(CompactManager(config()), "a"))
    client.chat.completions.create(model="m", messages=chat(3))
    client.responses.create(model="m", input=responses(3))
    later = AsyncOpenAI(**common, http_client=compact_async_client(CompactManager(config())))
    await later.chat.completions.create(model="m", messages=chat(3))
    names, usages, sources = zip(*reports.seen, strict=True)
    assert names[:2] == ("a", "a") and names[2]
    assert sources == ("openai-chat", "openai-responses", "openai-chat")
    assert usages[0]["prompt_tokens"] > 0 and usages[1]["input_tokens"] > 0


def test_usage_corrects_the_pressure_of_a_clients_session(provider):
    manager = CompactManager(config(60_000, token_estimator=compact.NoopEstimator()))
    client = OpenAI(base_url=provider.url + "/v1", api_key="x", http_client=compact_client(manager, "s"))
    client.chat.completions.create(model="m", messages=chat(10))
    assert manager.prepare("s", [*chat(10), {"role": "user", "content": "x"}]).decision.tokens > 1_000


def test_a_streamed_response_is_not_read_before_its_client_reads_it(monkeypatch):
    reports = Reports(monkeypatch)

    class Stream(httpx2.SyncByteStream):
        def __iter__(self):
            yield b"data: [DONE]\n\n"

    def answer(request):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream())

    transport = CompactTransport(CompactManager(config()), "s", httpx2.MockTransport(answer))
    body = {"model": "m", "messages": chat(2), "stream": True}
    response = transport.handle_request(httpx2.Request("POST", "http://x/v1/chat/completions", json=body))
    assert not response.is_stream_consumed and reports.seen == []


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
