"""Protocols for stores of your own.

A :class:`StorageAdapter` receives copies of what is archived; nothing is read back from it. An
:class:`ObjectStorage` keeps bytes by name, so ``restore``, ``recall``, ``expand`` and ``verify`` work with it
as with the engine's own stores. One object may implement both. ``check_storage`` tests an object storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from ..exceptions import StorageError
from ..message import Message

__all__ = ["ObjectStorage", "StorageAdapter", "check_storage"]


@runtime_checkable
class StorageAdapter(Protocol):
    """Receives the transcript before it is pruned, and every summary and event.

    Everything is redacted by your ``redact`` function, if there is one. The built-in rules also remove
    secrets and personal data: always from summaries and events, and from transcripts only with
    ``redaction.sinks.archive``. Without that setting a transcript is exact, as in any archive.

    If ``save_transcript`` raises, nothing is pruned and the caller gets a ``StorageError``. An error in
    ``save_summary`` or ``save_event`` is reported as an event and does not stop the agent.
    """

    def save_transcript(self, session_id: str, transcript: Sequence[Message]) -> None:
        """Stores the whole conversation before it is compacted."""
        ...

    def save_summary(self, session_id: str, summary: Message, step: int) -> None:
        """Stores a new summary; ``step`` is its version."""
        ...

    def save_event(self, session_id: str, event: dict[str, Any]) -> None:
        """Stores an event: counts and ids, no content."""
        ...


@runtime_checkable
class ObjectStorage(Protocol):
    """Keeps bytes by name, as a dict does.

    The engine writes compressed originals and the records about them. Originals are exact, or without
    secrets if ``redaction.sinks.archive`` is set. Names consist of letters, digits, ``.``, ``-``, ``_`` and
    ``/``, and contain nothing of the conversation. A session may be used by one process at a time. If a
    method raises, the caller gets a ``StorageError`` and nothing is pruned. The method ``remove(name)`` is
    optional; with it the engine deletes what it no longer needs.
    """

    def put(self, name: str, data: bytes) -> None:
        """Stores ``data`` under ``name``, replacing what was there; it must be durable on return."""
        ...

    def get(self, name: str) -> bytes | None:
        """Returns what is stored under ``name``, or ``None``."""
        ...

    def names(self, prefix: str) -> Iterable[str]:
        """Returns all names that begin with ``prefix``."""
        ...


def check_storage(storage: ObjectStorage) -> None:
    """Checks that a storage does what the engine relies on; raises ``StorageError`` with what is wrong.

    It leaves a few small objects below ``check/``, unless the storage has a ``remove`` method.
    """
    import uuid  # takes longer to import than the rest of this module

    folder = f"check/{uuid.uuid4().hex}/"
    samples = {f"{folder}{n:02}-a_b.bin": data for n, data in enumerate(_SAMPLES)}
    found: object
    for name, data in samples.items():
        found = storage.get(name)
        _expect(found is None, f"get({name!r}) returned {found!r} before anything was put: return None")
        storage.put(name, b"before")
        storage.put(name, data)
    for name, data in samples.items():
        found = storage.get(name)
        _expect(found == data, f"get({name!r}) did not return the bytes that were put last")
    listed = sorted(storage.names(folder))
    _expect(listed == sorted(samples), f"names({folder!r}) returned {listed}: expected {sorted(samples)}")
    _expect(list(storage.names(f"{folder}none")) == [], "names of an unused prefix must be empty")
    remove = getattr(storage, "remove", None)
    if callable(remove):
        for name in samples:
            remove(name)
            _expect(storage.get(name) is None, f"get({name!r}) must return None after remove")


#: No bytes, bytes that are not text, and more than one page.
_SAMPLES = (b"", bytes(range(256)), b"\x00\xff\r\n" * 100_000)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise StorageError(otherwise)
