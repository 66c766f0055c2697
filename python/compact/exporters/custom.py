"""Events to a function of yours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

__all__ = ["CallbackExporter", "Exporter"]


@runtime_checkable
class Exporter(Protocol):
    """Takes events: counts and ids, never content.

    It is called on a thread of its own. What it raises is logged and counted, and it may hang
    without delaying anybody but later events. One that holds events back has a
    ``flush(timeout) -> bool``, which ``CompactManager.flush`` calls.
    """

    def emit(self, event: dict[str, Any]) -> None:
        """Takes one event."""
        ...


class CallbackExporter:
    """Calls a function with every event."""

    def __init__(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self.callback = callback

    def emit(self, event: dict[str, Any]) -> None:
        """Takes one event."""
        self.callback(event)
