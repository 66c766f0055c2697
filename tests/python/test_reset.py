"""Sessions that go on from their summary alone, driven from Python, and the chart of a session."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from compact import CallbackExporter, CompactError, CompactManager, CompactPolicy, FileStorage, NotFound, SessionBusy

from .conftest import chat, config

LONG = "the parser reads a line and keeps a token " * 60
BASE = [{"role": "system", "content": "You port parsers."}]


class Model:
    """Writes summaries as a test wants."""

    def __init__(self, write):
        self.write = write

    def summarize(self, _messages, _style, _keep_keys):
        return self.write()


class Store:
    """Keeps what it is told."""

    def __init__(self):
        self.transcripts = []

    def save_transcript(self, session_id, transcript):
        self.transcripts.append((session_id, list(transcript)))

    def save_summary(self, session_id, summary, step): ...

    def save_event(self, session_id, event): ...


def fill(session, turns=16):
    """Talks until the session is compacted, or cannot be."""
    for turn in range(turns):
        made = session.send(f"{turn}: {LONG}")
        if made.outcome != "unchanged":
            return made
        session.append({"role": "assistant", "content": f"Done {turn}."})
    raise AssertionError("nothing was compacted")


def test_a_session_goes_on_from_its_summary_and_tells_its_events(tmp_path):
    heard, exported = [], []
    manager = CompactManager(config(6_000, storage=FileStorage(tmp_path), exporter=CallbackExporter(exported.append)))
    session = manager.reset_session("chat-7", BASE, heard.append)
    assert (session.input, session.status.compaction_count) == ("open", 0)
    made = fill(session)
    assert made.outcome == "compacted" and made.receipt_id and made.error is None
    *instructions, pending = session.messages
    text = "\n\n".join(message["content"] for message in instructions)
    assert text.startswith("You port parsers.") and text.endswith("</summary>")
    assert pending["role"] == "user" and {message["role"] for message in instructions} == {"system"}
    assert [event["event"] for event in heard if event["event"].startswith("context_")] == [
        "context_compaction_started",
        "context_compacted",
    ]
    done = next(event for event in heard if event["event"] == "context_compacted")
    assert done["session_id"] == "chat-7" and done["tokens_after"] < done["tokens_before"] <= done["max_tokens"] == 6_000
    assert Path(done["summary_path"]).read_text() and Path(made.summarizer_input_path).exists()
    assert manager.flush() and done in exported
    status = session.status
    assert (status.input, status.compaction_count, status.max_tokens) == ("open", 1, 6_000)
    assert "chat-7" in repr(session)
    assert len(manager.receipts("chat-7")) == 1
    [hit, *_] = manager.recall("which parser reads a line", "chat-7")
    assert LONG.strip() in manager.expand(hit.pointer).content


def test_the_providers_count_triggers_before_the_next_turn():
    session = CompactManager(config(6_000)).reset_session("s", BASE)
    session.send(f"Port the parser. {LONG}")
    session.observe({"prompt_tokens": 5_500, "completion_tokens": 9})
    session.append({"role": "assistant", "content": "Done."})
    assert session.before_call().outcome == "unchanged"
    assert session.send("Now the lexer.").outcome == "compacted"


def test_a_failure_changes_nothing_a_dead_session_lives_again_and_a_new_one_begins():
    state = {"fails": True}

    def summarize():
        if state["fails"]:
            raise RuntimeError("no model today")
        return "They port a parser."

    heard = []
    manager = CompactManager(config(6_000, summarizer=Model(summarize)))
    session = manager.reset_session("s", BASE, heard.append)
    made = fill(session)
    assert made.outcome == "failed" and made.error and made.receipt_id is None

    def last():
        return [event for event in heard if event["event"].startswith("context_")][-1]

    assert (last()["event"], last()["context_exceeded"]) == ("context_compaction_failed", False)
    before = session.messages
    with pytest.raises(CompactError):
        session.send(LONG * 30)
    assert session.input == "dead" and last()["context_exceeded"] and last()["severity"] == "error"
    assert session.messages[: len(before)] == before
    with pytest.raises(CompactError, match="Please start a new session"):
        session.send("Hello?")
    session.start_new("s-2")
    assert session.input == "open" and session.messages == BASE
    state["fails"] = False
    assert session.send(f"Hello. {LONG}").outcome == "unchanged"
    assert session.retry().outcome == "compacted"


def test_input_is_refused_while_it_compacts_and_the_state_is_read_meanwhile():
    began, release = threading.Event(), threading.Event()

    def summarize():
        began.set()
        assert release.wait(20)
        return "They port a parser."

    session = CompactManager(config(6_000, summarizer=Model(summarize))).reset_session("s", BASE)
    worker = threading.Thread(target=fill, args=(session,))
    worker.start()
    assert began.wait(20)
    assert session.input == "compacting"
    with pytest.raises(SessionBusy, match="takes no input"):
        session.send("And this?")
    release.set()
    worker.join(20)
    assert session.input == "open"


def test_the_transcript_has_what_was_said_and_recorded(tmp_path):
    manager = CompactManager(config(storage=FileStorage(tmp_path)))
    session = manager.reset_session("s", BASE)
    session.send("Port it.")
    session.record({"type": "tool_denied", "request_id": "r1"})
    session.append({"role": "assistant", "content": "Done."})
    session.flush()
    lines = [json.loads(line) for line in next(tmp_path.rglob("transcript-s.jsonl")).read_text().splitlines()]
    assert "tool_denied" in [line["type"] for line in lines] and "Port it." in str(lines)


def test_a_store_of_ones_own_is_told_first():
    store = Store()
    fill(CompactManager(config(6_000, storage=store)).reset_session("s", BASE))
    [(session_id, transcript)] = store.transcripts
    assert session_id == "s" and sum(LONG.strip() in message.content for message in transcript) > 2


def test_a_chart_shows_every_call_and_compaction(tmp_path):
    manager = CompactManager(config(storage=FileStorage(tmp_path), policy=CompactPolicy()))
    manager.prepare("s", chat(60))
    chart = manager.chart("s")
    drawn = ElementTree.fromstring(chart._repr_svg_())
    marks = [part for part in drawn.iter() if (part.get("aria-label") or "").startswith("Compaction 1: ")]
    assert len(marks) == 1 and "120 calls" in "".join(drawn.itertext())
    assert str(chart).startswith("Tokens sent with each of 120 calls") and "<svg" not in repr(chart)
    with pytest.raises(NotFound):
        manager.chart("nobody")
