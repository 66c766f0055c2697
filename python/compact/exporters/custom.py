"""The protocol for exporters of your own, and one that calls a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from ..check import is_async

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
    """Calls a function with every event.

    Raises ``TypeError`` for what cannot be called, and for an ``async`` function, which nobody would await: to
    reach an event loop, pass ``lambda event: loop.call_soon_threadsafe(queue.put_nowait, event)``.
    """

    def __init__(self, callback: Callable[[dict[str, Any]], object]) -> None:
        if not callable(callback) or is_async(callback):
            found = f"async {callback!r}" if callable(callback) else type(callback).__name__
            raise TypeError(f"callback must be an ordinary function that takes an event, found {found}")
        self.callback = callback

    def emit(self, event: dict[str, Any]) -> None:
        """Calls the function with the event."""
        result = self.callback(event)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError("the callback returned a coroutine, and nobody awaits it")
