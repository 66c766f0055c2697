"""The manager over plain dicts: what it sends, keeps, gives back and tells."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

import compact
from compact import (
    CompactConfig,
    CompactManager,
    CompactPolicy,
    FileStorage,
    InsufficientBudget,
    Message,
    NotFound,
    Receipt,
)

from .conftest import chat, config


def test_a_small_conversation_goes_out_as_it_is(manager):
    messages = chat(2)
    prepared = manager.prepare("s", messages)
    assert prepared.messages == messages
    assert all(a is b for a, b in zip(prepared.messages, messages))
    assert (prepared.decision.verdict, prepared.receipt, prepared.system) == ("stay", None, None)


def test_a_full_window_is_compacted_into_one_summary(manager):
    messages = chat(60)
    sent = manager.preflight("s", messages)
    summaries = [m for m in sent if str(m["content"]).startswith("<COMPACT-SUMMARY v1>")]
    assert len(summaries) == 1 and summaries[0]["role"] == "assistant"
    assert compact.account(sent, model="gpt-5").total < 0.85 * 4_000
    assert compact.validate(sent, "openai-chat") == []


def test_what_stays_is_the_callers_own_object(manager):
    messages = chat(60)
    own = {id(message) for message in messages}
    sent = manager.preflight("s", messages)
    assert sent[0] is messages[0] and sent[-1] is messages[-1]
    # The summary is new, and what was cut is.
    assert all(id(message) in own or "chars cut" in str(message) or "COMPACT-SUMMARY" in str(message) for message in sent)


def test_the_same_history_gives_the_same_messages(manager):
    messages = chat(60)
    first = manager.preflight("s", messages)
    again = manager.preflight("s", messages)
    longer = manager.preflight("s", [*messages, {"role": "user", "content": "And now?"}])
    assert json.dumps(again) == json.dumps(first)
    assert json.dumps(longer[:-1]) == json.dumps(first)
    assert all(a is b for a, b in zip(first, longer))


def test_the_original_comes_back(manager):
    messages = chat(60)
    receipt = manager.prepare("s", messages).receipt
    more = [*messages, *chat(40, seed=8)[1:]]
    manager.preflight("s", more)
    assert manager.restore(receipt.id) == messages
    assert manager.restore("s") == more
    assert [manager.verify(r.id) for r in manager.receipts("s")] == [[], []]


def test_a_history_that_was_replaced_by_its_view_goes_on_from_it(manager):
    view = manager.preflight("s", chat(60))
    prepared = manager.prepare("s", [*view, *chat(40, seed=8)[1:]])
    assert prepared.receipt.summary_version == 2
    assert prepared.receipt["previous"] == manager.receipts("s")[0].id


def test_another_process_goes_on_from_a_view(tmp_path):
    first = CompactManager(config(storage=FileStorage(tmp_path)))
    view = first.preflight("s", chat(60))
    later = CompactManager(config(storage=FileStorage(tmp_path)))
    prepared = later.prepare("s", [*view, *chat(40, seed=8)[1:]])
    assert prepared.receipt.summary_version == 2
    assert "E" in str(later.remember("s"))


def test_a_manual_compaction_saves_at_least_40_percent():
    manager = CompactManager(config(window=100_000))
    messages = chat(60)
    prepared = manager.prepare("s", messages, note="user-command")
    assert prepared.receipt["note"] == "user-command"
    before = compact.account(messages, model="gpt-5").total
    sent = CompactManager(config(window=20_000)).manual_compact("t", messages)
    assert compact.account(sent, model="gpt-5").total <= 0.6 * before


def test_protected_messages_stay_byte_for_byte(manager):
    policy = {"role": "user", "content": "Never touch billing. " * 9, "meta": {"protected": True}}
    messages = chat(60)
    messages.insert(9, policy)
    sent = {"role": "user", "content": policy["content"]}
    assert manager.preflight("s", messages).count(sent) == 1


def test_what_is_pinned_and_does_not_fit_is_refused():
    manager = CompactManager(config(window=2_000))
    pinned = {"role": "user", "content": "rule " * 4_000, "meta": {"protected": True}}
    with pytest.raises(InsufficientBudget, match="insufficient budget") as error:
        manager.preflight("s", [*chat(30), pinned])
    assert error.value.pinned_tokens > error.value.budget > 0
    assert error.value.needed >= error.value.pinned_tokens
    assert isinstance(error.value, compact.CompactError)


def test_events_have_the_schema(manager, events):
    manager.preflight("s", chat(60))
    assert manager.flush()
    names = [event["event"] for event in events]
    for name in ("token_estimate", "trigger_decision", "summary_created", "pruned_messages", "policy_applied"):
        assert f"compact.{name}" in names
    decision = events[names.index("compact.trigger_decision")]
    assert {"ts", "session_id", "model", "t_est", "max", "policy", "kept", "pruned_count"} <= decision.keys()
    assert decision["policy"] == {"trigger_pct": 0.85, "buffer": 1024}
    assert decision["session_id"] == "s" and decision["model"] == "gpt-5"


def test_without_storage_an_event_says_so(events):
    manager = CompactManager(config(storage=None, exporter=compact.CallbackExporter(events.append)))
    manager.preflight("s", chat(60))
    manager.flush()
    assert "compact.not_archived" in [event["event"] for event in events]
    with pytest.raises(NotFound, match="pass a storage to the manager"):
        manager.recall("anything")


def test_recall_and_expand_find_what_was_left_out(manager):
    messages = chat(60)
    manager.preflight("s", messages)
    hit = manager.recall("part_3.py mended", session_id="s")[0]
    assert "src/part_3.py" in hit.snippet and hit.session_id == "s"
    assert "src/part_3.py" in manager.expand(hit.pointer).content
    with pytest.raises(NotFound):
        manager.recall("part_3", session_id="nobody")


def test_secrets_are_shown_only_to_who_asks_for_them(manager):
    token = "ghp_" + "0a1B2c3D4e5F6g7H8i9J" * 2
    messages = chat(60)
    messages[1] = {"role": "user", "content": f"The zebra token is {token}."}
    manager.preflight("s", messages)
    (hit,) = manager.recall("zebra token", session_id="s", limit=1)
    (own,) = manager.recall("zebra token", session_id="s", limit=1, unredacted=True)
    found, mine = manager.expand(hit.pointer), manager.expand(hit.pointer, unredacted=True)
    for hidden, shown in ((hit.snippet, own.snippet), (found.content, mine.content)):
        assert token not in hidden and "REDACTED" in hidden
        assert token in shown
    assert token not in str(found.meta) and token in str(mine.meta)
    assert (found.meta["exact"], mine.meta["exact"]) == (False, True)


def test_what_i_remember_now(manager):
    manager.preflight("s", chat(60))
    memory = manager.remember("s")
    text = str(memory)
    assert text.startswith("What I remember now (summary v1):")
    assert "- system: You mend a shop." in text and memory.ledger
    with pytest.raises(NotFound):
        manager.remember("nobody")


def test_a_receipt_is_a_mapping_with_a_card(manager):
    receipt = manager.prepare("s<b>", chat(60)).receipt
    assert isinstance(receipt, Receipt) and len(receipt) > 20 and "retention" in list(receipt)
    assert 0.4 < receipt.saved < 1 and 0 < (receipt.retention or 0) <= 1
    assert json.loads(receipt.to_json())["receipt_id"] == receipt.id
    assert repr(receipt).startswith(f"<Receipt {receipt.id[:12]}")
    card = receipt._repr_html_()
    assert f"{receipt.tokens_before:,} → {receipt.tokens_after:,} tokens" in card
    assert "s&lt;b&gt;" in card and "<b>" in card and "width:" in card


def test_usage_reports_lead_to_compaction(manager):
    messages = chat(4)
    assert manager.prepare("s", messages).receipt is None
    manager.observe("s", {"prompt_tokens": 3_900, "completion_tokens": 5}, "openai-chat")
    later = manager.prepare("s", [*messages, {"role": "user", "content": "Next?"}])
    assert later.decision.verdict == "compact_now" and later.decision.tokens >= 3_900
    manager.observe("s", None, "openai-chat")
    with pytest.raises(compact.FormatError, match="unknown usage source"):
        manager.observe("s", {}, "nobody")


def test_a_refused_prompt_is_made_smaller_once(manager):
    messages = chat(8)
    refusal = json.dumps({"error": {"code": "context_length_exceeded", "message": "too long"}})
    manager.preflight("s", messages)
    smaller = manager.overflowed("s", messages, 400, refusal)
    assert compact.account(smaller).total < compact.account(messages).total
    assert manager.overflowed("s", messages, 400, refusal) is None
    assert manager.overflowed("s", messages, 429, '{"error": {"code": "rate_limit_exceeded"}}') is None


async def test_async_twins_do_not_hold_up_the_loop(manager):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    messages = chat(400)
    sent = await manager.apreflight("s", messages)
    ticking.cancel()
    assert ticks > 5
    assert sent == manager.preflight("s", messages)
    assert len(await manager.amanual_compact("t", messages)) < len(messages)
    assert (await manager.atry_prepare("t", messages)).messages


def test_threads_may_share_a_manager(manager):
    histories = {f"s{n}": chat(40, seed=n) for n in range(6)}
    alone = {name: CompactManager(config()).preflight(name, h) for name, h in histories.items()}
    together: dict[str, list] = {}

    def work(name):
        for _ in range(3):
            together[name] = manager.preflight(name, histories[name])

    threads = [threading.Thread(target=work, args=(name,)) for name in [*histories, *histories]]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert json.dumps(together, sort_keys=True) == json.dumps(alone, sort_keys=True)


def test_the_soft_threshold_compacts_in_the_background(events):
    manager = CompactManager(
        config(policy=CompactPolicy(soft_pct=0.3), exporter=compact.CallbackExporter(events.append))
    )
    messages = chat(10)
    assert manager.preflight("s", messages) == messages
    deadline = time.monotonic() + 20
    while manager.prepare("s", messages).receipt is None and time.monotonic() < deadline:
        time.sleep(0.02)
    manager.flush()
    assert "compact.swapped" in [event["event"] for event in events]
    assert not manager.idle("s", 1.0)


def test_sessions_beyond_the_bound_are_taken_up_again():
    manager = CompactManager(config(max_sessions=2))
    messages = chat(60)
    first = manager.preflight("a", messages)
    for name in "bcd":
        manager.preflight(name, chat(2))
    assert manager._native.session_count() == 2
    assert compact.validate(manager.preflight("a", messages), "openai-chat") == []
    assert len(first) < len(messages)
    manager.forget("a")
    manager.forget("a")
    assert manager._native.session_count() == 1


@pytest.mark.parametrize(
    ("messages", "error", "words"),
    [
        (None, TypeError, "messages must be a list of messages, found NoneType"),
        ("hello", TypeError, "found str"),
        ({"role": "user", "content": "x"}, TypeError, "found dict"),
        (["hello"], compact.FormatError, r"messages\[0\] cannot be read: str is not a message; pass the provider's dict"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": b"x"}], compact.FormatError, r"messages\[1\].*decode"),
        ([{"role": "user", "content": float("nan")}], compact.FormatError, r"messages\[0\]"),
        ([{"role": "user", "content": "\ud800"}], compact.FormatError, "surrogates"),
        ([{"content": "x"}], compact.FormatError, "give each a role, or name the format"),
        ([{"role": "user", "content": 7}], compact.FormatError, r"^messages\[0\]: `content` must be a string"),
    ],
)
def test_what_is_no_conversation_is_refused_in_words(manager, messages, error, words):
    with pytest.raises(error, match=words):
        manager.preflight("s", messages)


def test_arguments_that_are_wrong_are_told(manager):
    for session in (7, "", b"x"):
        with pytest.raises(TypeError, match="session_id must be a text"):
            manager.preflight(session, chat(1))
    with pytest.raises(TypeError, match="cfg must be a CompactConfig, found dict"):
        CompactManager({"model": "gpt-5"})
    assert manager.preflight("g", (m for m in chat(1))) == chat(1)
    assert manager.preflight("n", [{"role": "user", "content": None}]) == [{"role": "user", "content": None}]
    assert not manager.idle("g", float("inf")) and not manager.idle("g", float("nan"))
    with pytest.raises(InsufficientBudget, match="tokens are needed"):
        small = config(window=50, policy=CompactPolicy(hard_cap_buffer=10))
        CompactManager(small).preflight("s", [{"role": "user", "content": "hello there " * 100}])


def test_messages_that_are_none_are_refused(manager):
    with pytest.raises(compact.FormatError):
        manager.preflight("s", [{"no": "role"}])
    with pytest.raises(compact.FormatError):
        manager.prepare("s", [{"role": "user", "content": "x"}], codec=compact.Codec("nonsense"))
    assert manager.try_prepare("s", [{"no": "role"}]) is None


def test_instructions_and_tools_are_counted(manager):
    tools = [{"type": "function", "function": {"name": "read", "description": "word " * 3_000}}]
    messages = chat(4)
    assert manager.prepare("a", messages).decision.tokens < 2_000
    manager = CompactManager(config(window=9_000))
    assert manager.prepare("b", messages, tools=tools).decision.tokens > 3_000
    with_system = manager.prepare("c", messages[1:], system="Be kind. " * 500, codec=compact.Codec("anthropic"))
    assert with_system.decision.tokens > 1_000


def test_a_summary_may_stand_in_the_instructions():
    manager = CompactManager(config(policy=CompactPolicy(placement="system_suffix")))
    items = [
        {"role": ("user", "assistant")[n % 2], "content": f"Mend part {n}. " + "word " * 60}
        for n in range(81)
    ]
    prepared = manager.prepare("s", items, system="Be kind.", codec=compact.Codec("anthropic"))
    assert "Be kind." in json.dumps(prepared.system) and "COMPACT-SUMMARY" in json.dumps(prepared.system)
    assert compact.validate({"system": prepared.system, "messages": prepared.messages}, "anthropic") == []


def test_an_agents_transcript_is_rewritten_to_be_resumed_from():
    manager = CompactManager(config(window=30_000))
    lines = open("examples/coding-session.jsonl", encoding="utf-8").read()
    text, receipt = manager.rewrite("s", lines, "claude-code")
    assert text.startswith(lines) and "compact_boundary" in text[len(lines):]
    assert receipt.tokens_after < receipt.tokens_before
    assert CompactManager(config(window=900_000)).rewrite("s", lines, "claude-code") is None


def test_the_window_is_the_registrys_unless_it_is_given():
    assert CompactManager(CompactConfig(model="gpt-4o")).window == 128_000
    assert CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=9_000)).window == 9_000


def test_entries_of_the_command_line_are_told_apart(manager):
    from compact.manager import _archived_messages

    with pytest.raises(compact.CompactError, match="entries"):
        _archived_messages(b"{}", "entries")
    with pytest.raises(compact.CompactError, match="no messages"):
        _archived_messages(b"{}", "openai-chat")
    assert _archived_messages(b'{"input":[1]}', "openai-responses") == [1]


def test_message_is_the_plain_one_of_the_product_document():
    assert Message("user", "hi") == Message(role="user", content="hi", meta=None)
