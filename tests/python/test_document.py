"""The product document taken section by section, as somebody who has read only that would."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import compact
from compact import (
    CallbackExporter,
    CompactConfig,
    CompactError,
    CompactManager,
    CompactPolicy,
    ConsoleExporter,
    FileStorage,
    InsufficientBudget,
    MemoryStorage,
    Message,
    TiktokenEstimator,
)

from .conftest import chat, config

ROOT = Path(__file__).parents[2]


class Words:
    def estimate(self, messages, model):
        return sum(len(message.content.split()) for message in messages)


class Kept:
    def __init__(self):
        self.saved = []

    def save_transcript(self, session_id, transcript):
        self.saved.append(("transcript", len(transcript)))

    def save_summary(self, session_id, summary, step):
        self.saved.append(("summary", step))

    def save_event(self, session_id, event):
        self.saved.append(("event", event["event"]))


def watched(**more):
    """A manager with everything that it emits."""
    events: list[dict] = []
    return CompactManager(config(exporter=CallbackExporter(events.append), **more)), events


def called(events, name):
    return [event for event in events if event["event"] == name]


# Section 4: the types and calls.


def test_every_field_may_be_given_in_the_order_of_the_document():
    seen, kept = [], Kept()
    policy = CompactPolicy(0.8, 1500, 6, 4, ("system", "developer"), "protected", "brief")
    cfg = CompactConfig(
        "gpt-5-reasoning", 8_000, policy, Words(), kept, CallbackExporter(seen.append), lambda message: message
    )
    with CompactManager(cfg) as manager:
        view = manager.preflight("abc", [Message("user", "word " * 900) for _ in range(20)])
    assert all(isinstance(message, Message) for message in view)
    assert any(message.content.startswith("<COMPACT-SUMMARY v1>") for message in view)
    assert ("transcript", 20) in kept.saved and ("summary", 1) in kept.saved
    assert called(seen, "compact.trigger_decision")[0]["policy"] == {"trigger_pct": 0.8, "buffer": 1500}


def test_hooks_of_the_document_change_the_context():
    manager = CompactManager(config())
    ctx = SimpleNamespace(session_id="s", messages=chat(60), system=None, tools=None)

    def before_model_call(ctx):
        ctx.messages = manager.preflight(ctx.session_id, ctx.messages)

    before_model_call(ctx)
    assert len(ctx.messages) < len(chat(60))
    ctx.messages = manager.manual_compact(ctx.session_id, ctx.messages, note="user-command")
    assert manager.receipts("s")[0]["summary_version"] == 1


# Section 5: the algorithm.


def test_the_window_less_the_buffer_holds_every_view():
    manager, _ = watched(window=3_000, policy=CompactPolicy(hard_cap_buffer=700))
    view = manager.preflight("s", [*chat(40), {"role": "user", "content": "word " * 4_000}])
    assert compact.account(view, model="gpt-5").total <= 3_000 - 700


def test_the_size_of_a_view_and_of_its_summary_can_be_set():
    policy = CompactPolicy(target_tokens=5_000, summary_tokens=300)
    manager, _ = watched(window=16_000, policy=policy)
    receipt = manager.prepare("s", chat(130)).receipt
    assert receipt.tokens_after <= 5_000 and receipt["summary_tokens"] <= 300 + 120, "with its frame"
    plain = CompactManager(config(window=16_000)).prepare("s", chat(130)).receipt
    assert plain["summary_tokens"] > receipt["summary_tokens"]


def last_turns(messages, view, turns=6, pairs=4):
    """How many messages of the last turns, and results of the last calls, stand in the view word for word."""
    said = [m for m in messages if m["role"] in ("user", "assistant") and not m.get("tool_calls")]
    results = [m for m in messages if m["role"] == "tool"]
    return tuple(sum(m in view for m in part) for part in (said[-2 * turns :], results[-pairs:]))


def test_the_last_turns_stay_whole_where_the_target_is_the_window_less_the_buffer():
    messages = chat(60)
    by_default = CompactManager(config(window=6_000)).preflight("s", messages)
    policy = CompactPolicy(target_tokens=6_000 - 1_024, summary_tokens=1_000)
    view = CompactManager(config(window=6_000, policy=policy)).preflight("s", messages)
    assert last_turns(messages, view) == (12, 4)
    assert last_turns(messages, by_default) < (12, 4), "a smaller view and a larger summary, so that it does not fill again at once"


def test_without_a_store_no_way_back_is_promised():
    def summary(**more):
        (found,) = [m["content"] for m in CompactManager(config(**more)).preflight("s", chat(60)) if "COMPACT-SUMMARY" in str(m["content"])]
        return found

    assert "(nothing is archived)" in summary(storage=None) and "recall" not in summary(storage=None).split("\n")[1]
    assert "`recall " in summary()


def test_the_prompt_can_be_ones_own():
    class Reader:
        def summarize(self, messages, style, keep_keys):
            self.prompt = messages.prompt
            return "All parts of the shop were mended."

    reader = Reader()
    policy = CompactPolicy(summary_prompt="List the parts, in at most {tokens} tokens.")
    manager, _ = watched(window=16_000, policy=policy, summarizer=reader)
    receipt = manager.prepare("s", chat(130)).receipt
    assert "List the parts, in at most " in reader.prompt and "{tokens}" not in reader.prompt
    assert receipt["prose"]["template"] == "policy.summary_prompt"
    assert manager.verify(receipt.id) == []


# Section 8: the examples.


def test_the_minimal_example(tmp_path, capsys):
    cfg = CompactConfig(
        model="gpt-5-reasoning",
        max_context_tokens=128_000,
        token_estimator=TiktokenEstimator(),
        exporter=ConsoleExporter(),
        storage=FileStorage(tmp_path / "archive"),
    )
    with CompactManager(cfg) as manager:
        policy = Message(role="developer", content="Never deploy on a Friday.", meta={"protected": True})
        assert manager.preflight("s", [policy]) == [policy]
    assert "trigger_decision" in capsys.readouterr().err


# Section 9: events.


def test_a_decision_carries_what_was_planned():
    manager, events = watched()
    receipt = manager.prepare("s", chat(60)).receipt
    manager.flush()
    (decided,) = called(events, "compact.trigger_decision")
    (done,) = called(events, "compact.completed")
    # What the summary leaves of its room goes to further turns, so a plan is the least that is kept.
    assert decided["kept"]["pinned"] == done["kept"]["pinned"] == 1
    for name in ("recent_turns", "tool_pairs"):
        assert 0 < decided["kept"][name] <= done["kept"][name] == receipt["kept"][name]
    assert 100 < done["pruned_count"] <= decided["pruned_count"] < 240
    # Room that turns leave is the summary's again, so it may become a little larger than planned.
    assert 0 < done["summary_tokens"] <= decided["summary_tokens"] * 1.2
    calm, events = watched()
    calm.preflight("s", chat(1))
    calm.flush()
    (decided,) = called(events, "compact.trigger_decision")
    assert (decided["pruned_count"], decided["summary_tokens"]) == (0, 0)


# Section 11: what may go wrong.

MALFORMED = [
    {"role": "assistant", "content": None, "tool_calls": "garbage"},
    {"role": "assistant", "content": None, "tool_calls": ["garbage"]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function", "function": "garbage"}]},
    {"role": "tool", "content": "an answer to nobody knows what"},
    {"role": "tool", "tool_call_id": "nobody", "content": "an answer to nobody"},
    {"role": "tool", "tool_call_id": "nobody", "content": {"no": "text"}},
    {"role": "tool", "tool_call_id": "nobody", "content": 5},
    {"role": "tool", "tool_call_id": 5, "content": "an answer to a number"},
]


@pytest.mark.parametrize("message", MALFORMED)
def test_a_malformed_tool_message_skips_the_compaction_of_its_turn(message):
    manager, events = watched()
    messages = [*chat(60), message]
    assert manager.preflight("s", messages) == messages
    manager.flush()
    (skipped,) = called(events, "compact.skipped")
    assert skipped["malformed"] == 1 and skipped["severity"] == "warning"
    assert not called(events, "compact.completed") and manager.receipts("s") == []
    # The next turn goes on without it, and says so.
    messages += [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "I will."}]
    view = manager.preflight("s", messages)
    manager.flush()
    assert len(view) < len(messages) and message not in view
    assert called(events, "compact.repaired") and compact.validate(view, "openai-chat") == []


def test_tools_that_only_speak_are_in_order_in_a_plain_list():
    manager, events = watched()
    said = [m for n in range(60) for m in (Message("user", f"Read {n}. " + "word " * 60), Message("tool", f"It is {n}."))]
    manager.preflight("s", said)
    manager.flush()
    assert called(events, "compact.completed") and not called(events, "compact.skipped")


@pytest.mark.parametrize(("system", "tools", "larger"), [(4_000, 0, "shorten the system prompt"), (10, 4_000, "remove tools")])
def test_what_is_too_large_beside_the_history_is_named(system, tools, larger):
    manager = CompactManager(config(window=3_000))
    schema = [{"type": "function", "function": {"name": "f", "description": "word " * tools}}]
    with pytest.raises(InsufficientBudget, match=rf"the system prompt takes .* tokens and the tools .*{larger}") as error:
        manager.preflight("s", [{"role": "system", "content": "word " * system}, *chat(20)[1:]], tools=schema)
    assert error.value.needed > error.value.budget == 3_000 - 1_024
    assert isinstance(error.value, CompactError)


# Section 13: what is delivered.


@pytest.mark.parametrize(
    "module",
    [
        *("manager", "policy", "summarizer", "adapters.fs", "adapters.s3", "adapters.custom"),
        *("exporters.console", "exporters.otlp", "exporters.custom", "estimators.tiktoken", "estimators.noop"),
        *("hooks", "exceptions", "config"),
    ],
)
def test_every_file_of_the_document_is_there(module):
    assert importlib.import_module(f"compact.{module}").__all__


def test_documents_and_examples_are_where_the_document_has_them():
    files = ["README.md", "SECURITY.md", "MIGRATION.md", "examples/agents_sdk_minimal.py", "examples/coding_session.py"]
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_hooks_need_no_sdk():
    script = """
import sys
sys.modules["agents"] = None
from compact.hooks import CompactSession, middleware
assert sorted(middleware(None)) == ["after_model_call", "before_model_call", "before_run"]
try:
    from compact.hooks import compact_filter
except ImportError as error:
    assert "pip install 'compact-context[agents]'" in str(error), error
else:
    raise SystemExit("it was imported")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# What a Python programmer expects of any package.


def test_a_manager_is_closed_once_and_for_all():
    events: list[dict] = []
    with CompactManager(config(exporter=CallbackExporter(events.append))) as manager:
        manager.preflight("s", chat(60))
    assert called(events, "compact.call_ended")
    assert repr(manager) == "<CompactManager of gpt-5, closed>"
    manager.close()
    with pytest.raises(CompactError, match="the manager is closed"):
        manager.preflight("s", chat(1))


def test_no_repr_shows_what_was_said():
    manager = CompactManager(config())
    prepared = manager.prepare("s", chat(60))
    hits = manager.recall("part_3")
    shown = repr([manager, prepared, prepared.receipt, manager.remember("s"), hits])
    assert hits and "stock" not in shown and "mended" not in shown
    assert "window 4,000, storage MemoryStorage()" in repr(manager)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert compact.__version__ == version("compact-context")


def test_a_summarizer_of_the_settings_logs_why_it_failed(caplog, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    settings = {"summarizer": {"kind": "openai", "url": "http://127.0.0.1:9/v1", "retries": 0}}
    manager = CompactManager(config(settings=settings, storage=MemoryStorage()))
    assert manager.prepare("s", chat(60)).receipt["summarizer"] == "extractive"
    assert "session s: openai gpt-5 failed: unreachable" in caplog.text or "openai failed: unreachable" in caplog.text


def test_an_unreadable_message_is_named_in_pythons_words():
    manager = CompactManager(config())
    with pytest.raises(TypeError, match="note must be a text, found int"):
        manager.manual_compact("s", chat(1), note=5)
    with pytest.raises(TypeError, match="messages must be a list of messages, found str"):
        manager.preflight("s", "hello")
    assert json.dumps(manager.preflight("s", [{"role": "user", "content": "x"}]))
