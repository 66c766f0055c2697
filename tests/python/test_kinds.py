"""It takes what people have and gives back the same kind."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

import compact
from compact import CompactManager, Message
from compact.wire import Codec, as_message, encode_messages

from .conftest import chat, config


def plain(turns: int) -> list[Message]:
    roles = ("user", "assistant", "tool")
    return [
        Message(role, f"{role} {turn} " * 40, {"tool_name": "read"} if role == "tool" else None)
        for turn in range(turns)
        for role in roles
    ]


class Said(BaseModel):
    role: str
    content: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None


def test_messages_come_back_as_messages():
    messages = [Message("system", "Be brief."), *plain(40)]
    sent = CompactManager(config()).preflight("s", messages)
    assert {type(message) for message in sent} == {Message}
    assert sent[0] is messages[0] and any(said is message for said in sent[1:] for message in messages)
    assert any(message.content.startswith("<COMPACT-SUMMARY v1>") for message in sent)


def test_the_protected_flag_of_meta_holds():
    messages = plain(40)
    messages.insert(5, Message("developer", "POLICY " * 20, {"protected": True}))
    assert messages[5] in CompactManager(config()).preflight("s", messages)


def test_pydantic_objects_come_back_as_their_class():
    messages = [Said(**message) for message in chat(60)]
    sent = CompactManager(config()).preflight("s", messages)
    assert {type(message) for message in sent} == {Said}
    assert sent[-1] is messages[-1] and len(sent) < len(messages)


def test_objects_of_the_openai_sdk_mix_with_dicts():
    from openai.types.chat import ChatCompletionMessage

    messages = [
        ChatCompletionMessage(**m) if m["role"] == "assistant" else m for m in chat(60)
    ]
    sent = CompactManager(config()).preflight("s", messages)
    assert {type(m).__name__ for m in sent} == {"ChatCompletionMessage", "dict"}
    body = [m if isinstance(m, dict) else m.model_dump(exclude_none=True) for m in sent]
    assert compact.validate(body, "openai-chat") == []


@pytest.mark.parametrize("format", ["anthropic", "openai-responses", "gemini"])
def test_every_providers_messages_are_kept_legal(format):
    history = {"anthropic": anthropic, "openai-responses": responses, "gemini": gemini}[format](50)
    sent = CompactManager(config()).preflight("s", history, codec=Codec(format))
    assert len(sent) < len(history)
    assert compact.validate(sent, format) == []


def anthropic(turns: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for n in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"path": f"p{n}"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"line {n} " * 60}
        out += [
            {"role": "user", "content": f"Look at p{n}."},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"p{n} is fine."},
        ]
    return out + [{"role": "user", "content": "Next?"}]


def responses(turns: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for n in range(turns):
        said = {"type": "output_text", "text": f"p{n} is fine.", "annotations": []}
        out += [
            {"role": "user", "content": f"Look at p{n}."},
            {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "gAAAA" + "b" * 80},
            {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{n}", "output": f"line {n} " * 60},
            {"type": "message", "role": "assistant", "id": f"msg_{n}", "status": "completed", "content": [said]},
        ]
    return out


def gemini(turns: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for n in range(turns):
        call = {"functionCall": {"name": "read", "args": {"path": f"p{n}"}}, "thoughtSignature": "c2ln"}
        result = {"functionResponse": {"name": "read", "response": {"text": f"line {n} " * 60}}}
        out += [
            {"role": "user", "parts": [{"text": f"Look at p{n}."}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [result]},
            {"role": "model", "parts": [{"text": f"p{n} is fine."}]},
        ]
    return out + [{"role": "user", "parts": [{"text": "Next?"}]}]


def test_odd_objects_are_read_by_what_they_know_of_themselves():
    class Listed:
        def to_dict(self):
            return {"role": "user", "content": "by to_dict"}

    @dataclasses.dataclass
    class Data:
        role: str
        content: str

    items = [
        Listed(),
        Data("user", "by fields"),
        MappingProxyType({"role": "user", "content": "by mapping"}),
        {"role": "user", "content": ({"type": "text", "text": "nested"},)},
        {"role": "user", "content": [{"type": "text", "text": SimpleNamespace()}]},
    ]
    encoded = encode_messages(items[:4], Codec())
    assert [text[:30] for text in encoded.texts][0] == '{"role":"user","content":"by t'
    assert '"by fields"' in encoded.texts[1] and '"by mapping"' in encoded.texts[2]
    assert encode_messages([{"role": "user", "content": {1, 2}}], Codec()).texts[0].endswith("[1,2]}")
    assert encode_messages(items[4:], Codec()).texts[0].count("namespace") == 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"role": "user", "content": "hi"}, Message("user", "hi")),
        ({"role": "model", "parts": [{"text": "a"}, {"text": "b"}]}, Message("assistant", "a\nb")),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, Message("tool", "x", {"tool_call_id": "c"})),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
         Message("assistant", "{}", {"tool_name": "f", "tool_call_id": "c"})),
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, Message("tool", "x", {"tool_call_id": "c"})),
        ({"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]},
         Message("user", "x")),
        ({"role": "user", "content": [{"odd": 1}]}, Message("user", '{"odd": 1}')),
        ({"role": "user", "content": [{}]}, Message("user", "")),
        ({"content": None}, Message("user", "")),
    ],
)
def test_any_message_has_words(data, expected):
    assert as_message(data) == expected
