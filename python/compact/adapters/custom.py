"""A store of your own: told before anything is pruned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..message import Message

__all__ = ["StorageAdapter"]


@runtime_checkable
class StorageAdapter(Protocol):
    """Three methods. Everything comes redacted by the configured ``redact``.

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
