"""A history that is passed again: what is known is not encoded twice, and no edit of it is missed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from compact import CompactManager, Message, wire
from compact.wire import Codec, encode_messages

from .conftest import chat, config
from .test_kinds import Said, anthropic, gemini, responses

ROOMY = 1_000_000


def edit_text(history: list[Any]) -> None:
    history[1]["content"] = "Mend nothing. " * 50


def edit_deep_down(history: list[Any]) -> None:
    history[2]["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": "elsewhere " * 50})


def add_a_member(history: list[Any]) -> None:
    history[4]["refusal"] = "I would rather not. " * 50


def remove_a_member(history: list[Any]) -> None:
    del history[2]["tool_calls"]


def replace(history: list[Any]) -> None:
    history[1] = {"role": "user", "content": "Another question " * 50}


def remove(history: list[Any]) -> None:
    del history[1:5]


def insert(history: list[Any]) -> None:
    history.insert(1, {"role": "user", "content": "Before anything else " * 50})


def swap(history: list[Any]) -> None:
    history[1], history[5] = history[5], history[1]


EDITS = [edit_text, edit_deep_down, add_a_member, remove_a_member, replace, remove, insert, swap]


@pytest.fixture
def steady() -> CompactManager:
    return CompactManager(config(ROOMY))


def afresh(history: list[Any], **how: Any) -> Any:
    """What a manager that has never seen the history says of it."""
    return CompactManager(config(ROOMY)).prepare("s", history, **how)


def archived(manager: CompactManager, history: list[Any]) -> list[Any]:
    manager.manual_compact("s", history)
    return manager.restore("s")


@pytest.mark.parametrize("name", ["s", None])
def test_what_is_known_is_not_written_again(name, steady, monkeypatch):
    history = chat(20)
    steady.preflight(name, history)
    written: list[Any] = []
    dumps = wire.dumps
    monkeypatch.setattr(wire, "dumps", lambda value: written.append(value) or dumps(value))
    history.append({"role": "user", "content": "And now?"})
    # Clients that read their requests from bytes have other objects every time.
    sent = steady.preflight(name, [history[0], *copy.deepcopy(history[1:])])
    assert sent == history
    assert [value for value in written if "role" in value] == history[-1:]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_an_old_message_is_seen(steady, edit: Callable[[list[Any]], None]):
    history = chat(20)
    before = steady.prepare("s", history)
    edit(history)
    after = steady.prepare("s", history)
    assert after.messages == history and all(a is b for a, b in zip(after.messages, history, strict=True))
    assert after.decision == afresh(history).decision
    assert (after.decision.tokens != before.decision.tokens) or edit is swap
    assert archived(steady, history) == history


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_what_a_view_left_out_is_seen(manager, edit: Callable[[list[Any]], None]):
    history = chat(60)
    view = manager.preflight("s", history)
    assert manager.preflight("s", history) == view and len(view) < len(history)
    edit(history)
    sent = manager.prepare("s", history)
    assert sent.receipt is not None, "the view of another history is no view of this one"
    assert manager.restore(sent.receipt.id) == history


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *[(1, True), (0, False), (1, 1.0), (0.0, -0.0), ("1", 1), (None, False), ([], {}), ([1, [2]], [1, 2])],
        *[({1: "a"}, {"1": "b"}), (SimpleNamespace(), None), (("a",), ("b",))],
    ],
)
def test_values_that_python_calls_equal_are_told_apart(before, after):
    message = {"role": "user", "content": "hi", "meta": {"flag": before}}
    encoded = encode_messages([message], Codec())
    message["meta"]["flag"] = after
    assert encode_messages([message], Codec(), before=encoded).texts == encode_messages([message], Codec()).texts


class Rude:
    """Says that it equals any text, and fails when it is asked about one."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.type, self.text = fails, "text", "mine"

    def __eq__(self, other: object) -> bool:
        if self.fails:
            raise AttributeError(other)
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("fails", [True, False])
def test_what_the_callers_objects_say_of_equality_does_not_count(fails):
    history = [{"role": "user", "content": "mine"}, {"role": "user", "content": Rude(fails)}]
    encoded = encode_messages(history, Codec())
    assert encode_messages(history[1:], Codec(), before=encoded).texts == encoded.texts[1:]


def test_the_order_of_members_is_told_as_it_is():
    encoded = encode_messages([{"role": "user", "content": "hi"}], Codec())
    turned = [{"content": "hi", "role": "user"}]
    assert encode_messages(turned, Codec(), before=encoded).texts == encode_messages(turned, Codec()).texts


@pytest.mark.parametrize("build", [lambda m: Said(**m), lambda m: Message(m["role"], m["content"] or "")])
def test_objects_may_be_edited_in_place(steady, build):
    history = [build(message) for message in chat(20)]
    before = steady.prepare("s", history)
    history[1].content = "Mend nothing. " * 50
    after = steady.prepare("s", history)
    assert after.decision == afresh(history).decision != before.decision


def test_objects_within_dicts_may_be_edited_in_place(steady):
    class Part:
        def __init__(self, text: str) -> None:
            self.type, self.text = "text", text

    part = Part("short")
    history = [{"role": "user", "content": [part]}, *chat(3)[1:]]
    before = steady.prepare("s", history)
    part.text = "long " * 50
    assert steady.prepare("s", history).decision.tokens > before.decision.tokens + 40


def nested(depth: int) -> list[Any]:
    tree: list[Any] = []
    for _ in range(depth):
        tree = [tree]
    return tree


def test_messages_may_be_as_deep_as_json_may(steady):
    history = [{"role": "user", "content": "hi", "tree": nested(480)}]
    for _ in range(3):
        assert steady.preflight("s", history) == history


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_random_edits_leave_no_difference_to_a_first_look(format):
    kinds = {"anthropic": anthropic, "openai-responses": responses, "gemini": gemini}
    build = kinds.get(format, chat)
    history: list[Any] = build(12)
    rng = random.Random(11)
    codec = Codec(format)
    steady = CompactManager(config(ROOMY))
    for step in range(60):
        history = edited(history, rng, step)
        how = {"codec": codec, "system": rng.choice(["Be brief.", "Be long."])}
        now, first = steady.prepare("s", history, **how), afresh(history, **how)
        assert now.decision == first.decision
        assert [id(m) for m in now.messages] == [id(m) for m in history]
    history = [*history, *build(30)]
    steady.manual_compact("s", history, codec=codec)
    assert steady.restore("s") == history


def edited(history: list[Any], rng: random.Random, step: int) -> list[Any]:
    """Grown by what the history holds already, mostly; now and then cut, or edited in place."""
    at = rng.randrange(1, len(history))
    match rng.randrange(8):
        case 0:
            return history[: max(4, at)]
        case 1:
            del history[at]
        case 2:
            history[at]["name"] = f"n{step}"
        case 3:
            history = copy.deepcopy(history)
        case _:
            end = at + rng.randrange(1, 5)
            history = [*history, *copy.deepcopy(history[at:end])]
    return history


def test_threads_that_tell_one_session_different_things_do_not_mix_them_up():
    manager = CompactManager(config(ROOMY))
    histories = [chat(8, seed=seed) for seed in range(4)]

    def tell_it(turn: int) -> bool:
        history = [*histories[turn % 4], {"role": "user", "content": f"{turn} " * turn}]
        prepared = manager.prepare("s", history)
        same = all(a is b for a, b in zip(prepared.messages, history, strict=True))
        return same and prepared.decision == afresh(history).decision

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(tell_it, range(80)))


def test_a_session_that_was_forgotten_is_told_whole(steady):
    history = chat(20)
    steady.preflight("s", history)
    steady.forget("s")
    history[1]["content"] = "Mend nothing. " * 50
    history.append({"role": "user", "content": "And now?"})
    assert steady.prepare("s", history).decision == afresh(history).decision
    assert archived(steady, history) == history


def test_a_view_may_be_passed_back_and_grow(manager):
    history = chat(60)
    for turn in range(40):
        history = manager.preflight("s", [*history, *chat(1, seed=turn)[1:]])
    assert len(history) < 120 and len(manager.receipts("s")) > 1
