"""Whoever uses an app sees nothing of anybody else's: in parallel, across processes and restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from .isolation import KINDS, Chat, foreign, manager_of

#: Requests of each person in each part of a test.
REQUESTS = max(40, int(os.environ.get("COMPACT_TRIALS", "1")))

USERS = ["WALDEMAR", "ZEPHYRINE", "OTTOKAR"]


def in_parallel(*work: Any) -> None:
    failures: list[BaseException] = []

    def run(one: Any) -> None:
        try:
            one()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    [thread.start() for thread in threads]
    [thread.join(600) for thread in threads]
    if failures:
        raise failures[0]


def check(*chats: Chat) -> None:
    """Nobody's words in anybody else's prompt; everybody was compacted and is still known."""
    for chat in chats:
        assert len(chat.sent) >= REQUESTS
        assert foreign(chat, USERS) == [], f"{len(foreign(chat, USERS))} of {len(chat.sent)} requests"
        assert "COMPACT-SUMMARY v" in chat.sent[-1]
        early = [f"{chat.user}-{kind}-{n:03}" for n in range(chat.asked - 15) for kind in ("ACC", "REF")]
        early += [f"rule-{n} " for n in range(1, 30)]  # what everybody said, where histories part late
        assert any(word in chat.sent[-1] for word in early), "what was said before is forgotten"


@pytest.mark.parametrize("kind", KINDS)
def test_two_users_have_nothing_of_each_other(kind, tmp_path):
    """At once, and after a restart: one goes on, another one begins."""
    first, second, third = (KINDS[kind](user) for user in USERS)
    manager = manager_of(tmp_path)
    in_parallel(lambda: first.talk(manager, REQUESTS), lambda: second.talk(manager, REQUESTS))
    check(first, second)
    again = manager_of(tmp_path)
    in_parallel(lambda: first.talk(again, 10), lambda: third.talk(again, REQUESTS))
    check(first, second, third)


@pytest.mark.parametrize("most", [256, 1])
@pytest.mark.parametrize("kind", ["Plain", "OneName"])
def test_histories_that_part_late_have_nothing_of_each_other(kind, most, tmp_path):
    """The first compactions are of what everybody said; then each goes on alone, by turns."""

    class Late(KINDS[kind]):  # type: ignore[misc]
        def question(self, n: int) -> str:
            return f"Always keep rule-{n} of the house. " + "Mind the stock. " * 12 if n < 30 else super().question(n)

        def answer(self, n: int) -> str:
            return f"Rule-{n} is kept. " + "The cart was counted. " * 8 if n < 30 else super().answer(n)

    chats = [Late(user) for user in USERS]
    manager = manager_of(tmp_path, max_sessions=most)
    for _ in range(max(REQUESTS, 30 + REQUESTS // 2)):
        for chat in chats:
            chat.talk(manager, 1)
    check(*chats)


@pytest.mark.parametrize("kind", ["Plain", "OneName", "OpenAIChat", "AgentsFilter"])
def test_processes_have_nothing_of_each_other(kind, tmp_path):
    def process(user: str) -> subprocess.Popen[str]:
        arguments = ["-m", "tests.python.isolation", kind, str(tmp_path), user, str(REQUESTS)]
        return subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)

    running = {user: process(user) for user in USERS[:2]}
    for user, one in running.items():
        out, _ = one.communicate(timeout=600)
        assert one.returncode == 0
        chat = KINDS[kind](user)
        chat.sent, chat.asked = json.loads(out), REQUESTS
        check(chat)


# Histories that are taken back.



class Clerk:
    """An agent of the SDK that answers at length, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def agent(self) -> Any:
        from agents import Agent
        from agents.testing import ModelStep, ScriptedModel, assistant_message

        clerk = self

        class Seeing(ScriptedModel):
            async def get_response(self, system_instructions, input, *args, **kwargs):
                clerk.sent.append(json.dumps(input))
                return await super().get_response(system_instructions, input, *args, **kwargs)

        n = len(self.sent)
        words = f"Answer {n}. " + "All is well here. " * 60
        return Agent(name="a", model=Seeing([ModelStep(output=[assistant_message(words, item_id=f"m{n}")])]))

    async def ask(self, question: str, **how: Any) -> None:
        from agents import RunConfig, Runner

        run_config = RunConfig(tracing_disabled=True, call_model_input_filter=how.pop("filter", None))
        await Runner.run(self.agent(), question, run_config=run_config, **how)


async def test_a_cleared_session_takes_nothing_along(tmp_path):
    from agents import SQLiteSession

    from compact.hooks import CompactSession

    manager, clerk = manager_of(tmp_path), Clerk()
    session = CompactSession("u", manager, SQLiteSession("u"))
    for n in range(30):
        await clerk.ask(f"OLDSECRET-{n} please, always", session=session)
    assert len(manager.receipts("u")) >= 2 and "OLDSECRET" in clerk.sent[-1]
    await session.clear_session()
    begun = len(clerk.sent)
    for n in range(REQUESTS):
        await clerk.ask(f"new topic {n}", session=session)
    later = clerk.sent[begun:]
    assert len(later) >= 40 and [sent for sent in later if "OLDSECRET" in sent] == []
    assert "COMPACT-SUMMARY v" in later[-1] and "OLDSECRET" not in str(manager.remember("u").ledger)


@pytest.mark.parametrize("place", ["filter", "named filter", "session"])
async def test_a_rule_that_was_taken_back_does_not_return(place, tmp_path):
    from agents import SQLiteSession

    from compact.hooks import CompactSession, compact_filter

    manager, clerk, record = manager_of(tmp_path), Clerk(), SQLiteSession("u")
    session = CompactSession("u", manager, record) if place == "session" else record
    how: dict[str, Any] = {"session": session}
    if place != "session":
        how["filter"] = compact_filter(manager, "u" if place == "named filter" else None)
    for n in range(6):
        await clerk.ask(f"question {n} on file_{n}.py", **how)
    await clerk.ask("Standing rule: from now on always deploy to REGION-WRONG-7.", **how)
    for n in range(6):
        await clerk.ask(f"more {n} on mod_{n}.py", **how)
    while "REGION-WRONG" in json.dumps(await session.get_items()):
        await session.pop_item()
    begun = len(clerk.sent)
    for n in range(REQUESTS):
        await clerk.ask(f"again {n} on other_{n}.py", **how)
    later = clerk.sent[begun:]
    assert len(later) >= 40 and [sent for sent in later if "REGION-WRONG" in sent] == []
    assert "COMPACT-SUMMARY v" in later[-1]


def said(word: str, turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        messages += [
            {"role": "user", "content": f"{word}: always mend {word}-{n:03} in src/{word}_{n}.py"},
            {"role": "assistant", "content": f"Decision: {word}-{n:03} is mended. " + "All tests pass. " * 30},
        ]
    return messages


@pytest.mark.parametrize("between", ["nothing", "forget", "restart"])
def test_a_new_chat_under_an_old_name_is_new(between, tmp_path):
    manager = manager_of(tmp_path)
    system = [{"role": "system", "content": "You help."}]
    assert manager.prepare("u", [*system, *said("OLDCHAT", 45)]).receipt is not None
    if between == "forget":
        manager.forget("u")
    if between == "restart":
        manager = manager_of(tmp_path)
    for turns in (2, 45, 60):
        view = manager.preflight("u", [*system, *said("NEWCHAT", turns)])
        assert "OLDCHAT" not in json.dumps(view)
    assert "COMPACT-SUMMARY v" in json.dumps(view)


def test_what_only_an_abandoned_branch_said_is_gone(tmp_path):
    manager = manager_of(tmp_path)
    trunk = said("TRUNK", 20)
    for name in ("named", None):
        assert manager.prepare(name, [*trunk, *said("WRONG", 12)]).receipt is not None
        view = manager.prepare(name, [*trunk, *said("RIGHT", 14)])
        words = json.dumps(view.messages)
        assert "WRONG" not in words and "TRUNK" in words and "COMPACT-SUMMARY v" in words


# What a framework calls a conversation.


def test_a_thread_of_langchain_names_the_session(tmp_path):
    from .isolation import LangChainThread

    manager, chat = manager_of(tmp_path), LangChainThread("ann")
    chat.talk(manager, 40)
    assert manager.receipts("thread of ann")


def test_an_agent_within_a_graph_is_a_conversation_of_its_own(tmp_path):
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    from .isolation import LangChainPlain

    manager, chat = manager_of(tmp_path), LangChainPlain("ann")
    for n in range(25):
        graph = StateGraph(MessagesState)
        graph.add_node("clerk", chat.agent(manager, chat.answer(n)))
        graph.add_edge(START, "clerk")
        chat.saver = chat.saver or InMemorySaver()
        app = graph.compile(checkpointer=chat.saver)
        app.invoke({"messages": [("user", chat.question(n))]}, {"configurable": {"thread_id": "outer"}})
    assert "COMPACT-SUMMARY v" in chat.sent[-1] and manager.receipts("outer") == []


def test_names_in_parts_are_never_the_same():
    from compact.identity import join_session_name

    names = [join_session_name("a/b", "c"), join_session_name("a", "b/c"), join_session_name("a%2Fb", "c"), join_session_name("a", "b", "c")]
    assert names == ["a%2Fb/c", "a/b%2Fc", "a%252Fb/c", "a/b/c"]
    assert join_session_name("shop", "ann@example.com", 7) == "shop/ann@example.com/7"


def test_one_session_keeps_its_chain_whatever_the_shape(tmp_path):
    """Plain messages, until the first tool call or block tells whose they are."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tools = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "result"},
    ]
    blocks = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "n", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]},
    ]
    asked = {"role": "user", "content": "and now?"}
    for name, more in (("openai", tools), ("anthropic", blocks), (None, tools), (None, blocks)):
        manager = manager_of(tmp_path / f"{name}-{more is tools}")
        history = said("SHAPE", 40)
        first = manager.prepare(name, history)
        assert first.receipt is not None and first.receipt.summary_version == 1
        plain = manager.prepare(name, [*history, asked])
        whole = [*history, asked, *more]
        drifted = manager.prepare(name, whole)
        assert (plain.receipt, drifted.receipt) == (None, None)
        assert plain.session_id == drifted.session_id == first.session_id
        # Another wire may want its summary said by somebody else, and a bridge; it is the same summary.
        kept, shown = ([m["content"] for m in view.messages] for view in (plain, drifted))
        assert [text for text in shown if "messages left out here" not in str(text)][: len(kept)] == kept
        assert len(manager.receipts(first.session_id)) == 1
        grown = manager.prepare(name, [*whole, *said("LATER", 60)])
        assert grown.receipt is not None and grown.receipt.summary_version == 2
        assert "SHAPE-000" in json.dumps(manager.restore(first.session_id))
