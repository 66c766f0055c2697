"""A storage of the user's own: what it is handed, and the way back through it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import compact
from compact import CallbackExporter, CompactManager, CompactPolicy, Message, StorageError, check_storage

from .conftest import chat, config

#: What must not leave, each with the part of it that gives it away.
PLANTED = {
    "sk-proj-AbCdEf0123456789AbCdEf0123456789AbCdEf01": "sk-proj-AbCd",
    "AKIAIOSFODNN7EXAMPLE": "AKIAIOSFODNN7EXAMPLE",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a": "ghp_16C7",
    "api_key = hunter2hunter2": "hunter2hunter2",
    "password: S3cr3t!pass": "S3cr3t!pass",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U": "eyJzdWIi",
    "postgres://bob:topsecretpw@db.example/x": "topsecretpw",
    "alice.smith@example.com": "alice.smith@example.com",
    "4111 1111 1111 1111": "4111 1111 1111 1111",
    "078-05-1120": "078-05-1120",
    "+1 415 555 2671": "415 555 2671",
    "DE89370400440532013000": "DE8937040044",
}
SECRETS, PERSONAL = list(PLANTED.values())[:7], list(PLANTED.values())[7:]

ARCHIVE_TOO = {"redaction": {"sinks": {"archive": True}}}


def planted() -> list[dict[str, Any]]:
    messages = chat(60)
    for n, secret in enumerate(PLANTED):
        messages[1 + 8 * n]["content"] += f" Decision: use {secret} because ops said so."
        # Where it stands in arguments and in what a tool answers, it is as secret.
        call = messages[2 + 8 * n]["tool_calls"][0]["function"]
        call["arguments"] = json.dumps({"path": "a", "note": secret})
        messages[3 + 8 * n]["content"] += f"\nvalue {secret}"
    return messages


def leaks(words: str) -> list[str]:
    return [needle for needle in PLANTED.values() if needle in words]


class Told:
    """Keeps what it is handed."""

    def __init__(self) -> None:
        self.transcripts: list[str] = []
        self.summaries: list[str] = []
        self.events: list[str] = []

    def save_transcript(self, session_id, transcript):
        self.transcripts.append(json.dumps([(m.role, m.content, m.meta) for m in transcript]))

    def save_summary(self, session_id, summary, step):
        self.summaries.append(summary.content)

    def save_event(self, session_id, event):
        self.events.append(json.dumps(event))


class Shelf:
    """Bytes by name in a dict: all that the engine asks for."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        self.kept[name] = data

    def get(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def names(self, prefix: str) -> list[str]:
        return [name for name in self.kept if name.startswith(prefix)]


class Both(Shelf, Told):
    def __init__(self) -> None:
        Shelf.__init__(self)
        Told.__init__(self)


class Folder:
    """The same in files, for another process to find."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, data: bytes) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(data)

    def get(self, name: str) -> bytes | None:
        return (self.root / name).read_bytes() if (self.root / name).exists() else None

    def names(self, prefix: str) -> list[str]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return [n for n in (str(path.relative_to(self.root)) for path in files) if n.startswith(prefix)]

    def remove(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)


def compacted(storage: Any, **more: Any) -> CompactManager:
    manager = CompactManager(config(storage=storage, **more))
    assert manager.prepare("s", planted()).receipt is not None
    assert manager.flush()
    return manager


def test_a_redacted_archive_hands_no_secret_to_a_storage():
    store = Told()
    compacted(store, settings=ARCHIVE_TOO)
    assert leaks("".join(store.transcripts)) == []
    assert leaks("".join(store.summaries)) == [] and leaks("".join(store.events)) == []
    # What is no secret is there: every message, each with its words.
    (transcript,) = store.transcripts
    assert len(json.loads(transcript)) == len(planted()) and "src/part_59.py" in transcript


def test_a_transcript_is_raw_unless_the_archive_is_redacted():
    store = Told()
    compacted(store)
    assert leaks(store.transcripts[0]) == [*SECRETS, *PERSONAL]
    assert leaks("".join(store.summaries)) == [] and leaks("".join(store.events)) == []


def test_a_sink_that_is_switched_off_is_off():
    store = Told()
    compacted(store, settings={"redaction": {"sinks": {"export": False}}})
    # The model's own sink keeps secrets out of a summary; personal data is its business.
    assert set(leaks(store.summaries[0])) <= set(PERSONAL)
    off = Told()
    compacted(off, settings={"redaction": {"enabled": False, "sinks": {"archive": True}}})
    assert leaks(off.transcripts[0]) == [*SECRETS, *PERSONAL]


def test_a_function_of_the_users_sees_a_transcript_whatever_the_rules():
    def redact(message: Message) -> Message:
        return Message(message.role, message.content.replace("part_", "***_"), message.meta)

    for settings in ({}, ARCHIVE_TOO):
        store = Told()
        compacted(store, settings=settings, redact=redact)
        assert "part_" not in store.transcripts[0] and "***_59" in store.transcripts[0]


@pytest.mark.parametrize("kind", [Shelf, Both])
def test_a_storage_of_bytes_is_a_way_back(kind):
    store = kind()
    first = CompactManager(config(storage=store))
    messages = planted()
    view = first.preflight("s", messages)
    (receipt,) = first.receipts("s")
    later = CompactManager(config(storage=store))
    assert later.restore(receipt.id) == messages == later.restore("s")
    assert later.verify(receipt.id) == []
    hits = later.recall("part_7.py mended", session_id="s")
    assert hits and "part_7" in hits[0].snippet
    assert later.expand(hits[0].pointer).content
    assert "part_" in str(later.remember("s"))
    assert later.preflight("s", messages) == view
    more = [*messages, *chat(90, seed=9)[1:]]
    again = later.prepare("s", more)
    assert again.receipt is not None and again.receipt.summary_version == 2
    last = CompactManager(config(storage=store))
    assert [r.id for r in last.receipts("s")] == [receipt.id, again.receipt.id]
    assert last.restore("s") == more and last.verify(again.receipt.id) == []
    # What is alike is kept once, and small.
    assert sum(map(len, store.kept.values())) < len(json.dumps(more))
    if kind is Both:
        assert len(store.transcripts) == 2 and len(store.summaries) == 2


def test_another_process_finds_what_a_storage_keeps(tmp_path):
    compacted(Folder(tmp_path))
    script = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from tests.python.conftest import config
from tests.python.test_storage import Folder, planted
from compact import CompactManager
manager = CompactManager(config(storage=Folder(Path(sys.argv[1]))))
(receipt,) = manager.receipts("s")
assert manager.restore("s") == planted()
assert manager.verify(receipt.id) == []
assert manager.recall("part_7.py mended")
"""
    arguments = [sys.executable, "-c", script, str(tmp_path), os.getcwd()]
    assert subprocess.run(arguments, timeout=120).returncode == 0


def test_a_redacted_archive_in_a_storage_says_so():
    store = Both()
    manager = compacted(store, settings=ARCHIVE_TOO)
    (receipt,) = manager.receipts("s")
    assert receipt["exact"] is False
    restored = json.dumps(manager.restore("s"))
    assert not set(leaks(restored)) & set(SECRETS)


@pytest.mark.parametrize("method", ["put", "get", "names"])
def test_a_storage_that_fails_is_an_error_and_nothing_is_pruned(method, monkeypatch):
    store = Shelf()
    manager = CompactManager(config(storage=store))

    def broken(*_: Any) -> Any:
        raise OSError("no route to host")

    monkeypatch.setattr(store, method, broken)
    messages = chat(60)
    with pytest.raises(StorageError, match="no route to host"):
        manager.preflight("s", messages)
    monkeypatch.undo()
    assert manager.receipts("s") == []
    assert manager.prepare("s", messages, note="once more").receipt is not None
    assert CompactManager(config(storage=store)).restore("s") == messages


def test_a_damaged_object_is_an_error_that_names_it():
    store = Shelf()
    manager = compacted(store)
    (receipt,) = manager.receipts("s")
    for name in store.names("packs/"):
        store.kept[name] = store.kept[name][:-9] + b"something"
    with pytest.raises(StorageError, match="damaged"):
        manager.restore(receipt.id)
    for name in store.names("catalog/"):
        store.kept[name] = b"{"
    with pytest.raises(StorageError, match="damaged"):
        CompactManager(config(storage=store)).receipts("s")


def test_storages_are_tried_out(tmp_path):
    check_storage(Shelf())
    check_storage(Folder(tmp_path))
    assert not any(path.is_file() for path in tmp_path.rglob("*"))

    class Forgets(Shelf):
        def put(self, name, data):
            self.kept.setdefault(name, data)

    class Raises(Shelf):
        def get(self, name):
            return self.kept.get(name, b"")

    class Lists(Shelf):
        def names(self, prefix):
            return list(self.kept)

    class Keeps(Shelf):
        def remove(self, name):
            pass

    for kind, flaw in ((Forgets, "put last"), (Raises, "return None"), (Lists, "unused prefix"), (Keeps, "after remove")):
        with pytest.raises(StorageError, match=flaw):
            check_storage(kind())
    with pytest.raises(compact.ConfigError, match="the methods of StorageAdapter or ObjectStorage"):
        CompactManager(config(storage=object()))


def test_events_reach_a_storage_without_what_was_said():
    store, seen = Both(), []
    compacted(store, exporter=CallbackExporter(seen.append))
    assert len(store.events) == len(seen) > 0
    assert any("compact.archived" in event for event in store.events)


def test_sessions_without_a_name_are_handed_over_under_the_engines():
    class Named(Told):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def save_transcript(self, session_id, transcript):
            self.names.append(session_id)
            super().save_transcript(session_id, transcript)

    store = Named()
    manager = CompactManager(config(storage=store))
    prepared = manager.prepare(None, chat(60))
    assert store.names == [prepared.session_id] and "part_59" in store.transcripts[0]
    lines = open("examples/coding-session.jsonl", encoding="utf-8").read()
    assert manager.rewrite("agent", lines, "claude-code", note="by hand") is not None
    assert store.names[-1] == "agent" and len(store.transcripts[-1]) > len(lines) // 4
    # Beside its calls, before anybody knows the name.
    aside = CompactManager(config(3_000, storage=store, policy=CompactPolicy(soft_pct=0.3)))
    messages = chat(10)
    session = aside.prepare(None, messages).session_id
    deadline = time.monotonic() + 20
    while store.names[-1] != session and time.monotonic() < deadline:
        time.sleep(0.02)
    assert store.names[-1] == session and "part_9" in store.transcripts[-1]
