"""What users write in Python, when it works and when it fails."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time

import pytest

import compact
from compact import (
    CallbackExporter,
    CompactManager,
    CompactPolicy,
    ConsoleExporter,
    EstimatorError,
    Message,
    NoopEstimator,
    RedactorError,
    SessionBusy,
    StorageError,
    SummaryError,
    TiktokenEstimator,
)

from .conftest import chat, config


class Words:
    """An estimator: a token for each word."""

    def estimate(self, messages, model):
        assert model == "gpt-5"
        return sum(len(message.content.split()) for message in messages)


class Store:
    def __init__(self):
        self.transcripts, self.summaries, self.events = [], [], []

    def save_transcript(self, session_id, transcript):
        self.transcripts.append((session_id, transcript))

    def save_summary(self, session_id, summary, step):
        self.summaries.append((session_id, summary, step))

    def save_event(self, session_id, event):
        self.events.append((session_id, event["event"]))


class Prose:
    def __init__(self, answer="Everything in src/ was mended."):
        self.answer, self.asked = answer, []

    def summarize(self, messages, style, keep_keys):
        self.asked.append((messages, style, keep_keys))
        if isinstance(self.answer, Exception):
            raise self.answer
        return Message("assistant", self.answer)


def names(events):
    return [event["event"] for event in events]


def test_an_estimator_of_ones_own_decides():
    manager = CompactManager(config(window=3_000, token_estimator=Words()))
    messages = chat(60)
    prepared = manager.prepare("s", messages)
    assert prepared.receipt["estimator"] == "python:Words"
    assert manager.verify(prepared.receipt.id) == []
    assert prepared.decision.tokens == pytest.approx(3_000, rel=2)


@pytest.mark.parametrize("answer", [ValueError("no table"), -1, "many", 1.5])
def test_an_estimator_that_fails_is_an_error_and_nothing_is_lost(answer, events):
    class Broken:
        def estimate(self, messages, model):
            if isinstance(answer, Exception):
                raise answer
            return answer

    manager = CompactManager(config(token_estimator=Broken(), exporter=CallbackExporter(events.append)))
    with pytest.raises(EstimatorError, match=r"Broken.estimate (failed: no table|returned)"):
        manager.preflight("s", chat(60))
    assert manager.receipts("s") == []
    manager.flush()
    assert "compact.completed" not in names(events)


def test_an_estimator_that_fails_once_does_no_lasting_harm():
    class Flaky(Words):
        broken = True

        def estimate(self, messages, model):
            if self.broken:
                raise RuntimeError("later")
            return super().estimate(messages, model)

    flaky = Flaky()
    manager = CompactManager(config(token_estimator=flaky))
    with pytest.raises(EstimatorError):
        manager.preflight("s", chat(60))
    flaky.broken = False
    manager.forget("s")
    assert manager.prepare("s", chat(60)).receipt is not None


def test_nothing_triggers_without_counting():
    manager = CompactManager(config(token_estimator=NoopEstimator()))
    messages = chat(60)
    assert manager.preflight("s", messages) == messages
    assert NoopEstimator().estimate(messages, "gpt-5") == 0


def test_native_estimators_count_alike_everywhere():
    estimator = TiktokenEstimator()
    assert estimator.count("hello world", "gpt-5") == 2
    assert estimator.estimate([Message("user", "hello world")], "gpt-5") > 2
    assert compact.HeuristicEstimator().count("abcdefgh") == 2
    assert repr(TiktokenEstimator("cl100k")) == "TiktokenEstimator('cl100k')"
    manager = CompactManager(config(token_estimator=compact.HeuristicEstimator()))
    assert manager.prepare("s", chat(60)).receipt["estimator"] == "heuristic"


def test_a_store_of_ones_own_is_told_first():
    store = Store()
    manager = CompactManager(config(storage=store))
    messages = chat(60)
    receipt = manager.prepare("s", messages).receipt
    manager.flush()
    (session, transcript), = store.transcripts
    assert session == "s" and len(transcript) == len(messages)
    assert transcript[0] == Message("system", "You mend a shop.")
    (_, summary, step), = store.summaries
    assert summary.content.startswith("<COMPACT-SUMMARY v1>") and step == receipt.summary_version == 1
    assert ("s", "compact.completed") in store.events
    manager.preflight("s", messages)
    assert len(store.transcripts) == 1


def test_a_store_that_fails_stops_the_pruning(events):
    class Full(Store):
        def save_transcript(self, session_id, transcript):
            raise OSError("disk full")

    manager = CompactManager(config(storage=Full(), exporter=CallbackExporter(events.append)))
    with pytest.raises(StorageError, match="Full.save_transcript failed: disk full; nothing was pruned") as error:
        manager.preflight("s", chat(60))
    assert isinstance(error.value.__cause__, OSError)
    assert manager.receipts("s") == []
    manager.flush()
    assert "compact.completed" not in names(events)


def test_a_store_that_fails_on_the_rest_is_an_event(events):
    class Half(Store):
        def save_summary(self, session_id, summary, step):
            raise OSError("quota")

        def save_event(self, session_id, event):
            raise OSError("quota")

    manager = CompactManager(config(storage=Half(), exporter=CallbackExporter(events.append)))
    assert manager.prepare("s", chat(60)).receipt is not None
    manager.flush()
    assert "compact.storage_failed" in names(events)
    assert manager._events.dropped > 0


def test_exporters_that_raise_or_hang_delay_nobody(caplog):
    def fail(event):
        raise RuntimeError("collector down")

    manager = CompactManager(config(exporter=CallbackExporter(fail)))
    assert manager.prepare("s", chat(60)).receipt is not None
    assert manager.flush() and "an exporter failed on compact." in caplog.text
    release = threading.Event()
    hanging = CompactManager(config(exporter=CallbackExporter(lambda event: release.wait(20))))
    started = time.monotonic()
    assert hanging.prepare("s", chat(60)).receipt is not None
    assert not hanging.flush(timeout=0.05)
    assert time.monotonic() - started < 15
    release.set()
    assert hanging.flush()


def test_a_queue_that_is_full_drops_and_counts(monkeypatch):
    monkeypatch.setattr("compact.events.CAPACITY", 1)
    release, seen = threading.Event(), []

    def slow(event):
        release.wait(20)
        seen.append(event)

    manager = CompactManager(config(exporter=CallbackExporter(slow)))
    for n in range(9):
        manager.emit({"event": f"e{n}"})
    release.set()
    assert manager.flush() and manager._events.dropped >= 7 and len(seen) >= 1
    silent = CompactManager(config())
    silent.emit({"event": "nobody listens"})
    assert silent.flush()


def test_the_console_writes_lines():
    out = io.StringIO()
    manager = CompactManager(config(exporter=ConsoleExporter(out)))
    manager.preflight("s", chat(60))
    manager.flush()
    assert "compact.trigger_decision session=s" in out.getvalue()
    out = io.StringIO()
    ConsoleExporter(out, form="json").emit({"event": "x"})
    assert json.loads(out.getvalue()) == {"event": "x"}


def test_a_summarizer_of_ones_own_is_asked():
    prose = Prose()
    manager = CompactManager(config(window=8_000, summarizer=prose))
    prepared = manager.prepare("s", chat(90))
    messages, style, keep_keys = prose.asked[0]
    assert (style, keep_keys) == ("task_state", ["protected"])
    # The conversation's own messages, from the first that leaves the view on.
    assert messages[:3] == [
        Message("assistant", 'read {"path": "src/part_0.py"}', {"ordinal": 2, "tool_name": "read"}),
        Message("tool", chat(1)[3]["content"].rstrip(), {"ordinal": 3}),
        Message("assistant", chat(1)[4]["content"], {"ordinal": 4}),
    ]
    assert messages.max_tokens > 0 and messages.system and messages[0].content in messages.prompt
    assert "mended" not in repr(messages)
    assert prepared.receipt["summarizer"].endswith("python:Prose")
    assert manager.verify(prepared.receipt.id) == []


def test_a_summarizer_may_be_asynchronous():
    class Later(Prose):
        async def summarize(self, messages, style, keep_keys):
            return Prose.summarize(self, messages, style, keep_keys)

    later = Later()
    assert CompactManager(config(window=8_000, summarizer=later)).prepare("s", chat(90)).receipt
    assert later.asked


def test_a_refused_summary_is_asked_for_again_as_a_brief_one():
    class Reluctant(Prose):
        def summarize(self, messages, style, keep_keys):
            first = not self.asked
            answer = super().summarize(messages, style, keep_keys)
            return Message("assistant", "I'm sorry, I cannot help with that.") if first else answer

    reluctant = Reluctant()
    receipt = CompactManager(config(window=8_000, summarizer=reluctant)).prepare("s", chat(90)).receipt
    (first, again), styles = reluctant.asked[:2], [style for _, style, _ in reluctant.asked]
    assert styles[:2] == ["task_state", "brief"] and set(styles[2:]) <= {"task_state"}
    assert first[0] == again[0] and first[0].prompt != again[0].prompt
    assert receipt["summarizer"] == "python:Reluctant"


async def test_an_asynchronous_summarizer_works_inside_a_running_loop():
    class Later(Prose):
        async def summarize(self, messages, style, keep_keys):
            return Prose.summarize(self, messages, style, keep_keys)

    for call in ("preflight", "apreflight"):
        later = Later()
        manager = CompactManager(config(window=8_000, summarizer=later))
        view = getattr(manager, call)("s", chat(90))
        view = await view if call == "apreflight" else view
        assert "Everything in src/ was mended." in json.dumps(view)


def test_an_interrupt_in_a_summarizer_ends_the_call():
    class Interrupted(Prose):
        def summarize(self, messages, style, keep_keys):
            raise KeyboardInterrupt

    manager = CompactManager(config(window=8_000, summarizer=Interrupted()))
    with pytest.raises(KeyboardInterrupt):
        manager.preflight("s", chat(90))
    assert manager.receipts("s") == []


def test_a_text_is_a_summary_too_and_anything_else_is_logged(caplog):
    class Plain(Prose):
        def summarize(self, messages, style, keep_keys):
            return self.answer

    manager = CompactManager(config(window=8_000, summarizer=Plain("Everything in src/ was mended.")))
    assert manager.prepare("s", chat(90)).receipt["summarizer"] == "python:Plain"
    manager = CompactManager(config(window=8_000, summarizer=Plain(7)))
    assert manager.prepare("s", chat(90)).receipt["summarizer"] == "extractive"
    assert "Plain.summarize failed: TypeError('it must return a Message with a text, found int')" in caplog.text


@pytest.mark.parametrize("answer", [ValueError("secret words"), "", None])
def test_a_summarizer_that_fails_is_replaced_with_an_event(answer, events):
    prose = Prose(answer)
    manager = CompactManager(
        config(window=8_000, summarizer=prose, exporter=CallbackExporter(events.append))
    )
    prepared = manager.prepare("s", chat(90))
    assert prepared.receipt is not None and prose.asked
    manager.flush()
    fallback = [event for event in events if event["event"] == "compact.fallback"]
    assert fallback and "secret words" not in json.dumps(events)


def test_a_summarizer_that_must_not_fail_is_an_error():
    policy = CompactPolicy(on_summary_failure="fail")
    manager = CompactManager(config(window=8_000, summarizer=Prose(ValueError("no")), policy=policy))
    messages = chat(90)
    with pytest.raises(SummaryError, match="ValueError"):
        manager.preflight("s", messages)
    assert manager.receipts("s") == []


def test_a_redactor_is_applied_to_whatever_leaves():
    def redact(message):
        return Message(message.role, message.content.replace("part_", "***_"), message.meta)

    store, prose = Store(), Prose("part_9 is done.")
    manager = CompactManager(config(window=8_000, storage=store, summarizer=prose, redact=redact))
    sent = manager.preflight("s", chat(90))
    assert "part_" not in json.dumps([m.content for _, t in store.transcripts for m in t])
    assert "part_" not in prose.asked[0][0][1].content
    summary = next(m["content"] for m in sent if "COMPACT-SUMMARY" in str(m["content"]))
    assert "part_" not in summary and "***_" in summary
    assert "part_" not in store.summaries[0][1].content
    assert "part_" in json.dumps(sent)


def keeping_back(message):
    return Message(message.role, message.content.replace("part_", "***_"), message.meta)


def test_the_engine_redacts_with_it_wherever_text_leaves(events, tmp_path):
    seen = []

    def redact(message):
        seen.append(message)
        return keeping_back(message)

    settings = {"redaction": {"enabled": False}}
    manager = CompactManager(config(redact=redact, exporter=CallbackExporter(events.append), settings=settings))
    prepared = manager.prepare("of part_9", chat(60))
    manager.flush()
    assert "part_" not in str(manager.remember("of part_9").ledger)
    assert "part_" not in json.dumps(events) and "of ***_9" in json.dumps(events)
    assert manager.restore(prepared.receipt.id) == chat(60), "the archive is exact unless it is told otherwise"
    assert manager.verify(prepared.receipt.id) == []
    assert all("part_" not in hit.snippet for hit in manager.recall("mended E0", limit=3))
    assert {type(message) for message in seen} == {Message}
    stored = CompactManager(config(redact=redact, settings={"redaction": {"sinks": {"archive": True}}}))
    receipt = stored.prepare("s", chat(60)).receipt
    assert "part_" not in json.dumps(stored.restore(receipt.id))


@pytest.mark.parametrize("answer", [RuntimeError("pattern"), None, "text", Message("user", None)])
@pytest.mark.parametrize("storage", [compact.MemoryStorage, Store])
def test_a_redactor_that_fails_is_an_error_and_nothing_leaves(answer, storage, events):
    def scrub(message):
        if isinstance(answer, Exception):
            raise answer
        return answer

    store, prose = storage(), Prose()
    exporter = CallbackExporter(events.append)
    manager = CompactManager(config(window=8_000, storage=store, summarizer=prose, redact=scrub, exporter=exporter))
    with pytest.raises(RedactorError, match=r"scrub (failed: pattern; nothing was sent|returned)"):
        manager.preflight("secret-session", chat(90))
    assert manager.receipts("secret-session") == []
    manager.flush()
    assert "part_" not in json.dumps([m.content for asked in prose.asked for m in asked[0][1:]])
    assert "secret-session" not in json.dumps(events)
    assert getattr(store, "transcripts", []) == []


def test_what_one_thread_raises_is_never_lost():
    class Picky(Words):
        def estimate(self, messages, model):
            if any("poison" in message.content for message in messages):
                raise RuntimeError("poison")
            return super().estimate(messages, model)

    manager = CompactManager(config(token_estimator=Picky()))
    outcomes: dict[str, list[str]] = {"good": [], "bad": []}

    def work(kind, name):
        messages = chat(40, seed=len(name))
        if kind == "bad":
            messages[3]["content"] += " poison"
        try:
            manager.preflight(name, messages)
            outcomes[kind].append("done")
        except EstimatorError:
            outcomes[kind].append("raised")

    threads = [threading.Thread(target=work, args=(k, f"{k}-{n}")) for n in range(8) for k in outcomes]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert outcomes["bad"] == ["raised"] * 8 and len(outcomes["good"]) == 8
    assert all(manager.receipts(f"bad-{n}") == [] for n in range(8))
    assert manager.prepare("later", chat(40)).receipt is not None


def test_a_redactor_that_fails_once_does_no_lasting_harm():
    broken = [True]

    def redact(message):
        if broken[0]:
            raise RuntimeError("later")
        return message

    manager = CompactManager(config(redact=redact))
    lines = open("examples/coding-session.jsonl", encoding="utf-8").read()
    with pytest.raises(RedactorError):
        manager.preflight("s", chat(60))
    with pytest.raises(RedactorError):
        manager.rewrite("t", lines, "claude-code")
    broken[0] = False
    assert manager.prepare("s", [*chat(60), {"role": "user", "content": "Next?"}]).receipt is not None
    assert manager.rewrite("t", lines, "claude-code") is not None
    broken[0] = True
    with pytest.raises(RedactorError):
        manager.recall("part_3.py mended")
    broken[0] = False
    assert manager.recall("part_3.py mended")


def test_what_fails_in_the_background_is_raised_to_nobody(events):
    def redact(message):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("not here")
        return message

    policy = CompactPolicy(soft_pct=0.3)
    manager = CompactManager(
        config(3_000, token_estimator=Words(), policy=policy, redact=redact, exporter=CallbackExporter(events.append))
    )
    messages = chat(10)
    assert manager.preflight("s", messages) == messages
    deadline = time.monotonic() + 20
    while names(events).count("compact.call_ended") < 2 and time.monotonic() < deadline:
        manager.flush()
        time.sleep(0.02)
    assert "compact.started" in names(events) and "compact.completed" not in names(events)
    assert names(events).count("compact.failed") == 1
    assert manager.preflight("s", messages) == messages, "it is raised to nobody"
    assert manager.receipts("s") == []
    assert manager.prepare("s", messages, note="by hand").receipt is not None


def test_secrets_of_the_seed_patterns_never_reach_a_summary(events):
    manager = CompactManager(config(exporter=CallbackExporter(events.append)))
    messages = chat(60)
    messages[5]["content"] += " api_key = sk-live-4f9a8b7c6d5e4f3a2b1c"
    sent = manager.preflight("s", messages)
    summary = next(m["content"] for m in sent if "COMPACT-SUMMARY" in str(m["content"]))
    manager.flush()
    assert "4f9a8b7c6d5e" not in summary and "4f9a8b7c6d5e" not in json.dumps(events)


def test_a_callback_cannot_ask_for_its_own_session():
    caught = []

    class Again(Prose):
        def summarize(self, messages, style, keep_keys):
            try:
                manager.preflight("s", chat(2))
            except SessionBusy as error:
                caught.append(error)
            assert manager.preflight("another", chat(2))
            return super().summarize(messages, style, keep_keys)

    manager = CompactManager(config(window=8_000, summarizer=Again()))
    assert manager.prepare("s", chat(90)).receipt is not None
    assert caught


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_starts_over(tmp_path):
    script = """
import os, sys, json
sys.path.insert(0, sys.argv[2])
from tests.python.conftest import chat, config
from compact import CompactManager, FileStorage, CallbackExporter
seen = []
manager = CompactManager(config(storage=FileStorage(sys.argv[1]), exporter=CallbackExporter(seen.append)))
messages = chat(60)
first = manager.preflight("s", messages)
manager.flush()
child = os.fork()
if child == 0:
    seen.clear()
    again = manager.preflight("s", messages)
    more = manager.preflight("child", chat(50, seed=3))
    ok = manager.flush() and again == first and len(more) < 201 and seen
    os._exit(0 if ok else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert manager.preflight("s", messages) == first
assert len(manager.receipts("child")) == 1
sys.exit(status)
"""
    arguments = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path), os.getcwd()]
    assert subprocess.run(arguments, timeout=60).returncode == 0


def test_a_sub_interpreter_is_refused():
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = pytest.importorskip("_interpreters")
    interpreter = interpreters.create()
    code = "\ntry:\n    import compact\nexcept ImportError as e:\n    assert 'subinterpreters' in str(e), e\nelse:\n    raise AssertionError\n"
    try:
        interpreters.run_string(interpreter, code)
    finally:
        interpreters.destroy(interpreter)
