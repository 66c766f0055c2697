"""The protocol for exporters of your own, and one that calls a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

__all__ = ["CallbackExporter", "Exporter"]


@runtime_checkable
class Exporter(Protocol):
    """Receives events: counts and ids, never content.

    It is called on its own thread. Errors are logged and counted; an exporter that hangs delays only later
    events. One that buffers events should have ``flush(timeout) -> bool``, which ``CompactManager.flush``
    calls.
    """

    def emit(self, event: dict[str, Any]) -> None:
        """Handles one event."""
        ...


class CallbackExporter:
    """Calls a function with every event."""

    def __init__(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self.callback = callback

    def emit(self, event: dict[str, Any]) -> None:
        """Calls the function with the event."""
        self.callback(event)
