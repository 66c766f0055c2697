"""Stores of your own: one that is told what is archived, one that everything is kept in, or both.

A :class:`StorageAdapter` is told; nothing comes back from it. An :class:`ObjectStorage` keeps bytes by name,
and the way back (``restore``, ``recall``, ``expand``, ``verify``) works over it as over any store of the
engine. ``check_storage`` tries one out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from ..exceptions import StorageError
from ..message import Message

__all__ = ["ObjectStorage", "StorageAdapter", "check_storage"]


@runtime_checkable
class StorageAdapter(Protocol):
    """Three methods, told before anything is pruned. Everything comes redacted by ``redact``, if there is one.

    What the maintained rules take out of it is what they take out where text leaves the process, secrets
    and personal data: of a summary and an event always, of a transcript with
    ``redaction.sinks.archive``. Without that a transcript is what was said, as in any archive.

    When ``save_transcript`` raises, nothing is pruned and the caller gets a ``StorageError``. What
    ``save_summary`` and ``save_event`` raise is reported as an event and does not stop the agent.
    """

    def save_transcript(self, session_id: str, transcript: Sequence[Message]) -> None:
        """Stores the whole conversation as it is before a compaction."""
        ...

    def save_summary(self, session_id: str, summary: Message, step: int) -> None:
        """Stores a new summary; ``step`` is its version."""
        ...

    def save_event(self, session_id: str, event: dict[str, Any]) -> None:
        """Stores an event."""
        ...


@runtime_checkable
class ObjectStorage(Protocol):
    """Three methods that keep bytes by name; a dict does.

    The engine writes originals, compressed, and what is on record about them. Originals are as they were
    passed, or with ``redaction.sinks.archive`` without secrets. Names are made of letters, digits,
    ``.``, ``-``, ``_`` and ``/``, and never of anything that was said. A session is for one process at a
    time. What a method raises is a ``StorageError``, and nothing is pruned. A ``remove(name)``, if there is
    one, is used to take things away again.
    """

    def put(self, name: str, data: bytes) -> None:
        """Keeps ``data`` under ``name``, in place of what was there; it lasts once this returns."""
        ...

    def get(self, name: str) -> bytes | None:
        """What is kept under ``name``; ``None`` when nothing is."""
        ...

    def names(self, prefix: str) -> Iterable[str]:
        """All names that begin with ``prefix``."""
        ...


def check_storage(storage: ObjectStorage) -> None:
    """Tries out whether a storage does what the engine relies on; a ``StorageError`` says what it does not.

    It leaves a few small objects below ``check/`` behind, unless there is a ``remove``.
    """
    folder = f"check/{uuid.uuid4().hex}/"
    samples = {f"{folder}{n:02}-a_b.bin": data for n, data in enumerate(_SAMPLES)}
    found: object
    for name, data in samples.items():
        found = storage.get(name)
        _expect(found is None, f"get({name!r}) answered {found!r} before anything was put: answer None")
        storage.put(name, b"before")
        storage.put(name, data)
    for name, data in samples.items():
        found = storage.get(name)
        _expect(found == data, f"get({name!r}) did not answer the bytes that were put last")
    listed = sorted(storage.names(folder))
    _expect(listed == sorted(samples), f"names({folder!r}) answered {listed}: expected {sorted(samples)}")
    _expect(list(storage.names(f"{folder}none")) == [], "names of an unused prefix must be empty")
    remove = getattr(storage, "remove", None)
    if callable(remove):
        for name in samples:
            remove(name)
            _expect(storage.get(name) is None, f"get({name!r}) must answer None after remove")


#: Nothing, bytes that are no text, more than one page.
_SAMPLES = (b"", bytes(range(256)), b"\x00\xff\r\n" * 100_000)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise StorageError(otherwise)
