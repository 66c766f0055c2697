"""LangChain, Pydantic AI and Google's ADK, the real packages, each with a model that enforces its window."""

from __future__ import annotations

import json
from typing import Any

import pytest

import compact
from compact import CompactManager

from .conftest import config

WINDOW = 3_000
TEXT = "total = price * count\n" * 40


def tokens(texts: list[str]) -> int:
    return sum(compact.TiktokenEstimator().count(text, "gpt-5") for text in texts)


# LangChain.


def langchain_agent(calls: int, middleware: Any):
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from compact.integrations.langchain import LangChainCodec

    class Strict(GenericFakeChatModel):
        def bind_tools(self, tools, **kwargs):
            return self

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            body = [LangChainCodec().dump(message) for message in messages]
            sent.append(body)
            plain = [{**m, "content": [p for p in m["content"] if p["type"] == "text"]} if isinstance(m["content"], list) else m for m in body]
            assert compact.validate(plain, "openai-chat") == []
            assert tokens([json.dumps(m) for m in body]) < 1.2 * WINDOW
            return super()._generate(messages, stop, run_manager, **kwargs)

    def read(path: str) -> str:
        """Reads a file."""
        return f"# {path}\n{TEXT}"

    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    steps = [
        AIMessage([thought, {"type": "text", "text": "I read."}],
                  tool_calls=[{"name": "read", "args": {"path": f"src/part_{n}.py"}, "id": f"c{n}"}])
        for n in range(calls)
    ]
    sent: list[Any] = []
    model = Strict(messages=iter([*steps, AIMessage("done")]))
    agent = create_agent(model, [read], system_prompt="Be brief.", middleware=[middleware], checkpointer=InMemorySaver())
    return agent, sent


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_langchain_agent_never_overflows(mode):
    from compact.integrations.langchain import CompactMiddleware

    manager = CompactManager(config(WINDOW))
    agent, sent = langchain_agent(40, CompactMiddleware(manager, "lc"))
    options = {"configurable": {"thread_id": "1"}, "recursion_limit": 200}
    prompt = {"messages": [("user", "Read all parts.")]}
    result = await agent.ainvoke(prompt, options) if mode == "async" else agent.invoke(prompt, options)
    assert len(result["messages"]) == 82 and len(manager.receipts("lc")) >= 3
    assert len(sent[-1]) < 70
    # Reasoning that was bound to what is gone is gone as well.
    changed = next(i for i, body in enumerate(sent) if "COMPACT-SUMMARY" in json.dumps(body))
    assert "thinking" in json.dumps(sent[changed - 1]) and "thinking" not in json.dumps(sent[changed])


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_the_state_of_a_langchain_agent_may_be_compacted(mode):
    from compact.integrations.langchain import CompactMiddleware

    manager = CompactManager(config(WINDOW))
    agent, _ = langchain_agent(40, CompactMiddleware(manager, persist=True))
    options = {"configurable": {"thread_id": "1"}, "recursion_limit": 300}
    prompt = {"messages": [("user", "Read all parts.")]}
    result = await agent.ainvoke(prompt, options) if mode == "async" else agent.invoke(prompt, options)
    summaries = [m for m in result["messages"] if "COMPACT-SUMMARY" in str(m.content)]
    assert len(result["messages"]) < 60 and len(summaries) == 1


def test_langchain_messages_come_back_as_what_they_were():
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    from compact.integrations.langchain import LangChainCodec

    codec = LangChainCodec()
    call = {"name": "read", "args": {"path": "a"}, "id": "c1", "type": "tool_call"}
    items = [
        HumanMessage("hi", additional_kwargs={"protected": True}),
        AIMessage("", tool_calls=[call], id="ai-1"),
        ToolMessage("x", tool_call_id="c1", id="tool-1"),
    ]
    assert codec.dump(items[0])["meta"] == {"protected": True}
    assert codec.dump({"role": "user"}) == {"role": "user"}
    clipped = codec.load({**codec.dump(items[2]), "content": "short"}, items)
    assert (clipped.id, clipped.content) == ("tool-1", "short")
    changed = codec.load({**codec.dump(items[1]), "content": "y"}, items)
    assert (changed.id, changed.content, changed.tool_calls) == ("ai-1", "y", [call])
    assert codec.load({"role": "tool", "tool_call_id": "c9", "content": "z"}, items).content == "z"
    assert isinstance(codec.load({"role": "system", "content": "s"}, items), SystemMessage)
    assert isinstance(codec.load({"role": "assistant", "content": "s"}, items), AIMessage)


# Pydantic AI.


def pydantic_agent(calls: int, capability: Any):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    sent: list[Any] = []

    def answer(messages, info):
        sent.append(messages)
        texts = [str(getattr(part, "content", "")) for m in messages for part in m.parts]
        assert tokens(texts) < WINDOW
        open_calls = {p.tool_call_id for m in messages for p in m.parts if isinstance(p, ToolCallPart)}
        answered = {p.tool_call_id for m in messages for p in m.parts if p.part_kind == "tool-return"}
        assert open_calls == answered
        n = len(sent)
        if n > calls:
            return ModelResponse(parts=[TextPart("done")])
        parts = [ThinkingPart("Hm.", id=f"rs_{n}", signature="c2ln"), TextPart("I read.", id=f"msg_{n}")]
        calls_now = [ToolCallPart("read", {"path": f"src/p{n}_{k}"}, f"c{n}_{k}", id=f"fc_{n}_{k}") for k in range(1 + n % 2)]
        return ModelResponse(parts=[*parts, *calls_now])

    agent = Agent(FunctionModel(answer), system_prompt="Be brief.", instructions="Read.", capabilities=[capability])

    @agent.tool_plain
    def read(path: str) -> str:
        return f"# {path}\n{TEXT}"

    return agent, sent


async def test_a_pydantic_agent_never_overflows():
    from pydantic_ai.usage import UsageLimits

    from compact.integrations.pydantic_ai import CompactCapability

    manager = CompactManager(config(WINDOW))
    agent, sent = pydantic_agent(30, CompactCapability(manager, "pai"))
    result = await agent.run("Read all parts.", usage_limits=UsageLimits(request_limit=99))
    assert result.output == "done" and len(manager.receipts("pai")) >= 3
    assert len(result.all_messages()) == 62
    view = sent[-1]
    assert any("COMPACT-SUMMARY" in str(p) for m in view for p in m.parts)
    edited = next(messages for messages in sent if any("COMPACT-SUMMARY" in str(m) for m in messages))
    at = next(i for i, m in enumerate(edited) if "COMPACT-SUMMARY" in str(m))
    assert not any(p.part_kind == "thinking" for m in edited[at:] for p in m.parts)
    assert not any(getattr(p, "id", None) for m in edited[at:] for p in m.parts)


def test_pieces_of_pydantic_messages_come_back():
    from pydantic_ai.messages import ImageUrl, ModelRequest, ModelResponse, RetryPromptPart, SystemPromptPart
    from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

    from compact.integrations.pydantic_ai import PydanticAiCodec, _join_pieces, _split_messages

    codec = PydanticAiCodec()
    request = ModelRequest(parts=[
        SystemPromptPart("s"), UserPromptPart(["a", ImageUrl("http://x/y.png")]),
        ToolReturnPart("read", {"k": 1}, "c1"), RetryPromptPart("again", tool_name="read", tool_call_id="c2"),
        RetryPromptPart("again"),
    ])
    response = ModelResponse(parts=[TextPart("t"), ToolCallPart("read", {"p": 1}, "c1")])
    pieces = _split_messages([response, request])
    roles = [codec.dump(piece)["role"] for piece in pieces]
    assert roles == ["assistant", "system", "user", "tool", "tool", "user"]
    assert _join_pieces(pieces, pieces) == [response, request]
    short = codec.load({"role": "tool", "tool_call_id": "c1", "content": "short"}, pieces)
    assert short.part.tool_name == "read" and short.part.content == "short"
    assert codec.load({"role": "tool", "tool_call_id": "c9", "content": "x"}, pieces).part.tool_name == "unknown"
    made = codec.load(codec.dump(pieces[0]), pieces).message
    assert [p.part_kind for p in made.parts] == ["text", "tool-call"]
    assert codec.load({"role": "assistant", "content": ""}, pieces).message.parts[0].content == "…"
    assert codec.load({"role": "system", "content": "x"}, pieces).part.part_kind == "system-prompt"
    together = _join_pieces([pieces[1], short, pieces[0]], pieces)
    assert [type(m).__name__ for m in together] == ["ModelRequest", "ModelRequest", "ModelResponse"]


# Google's ADK.


async def test_an_adk_app_never_overflows():
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from compact.integrations.adk import CompactPlugin

    sent: list[Any] = []

    class Strict(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            body = [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in llm_request.contents]
            sent.append(body)
            assert compact.validate(body, "gemini") == []
            assert tokens([json.dumps(c) for c in body]) < 1.2 * WINDOW
            n = len(sent)
            call = types.FunctionCall(name="read", args={"path": f"src/part_{n}.py"}, id=f"c{n}")
            last = types.Part(text="done")
            part = types.Part(function_call=call, thought_signature=b"sig") if n < 30 else last
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    def read(path: str) -> dict[str, str]:
        """Reads a file."""
        return {"text": f"# {path}\n{TEXT}"}

    manager = CompactManager(config(WINDOW))
    agent = LlmAgent(name="a", model=Strict(model="fake"), instruction="Read.", tools=[read])
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[CompactPlugin(manager)]))
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    prompt = types.Content(role="user", parts=[types.Part(text="Read all parts.")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=prompt):
        pass
    assert len(sent) == 30 and len(manager.receipts(f"app/u/{session.id}/a")) >= 2
    kept = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session.id)
    assert len(kept.events) == 60
