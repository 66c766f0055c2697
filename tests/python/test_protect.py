"""What is protected stays word for word, whoever wrote it and whatever carries it, and no provider is told."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, CompactPolicy, InsufficientBudget, MemoryStorage, Message, validate
from compact.wire import Codec, dumps

from .conftest import chat, config

RULE = "RULE SEVEN: run on ARM, and never on a Friday."
WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini")


def said(wire: str, role: str, text: str) -> dict[str, Any]:
    """A message in the words of a provider."""
    if wire == "gemini":
        return {"role": {"assistant": "model"}.get(role, role), "parts": [{"text": text}]}
    if wire == "openai-responses":
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"role": role, "content": text}


def looked_up(wire: str, call: str, result: str) -> list[dict[str, Any]]:
    """A call and its result in the words of a provider."""
    if wire == "gemini":
        return [
            {"role": "model", "parts": [{"functionCall": {"id": call, "name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": call, "name": "look", "response": {"output": result}}}]},
        ]
    if wire == "openai-responses":
        return [
            {"type": "function_call", "call_id": call, "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": call, "output": result},
        ]
    if wire == "anthropic":
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": result}]},
        ]
    function = {"name": "look", "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call, "content": result},
    ]


def talk(wire: str, turns: range) -> list[dict[str, Any]]:
    filler = "stock order price cart " * 20
    roles = ("user", "assistant")
    return [said(wire, role, f"{n}: {filler}") for n in turns for role in roles]


def history(wire: str) -> list[dict[str, Any]]:
    return [said(wire, "user", "start"), said(wire, "assistant", "ok"), said(wire, "user", RULE), said(wire, "assistant", "noted")]


def sdk(wire: str, item: dict[str, Any]) -> Any:
    """The same message as an object of the provider's SDK that may carry more than its class knows."""
    if wire == "openai-responses":
        from openai.types.responses.response_input_item import Message as Item

        return Item.model_validate(item)
    if wire == "openai-chat":
        from openai.types.chat import ChatCompletionMessage

        return ChatCompletionMessage.model_construct(**item)
    if wire == "anthropic":
        from anthropic import BaseModel

        class Turn(BaseModel):
            role: str
            content: Any

        return Turn.model_validate(item)
    from google.genai.types import Content

    return Content.model_validate(item)


def plain(item: Any) -> Any:
    return json.loads(dumps(Codec().dump(item)))


def summaries(view: list[Any]) -> int:
    return sum("<COMPACT-SUMMARY v" in dumps(plain(item)) for item in view)


@pytest.mark.parametrize("wire", WIRES)
def test_a_dict_stays_as_it_was_through_six_compactions_and_is_sent_bare(wire):
    manager = CompactManager(config(window=3_000, format=wire))
    rule = {**said(wire, "user", RULE), "meta": {"protected": True}}
    messages = [*history(wire)[:2], rule, *history(wire)[3:]]
    before, bare = copy.deepcopy(rule), said(wire, "user", RULE)
    for n in range(0, 120, 4):
        messages += talk(wire, range(n, n + 4))
        sent = manager.preflight("s", messages)
        assert sent.count(bare) == 1
        assert not any("meta" in item for item in sent)
        assert not [v for v in validate(sent, wire) if v.name == "known-members"]
    receipts = manager.receipts("s")
    assert len(receipts) >= 6 and rule == before
    assert all(rule in manager.restore(receipt.id) for receipt in receipts)
    assert [manager.verify(receipt.id) for receipt in receipts] == [[]] * len(receipts)


@pytest.mark.parametrize("wire", WIRES)
def test_a_flag_is_remembered_where_the_view_becomes_the_history(wire):
    manager = CompactManager(config(window=3_000, format=wire))
    messages = [*history(wire), *talk(wire, range(3))]
    messages[2] = {**messages[2], "meta": {"protected": True}}
    for n in range(3, 120, 4):
        messages = manager.preflight("s", [*messages, *talk(wire, range(n, n + 4))])
        assert messages.count(said(wire, "user", RULE)) == 1
        assert summaries(messages) <= 1
    assert len(manager.receipts("s")) >= 6


@pytest.mark.parametrize("wire", WIRES)
def test_an_object_of_an_sdk_is_protected_by_its_meta_or_by_a_call(wire):
    manager = CompactManager(config(window=3_000, format=wire))
    item = said(wire, "user", RULE)
    if wire == "gemini":  # Its class takes nothing that it does not know.
        rule = sdk(wire, item)
        assert len(manager.protect("s", [rule])) == 1
    else:
        rule = sdk(wire, {**item, "meta": {"protected": True}})
    messages: list[Any] = [*history(wire)[:2], rule, *history(wire)[3:]]
    for n in range(0, 120, 4):
        messages += talk(wire, range(n, n + 4))
        sent = manager.preflight("s", messages)
        assert [plain(m) for m in sent].count(plain(sdk(wire, item))) == 1
        assert not any("protected" in dumps(plain(m)) for m in sent)
    kinds = {type(m) for m in sent if RULE in dumps(plain(m)) and "SUMMARY" not in dumps(plain(m))}
    assert kinds == {type(rule)} and len(manager.receipts("s")) >= 6


@pytest.mark.parametrize("wire", [*WIRES[::2], None])
def test_a_message_is_protected_by_its_meta(wire):
    if wire == "openai-responses":
        pytest.skip("its items are not messages with a text")
    manager = CompactManager(config(window=3_000, format=wire))
    rule = Message("user", RULE, {"protected": True})
    messages = [Message("user", "start"), Message("assistant", "ok"), rule, Message("assistant", "noted")]
    for n in range(0, 120, 4):
        for turn in range(n, n + 4):
            messages += [Message("user", f"{turn}: " + "stock " * 80), Message("assistant", "cart " * 80)]
        sent = manager.preflight("s", messages)
        assert sum(m is rule for m in sent) == 1
    assert len(manager.receipts("s")) >= 6


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["meta", "call", "pattern"])
def test_what_is_protected_and_does_not_fit_is_refused(wire, how):
    policy = CompactPolicy(protected_patterns=("^rule rule",) if how == "pattern" else ())
    manager = CompactManager(config(window=2_000, format=wire, policy=policy))
    rule = said(wire, "user", "rule " * 3_000)
    if how == "call":
        manager.protect("s", [rule])
    messages = [*history(wire), {**rule, "meta": {"protected": True}} if how == "meta" else rule]
    with pytest.raises(InsufficientBudget):
        manager.preflight("s", [*messages, *talk(wire, range(20))])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["meta", "call", "result"])
def test_a_protected_result_keeps_its_exchange(wire, how):
    manager = CompactManager(config(window=3_000, format=wire))
    call, result = looked_up(wire, "c1", f"the answer is 42. {RULE}")
    messages = [said(wire, "user", "start"), call, {**result, "meta": {"protected": True}} if how == "meta" else result]
    if how != "meta":
        manager.protect("s", [call, result] if how == "call" else [result])
    for n in range(0, 60, 4):
        messages += [said(wire, "assistant", "so"), *talk(wire, range(n, n + 4))]
        sent = manager.preflight("s", messages)
        assert (sent.count(call), sent.count(result)) == (1, 1)
    assert len(manager.receipts("s")) >= 3


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_protected_later_comes_back(wire):
    manager = CompactManager(config(window=3_000, format=wire))
    messages = [*history(wire), *talk(wire, range(40))]
    bare = said(wire, "user", RULE)
    assert bare not in manager.preflight("s", messages)
    manager.protect("s", [bare])
    assert manager.preflight("s", messages).count(bare) == 1
    assert len(manager.receipts("s")) == 2
    messages[2] = {**messages[2], "meta": {"protected": True}}
    assert manager.preflight("s", messages).count(bare) == 1
    other = CompactManager(config(window=3_000, format=wire))
    messages[2] = bare
    assert bare not in other.preflight("t", messages)
    messages[2] = {**bare, "meta": {"protected": True}}
    assert other.preflight("t", messages).count(bare) == 1


def test_what_is_protected_by_a_call_stays_so_in_the_next_process(tmp_path):
    from compact import FileStorage

    def manager() -> CompactManager:
        return CompactManager(config(window=3_000, storage=FileStorage(str(tmp_path)), format="anthropic"))

    messages = [*history("anthropic"), *talk("anthropic", range(60))]
    names = manager().protect("s", [messages[2]])
    later = manager()
    assert messages[2] in later.preflight("s", messages)
    assert messages[2] not in later.preflight("other", messages)
    receipt = later.receipts("s")[-1]
    assert receipt["policy"]["protected_entries"] == names
    assert manager().verify(receipt.id) == []
    assert manager().unprotect("s", [messages[2]]) == names
    # The view that there is stays as it is; the next one may leave it out.
    grown = [*messages, *talk("anthropic", range(60, 120))]
    assert messages[2] not in manager().preflight("s", grown)
    assert manager().verify(receipt.id) == []


def test_another_key_of_meta_protects_where_the_policy_says_so():
    manager = CompactManager(config(window=3_000, format="gemini", policy=CompactPolicy(protected_flag="pin")))
    messages = [*history("gemini"), *talk("gemini", range(60))]
    messages[2] = {**messages[2], "meta": {"pin": 1}}
    messages[3] = {**messages[3], "meta": {"protected": True}}
    sent = manager.preflight("s", messages)
    assert said("gemini", "user", RULE) in sent
    assert said("gemini", "assistant", "noted") not in sent


def test_what_says_nothing_cannot_be_named():
    manager = CompactManager(config(format="openai-chat"))
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    with pytest.raises(Exception, match=r"messages\[0\] has no content to recognise it by"):
        manager.protect("s", [{"role": "user", "content": [image]}])


def test_two_protected_images_with_the_same_words_are_two():
    manager = CompactManager(config(window=4_000, format="openai-chat"))

    def image(name: str) -> dict[str, Any]:
        part = {"type": "image_url", "image_url": {"url": f"https://x/{name}.png", "detail": "low"}}
        return {"role": "user", "content": [{"type": "text", "text": "look"}, part]}

    messages = [said("openai-chat", "user", "start"), *({**image(n), "meta": {"protected": True}} for n in "ab")]
    sent = manager.preflight("s", [*messages, *talk("openai-chat", range(60))])
    assert image("a") in sent and image("b") in sent


def test_meta_is_not_counted_and_goes_nowhere_when_the_engine_fails():
    import compact

    noise = {"protected": True, "note": "word " * 500}
    messages = chat(3)
    flagged = [{**m, "meta": noise} for m in messages]
    assert compact.account(flagged).total == compact.account(messages).total
    manager = CompactManager(CompactConfig("gpt-5", 4_000, storage=MemoryStorage(), format="openai-chat"))
    broken = [*flagged, {"role": "user", "content": 7, "meta": noise}]
    prepared = manager.try_prepare("s", broken)
    assert prepared is not None and not any("meta" in m for m in prepared.messages)
    assert manager.try_prepare("s", [{"role": "user", "content": 7}]) is None
