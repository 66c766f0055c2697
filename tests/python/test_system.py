"""A system prompt that is passed beside the messages is counted, and a summary that is put into it is never lost."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import compact
from compact import (
    CompactManager, CompactPolicy, ConfigError, FileStorage, InsufficientBudget, Message,
)
from compact.chat import ChatCommands
from compact.hooks import middleware

from .conftest import chat, config
from .test_kinds import anthropic, gemini, responses

SYSTEM = "Be careful."
LONG = "word " * 3_000
PLACED = {"policy": CompactPolicy(placement="system_suffix"), "model": "claude-sonnet-4-5"}


def beside(make: Any) -> CompactManager:
    """A manager that puts its summaries into the system prompt."""
    return CompactManager(config(format=make.__name__, **PLACED))


def system_for(make: Any) -> Any:
    return {"parts": [{"text": SYSTEM}]} if make is gemini else SYSTEM


# What is counted.


@pytest.mark.parametrize("messages", [chat(1)[1:2], [Message("user", "hi")], anthropic(1)[:1], responses(1)[:1]])
def test_a_system_prompt_is_counted_with_every_kind_of_message(messages):
    manager = CompactManager(config(60_000))
    prepared = manager.prepare("s", messages, system=LONG)
    assert prepared.decision.tokens > 3_000
    assert prepared.messages == messages and prepared.system is None
    with pytest.raises(InsufficientBudget):
        CompactManager(config(3_500)).preflight("s", messages, system=LONG)


def test_a_system_prompt_and_tools_are_counted_together():
    manager = CompactManager(config(60_000))
    tools = [{"type": "function", "function": {"name": "read", "description": LONG}}]
    assert manager.prepare("s", chat(1), system=LONG, tools=tools).decision.tokens > 6_000
    live = manager.session("live", system=LONG, tools=tools)
    assert live.prepare(*chat(1)).decision.tokens > 6_000


@pytest.mark.parametrize("messages", [chat(1), [Message("user", "hi")], anthropic(1)])
def test_an_account_names_the_system_prompt(messages):
    counted, bare = compact.account(messages, system=LONG), compact.account(messages)
    assert counted.system - bare.system >= 3_000 and counted.tools == bare.tools
    assert counted.total - bare.total == counted.system - bare.system


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ({"system": 5}, "system must be a text"),
        ({"system": b"x"}, "system must be a text"),
        ({"system": [5]}, "system must be a text"),
        ({"tools": "x"}, "tools must be a list"),
        ({"tools": {"name": "read"}}, "tools must be a list"),
        ({"tools": [print]}, r"tools\[0\] must be a tool's schema"),
        ({"tools": [{"name": "read"}, CompactPolicy]}, r"tools\[1\] must be a tool's schema"),
    ],
)
def test_what_cannot_stand_beside_messages_is_refused(manager, how, wanted):
    for call in (manager.preflight, manager.prepare, manager.session):
        with pytest.raises(TypeError, match=wanted):
            call("s", chat(1), **how)
    with pytest.raises(TypeError, match=wanted):
        compact.account(chat(1), **how)


# Where the summary is.


@pytest.mark.parametrize("make", [anthropic, gemini])
async def test_methods_that_return_messages_only_lose_no_summary(make):
    manager, history, system = beside(make), make(50), system_for(make)
    calls = [
        lambda: manager.preflight("s", history, system=system),
        lambda: manager.manual_compact("s", history, system=system),
        lambda: manager.overflowed("s", history, 400, "prompt is too long: 9000 tokens > 4000 maximum", system=system),
        lambda: manager.session("s", history, system=system).append(history[0]),
    ]
    for call in calls:
        with pytest.raises(ConfigError, match=r"prepare\(\.\.\.\)"):
            call()
    with pytest.raises(ConfigError, match=r"prepare\(\.\.\.\)"):
        await manager.apreflight("s", history, system=system)
    with pytest.raises(ConfigError, match=r"prepare\(\.\.\.\)"):
        await manager.amanual_compact("s", history, system=system)
    assert manager.receipts("s") == []
    prepared = manager.prepare("s", history, system=system)
    assert "COMPACT-SUMMARY" in json.dumps(prepared.system) and SYSTEM in json.dumps(prepared.system)
    live = manager.session("live", history[:-1], system=system)
    assert "COMPACT-SUMMARY" in json.dumps(live.prepare(history[-1]).system)


@pytest.mark.parametrize("make", [chat, responses])
def test_where_instructions_are_messages_the_summary_is_one(make):
    manager = CompactManager(config(policy=CompactPolicy(placement="system_suffix")))
    assert "COMPACT-SUMMARY" in json.dumps(manager.preflight("s", make(50), system=SYSTEM))


def test_a_session_whose_summary_an_earlier_policy_put_beside_loses_nothing(tmp_path):
    history = anthropic(50)
    with CompactManager(config(format="anthropic", **PLACED | {"storage": FileStorage(tmp_path)})) as manager:
        manager.prepare("s", history, system=SYSTEM)
    manager = CompactManager(config(format="anthropic", storage=FileStorage(tmp_path)))
    with pytest.raises(ConfigError, match="session s: the summary is in the system prompt"):
        manager.preflight("s", [*history, *history[1:3]], system=SYSTEM)


def test_a_smaller_prompt_after_a_refusal_has_its_summary():
    manager = beside(anthropic)
    refusal = (400, "prompt is too long: 9000 tokens > 4000 maximum")
    smaller = manager.shrink("s", anthropic(12), *refusal, system=SYSTEM)
    assert smaller is not None and "COMPACT-SUMMARY" in json.dumps(smaller.system)
    assert manager.shrink("s", anthropic(12), 400, "no such model", system=SYSTEM) is None


@pytest.mark.parametrize("make", [anthropic, gemini])
def test_a_runners_context_gets_the_system_prompt_with_the_summary(make):
    hook = middleware(beside(make))["before_model_call"]
    ctx = SimpleNamespace(session_id="s", messages=make(50), system=system_for(make), tools=None)
    for _ in range(2):
        hook(ctx)
        text = json.dumps(ctx.system)
        assert len(ctx.messages) < 40 and SYSTEM in text and text.count("COMPACT-SUMMARY v") == 1
        ctx.messages = [*ctx.messages, *make(50)[-40:]]
    with pytest.raises(ConfigError):
        hook(SimpleNamespace(session_id="t", messages=make(50)))


def test_the_command_to_compact_returns_the_system_prompt_with_the_summary():
    commands = ChatCommands(beside(anthropic), "s")
    reply = commands.handle("/compact", anthropic(50), system=SYSTEM)
    assert len(reply.messages) < 60 and SYSTEM in json.dumps(reply.system)
    assert "COMPACT-SUMMARY" in json.dumps(reply.system)
    assert commands.handle("/memory", anthropic(1), system=SYSTEM).system == SYSTEM
    assert commands.handle("/compact", anthropic(1)[:1], system=SYSTEM).system == SYSTEM


@pytest.mark.parametrize("instruction", ["text", "content", None])
async def test_an_adk_request_gets_the_instruction_with_the_summary(instruction):
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types

    from compact.integrations.adk import CompactPlugin

    given = {"text": SYSTEM, "content": types.Content(parts=[types.Part(text=SYSTEM)]), None: None}[instruction]
    contents = [types.Content.model_validate(content) for content in gemini(50)]
    request = LlmRequest(contents=contents, config=types.GenerateContentConfig(system_instruction=given))
    session = SimpleNamespace(app_name="a", user_id="u", id="1", events=[])
    context = SimpleNamespace(session=session, agent_name="clerk")
    await CompactPlugin(beside(gemini)).before_model_callback(callback_context=context, llm_request=request)
    sent = request.config.system_instruction
    assert len(request.contents) < 60 and "COMPACT-SUMMARY" in str(sent)
    assert (SYSTEM in str(sent)) == (given is not None)
    assert isinstance(sent, types.Content if instruction == "content" else str)


def test_a_store_gets_a_summary_that_is_in_the_system_prompt():
    saved: list[Any] = []

    class Copies:
        def save_transcript(self, session_id, messages): pass
        def save_summary(self, session_id, summary, version): saved.append(summary)
        def save_event(self, session_id, event): pass

    manager = CompactManager(config(format="anthropic", **PLACED | {"storage": Copies()}))
    manager.prepare("s", anthropic(50), system=SYSTEM)
    assert len(saved) == 1 and "COMPACT-SUMMARY" in saved[0].content
    assert saved[0].role == "system" and SYSTEM not in saved[0].content
