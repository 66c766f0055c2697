"""A conversation to which messages are added gives what passing the whole of it gives."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from compact import CompactManager, FileStorage, FormatError, LiveSession, Message, wire

from .conftest import chat, config
from .test_kinds import anthropic, gemini, responses

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def whole(history: list[Any], window: int, **how: Any) -> Any:
    """What a manager says of a history that it is passed message by message, each time from the start."""
    manager = CompactManager(config(window))
    for end in range(1, len(history) + 1):
        manager._encoded.clear()
        made = manager.prepare("s", history[:end], **how)
    return made


def texts(messages: list[Any]) -> list[str]:
    return [wire.dumps(wire.Codec().dump(message)) for message in messages]


@pytest.mark.parametrize("make", [chat, anthropic, responses, gemini])
@pytest.mark.parametrize("window", [4_000, 1_000_000])
def test_what_was_added_is_answered_as_if_it_had_been_passed(make, window):
    history = make(14)
    live = CompactManager(config(window)).session("s")
    for message in history:
        made = live.prepare(message)
    known = whole(history, window)
    assert texts(made.messages) == texts(known.messages)
    assert made.decision == known.decision
    assert live.messages == history


def test_only_what_is_new_is_read_by_the_engine(monkeypatch):
    manager = CompactManager(config(1_000_000))
    live = manager.session("s", chat(20), system="You mend a shop.", tools=TOOLS)
    live.append({"role": "user", "content": "And now?"})
    passed: list[int] = []
    engine = manager._engine()

    class Watching:
        def append(self, name, mark, items):
            passed.append(len(items))
            return engine.append(name, mark, items)

        def __getattr__(self, name):
            assert name != "preflight", "the whole history was passed again"
            return getattr(engine, name)

    monkeypatch.setattr(manager, "_engine", lambda: Watching())
    live.append({"role": "assistant", "content": "This."}, {"role": "user", "content": "Why?"})
    manager.preflight("s", [*live.messages, {"role": "assistant", "content": "So."}], system="You mend a shop.", tools=TOOLS)
    assert passed == [2, 1]


def test_a_history_that_another_call_changed_is_passed_whole():
    manager = CompactManager(config(1_000_000))
    live = manager.session("s", chat(3))
    live.append({"role": "user", "content": "One."})
    manager.preflight("s", chat(9))
    made = live.prepare({"role": "assistant", "content": "Two."})
    assert made.messages == [*chat(3), {"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    manager.forget("s")
    assert len(live.append({"role": "user", "content": "Three."})) == len(live.messages)


def test_flags_of_what_is_added_protect_it_and_are_not_sent():
    manager = CompactManager(config(4_000))
    live = manager.session("s")
    rule = {"role": "user", "content": "Never deploy on a Friday.", "meta": {"protected": True}}
    live.append(rule)
    for message in chat(40)[1:]:
        sent = live.append(message)
    assert manager.receipts("s")
    assert {"role": "user", "content": "Never deploy on a Friday."} in sent
    assert all("meta" not in message for message in sent)


def test_messages_of_every_kind_can_be_added():
    live = CompactManager(config(1_000_000)).session("s")
    first = Message("user", "Hello")
    assert live.append(first) == [first]
    second = Message("assistant", "Good morning")
    assert asyncio.run(live.aappend(second)) == [first, second]
    assert "2 messages" in repr(live) and "Hello" not in repr(live)
    assert isinstance(live, LiveSession)


def test_a_message_that_cannot_be_read_names_its_place():
    live = CompactManager(config(1_000_000)).session("s", chat(2))
    live.append({"role": "user", "content": "One."})
    with pytest.raises(Exception, match=r"messages\[0\] cannot be read"):
        live.append(b"bytes")
    assert len(live.append({"role": "user", "content": "Two."})) == len(chat(2)) + 2


def test_what_was_compacted_is_indexed_without_a_search(tmp_path):
    with CompactManager(config(storage=FileStorage(tmp_path))) as manager:
        manager.preflight("s", chat(60))
    indexed = sqlite3.connect(tmp_path / "recall.db").execute("SELECT count(*) FROM receipts")
    assert indexed.fetchone() == (1,)
    with CompactManager(config(storage=FileStorage(tmp_path))) as manager:
        assert manager.recall("part_3")


@pytest.mark.parametrize("refused", [{"role": "user", "content": 5}, {"no": "role"}, b"bytes"])
@pytest.mark.parametrize("said", [0, 2])
def test_a_message_that_is_refused_does_not_stay(refused, said):
    live = CompactManager(config(1_000_000)).session("s", chat(said) if said else ())
    live.append({"role": "user", "content": "One."})
    before = live.messages
    for _ in range(2):
        with pytest.raises(FormatError):
            live.append({"role": "assistant", "content": "Two."}, refused)
        assert live.messages == before
    assert live.append({"role": "assistant", "content": "Two."}) == [*before, {"role": "assistant", "content": "Two."}]
    empty = CompactManager(config(1_000_000)).session("s")
    with pytest.raises(FormatError):
        empty.append(refused)
    assert empty.append({"role": "user", "content": "One."}) == [{"role": "user", "content": "One."}]
