"""Protected messages in each integration, the real packages, before models and providers that refuse ``meta``."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import compact
from compact import CompactManager, CompactPolicy

from .conftest import config
from .provider import Provider
from .test_protect import RULE, history, said, talk

WINDOW = 3_000


def flagged(wire: str, turns: int) -> list[dict[str, Any]]:
    messages = [*history(wire), *talk(wire, range(turns)), said(wire, "user", "go on")]
    messages[2] = {**messages[2], "meta": {"protected": True}}
    return messages


def test_the_openai_client_sends_what_is_protected_bare():
    from openai import OpenAI

    from compact.integrations.openai import compact_client

    with Provider(window=WINDOW) as provider:
        client = OpenAI(base_url=provider.url + "/v1", api_key="x", max_retries=0,
                        http_client=compact_client(CompactManager(config(WINDOW)), "s"))
        for turns in (2, 40, 80):
            client.chat.completions.create(model="m", messages=flagged("openai-chat", turns))
            assert said("openai-chat", "user", RULE) in provider.requests[-1]["messages"]
        client = OpenAI(base_url=provider.url + "/v1", api_key="x", max_retries=0,
                        http_client=compact_client(CompactManager(config(WINDOW)), "r"))
        for turns in (2, 40, 80):
            client.responses.create(model="m", input=flagged("openai-responses", turns), store=False)
            assert said("openai-responses", "user", RULE) in provider.requests[-1]["input"]
        assert provider.refused == []


def test_the_anthropic_client_sends_what_is_protected_bare():
    from anthropic import Anthropic

    from compact.integrations.anthropic import CompactMiddleware

    with Provider(window=WINDOW) as provider:
        middleware = CompactMiddleware(CompactManager(config(WINDOW)), "s")
        client = Anthropic(base_url=provider.url, api_key="x", max_retries=0, middleware=[middleware])
        for turns in (2, 40, 80):
            client.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=flagged("anthropic", turns))
            assert said("anthropic", "user", RULE) in provider.requests[-1]["messages"]
        assert provider.refused == []


async def test_the_filter_of_the_agents_sdk_sends_what_is_protected_bare():
    from agents import Agent
    from agents.run_config import CallModelData, ModelInputData

    from compact.hooks import compact_filter

    manager = CompactManager(config(WINDOW))
    filtered = compact_filter(manager, "s")
    for turns in range(2, 122, 20):
        items = flagged("openai-responses", turns)
        data = CallModelData(ModelInputData(input=items, instructions="Be brief."), Agent(name="a"), None)
        sent = (await filtered(data)).input
        assert sent.count(said("openai-responses", "user", RULE)) == 1
        assert compact.validate(sent, "openai-responses") == []
    assert len(manager.receipts("s")) >= 5


async def test_a_session_of_the_agents_sdk_keeps_what_is_protected_through_its_compactions():
    from compact.hooks import CompactSession

    manager = CompactManager(config(WINDOW))
    session = CompactSession("s", manager)
    await session.add_items(flagged("openai-responses", 2))
    for start in range(2, 150, 20):
        await session.add_items(talk("openai-responses", range(start, start + 20)))
        await session.run_compaction()
        items = await session.get_items()
        assert items.count(said("openai-responses", "user", RULE)) == 1
        assert compact.validate(items, "openai-responses") == []
    assert len(manager.receipts("s")) >= 5


@pytest.mark.parametrize("place", ["additional_kwargs", "response_metadata", "meta"])
def test_a_message_of_langchain_carries_the_flag_that_the_policy_names(place):
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.messages.utils import convert_to_openai_messages

    from compact.integrations.langchain import LangChainCodec

    manager = CompactManager(config(WINDOW, policy=CompactPolicy(protected_flag="pin")))
    rule = HumanMessage(RULE, **{place: {"pin": True}})
    messages: list[Any] = [HumanMessage("start"), AIMessage("ok"), rule, AIMessage("noted")]
    for turn in range(0, 120, 4):
        for n in range(turn, turn + 4):
            messages += [HumanMessage(f"{n} " + "stock " * 80), AIMessage("cart " * 80)]
        sent = manager.preflight("s", messages, codec=LangChainCodec())
        assert sum(m is rule for m in sent) == 1
        assert "pin" not in json.dumps(convert_to_openai_messages(sent))
    assert len(manager.receipts("s")) >= 5


async def test_a_message_of_pydantic_ai_carries_the_flag():
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.function import FunctionModel

    from compact.integrations.pydantic_ai import CompactCapability

    manager = CompactManager(config(WINDOW))
    seen: list[Any] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("ok")])

    agent = Agent(FunctionModel(answer), capabilities=[CompactCapability(manager, "s")])
    rule = ModelRequest(parts=[UserPromptPart(RULE)], metadata={"protected": True})
    history: list[Any] = [rule, ModelResponse(parts=[TextPart("noted")])]
    for turn in range(0, 120, 20):
        for n in range(turn, turn + 20):
            history += [ModelRequest(parts=[UserPromptPart(f"{n} " + "stock " * 80)]), ModelResponse(parts=[TextPart("cart " * 80)])]
        await agent.run("go on", message_history=history)
        assert sum(part.content == RULE for m in seen[-1] for part in m.parts if isinstance(part, UserPromptPart)) == 1
    assert len(manager.receipts("s")) >= 5


async def test_an_event_of_adk_carries_the_flag_of_its_content():
    from google.adk.events import Event
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types

    from compact.integrations.adk import CompactPlugin

    def content(role: str, text: str) -> types.Content:
        return types.Content(role=role, parts=[types.Part(text=text)])

    manager = CompactManager(config(WINDOW))
    plugin = CompactPlugin(manager)
    rule = Event(author="user", content=content("user", RULE), custom_metadata={"protected": True})
    events = [Event(author="user", content=content("user", "start")), Event(author="a", content=content("model", "ok")), rule]
    events.append(Event(author="a", content=content("model", "noted")))
    for turn in range(0, 120, 20):
        for n in range(turn, turn + 20):
            events += [Event(author="user", content=content("user", f"{n} " + "stock " * 80)), Event(author="a", content=content("model", "cart " * 80))]
        request = LlmRequest(contents=[event.content.model_copy(deep=True) for event in events])
        session = SimpleNamespace(app_name="shop", user_id="ann", id="7", events=events)
        context = SimpleNamespace(session=session, agent_name="a")
        await plugin.before_model_callback(callback_context=context, llm_request=request)
        assert sum(c == rule.content for c in request.contents) == 1
        body = [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in request.contents]
        assert compact.validate(body, "gemini") == []
    assert len(manager.receipts("shop/ann/7/a")) >= 5


async def test_a_line_of_an_agents_transcript_is_protected_by_its_meta_or_by_a_call():
    from compact.integrations.claude import CompactSessionStore

    def line(n: int, role: str, text: str) -> dict[str, Any]:
        parent = f"u{n - 1}" if n else None
        return {
            "type": role, "uuid": f"u{n}", "parentUuid": parent, "sessionId": "s", "timestamp": "2026-02-02T00:00:00.000Z",
            "message": {"role": role, "content": text},
        }

    rules = ["Rule one: never on a Friday.", "Rule two: always on ARM."]
    lines = [line(0, "user", rules[0]), line(1, "assistant", "ok"), line(2, "user", rules[1]), line(3, "assistant", "ok")]
    lines[0]["meta"] = {"protected": True}
    roles = ("user", "assistant")
    lines += [line(4 + n, roles[n % 2], f"{n} " + "stock order " * 40) for n in range(80)]
    manager = CompactManager(config(WINDOW))
    manager.protect("p/s", [lines[2]], codec=compact.Codec("claude-code"))
    store = CompactSessionStore(manager)
    await store.append({"session_id": "s", "project_key": "p"}, lines)
    loaded = await store.load({"session_id": "s", "project_key": "p"})
    view = loaded[len(lines):]
    said = [entry["message"]["content"] for entry in view if "message" in entry]
    assert [said.count(rule) for rule in rules] == [1, 1]
