"""The way of an event from the engine to exporters: a queue and a thread.

The engine only ever puts into the queue, so an exporter that raises, hangs or is slow delays nobody.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Dispatcher"]

logger = logging.getLogger("compact")

#: How many events wait at most; beyond that the newest are dropped and counted.
CAPACITY = 4096

Deliver = Callable[[dict[str, Any]], None]

_ALIVE: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher:
    """Delivers events, one after the other, on a thread that starts with the first of them."""

    def __init__(self, receivers: list[Deliver]) -> None:
        self.receivers = receivers
        self.dropped = 0
        self._waiting: deque[dict[str, Any]] = deque()
        self._moved = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None
        if receivers:
            _ALIVE.add(self)

    def put_json(self, text: str) -> None:
        """Takes an event as JSON; never waits, never raises."""
        if self.receivers:
            self.put(json.loads(text))

    def put(self, event: dict[str, Any]) -> None:
        """Takes an event; never waits, never raises."""
        if not self.receivers:
            return
        with self._moved:
            if len(self._waiting) >= CAPACITY:
                self.dropped += 1
                return
            self._waiting.append(event)
            if self._thread is None:
                self._start()
            self._moved.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until everything is delivered; false when that took longer."""
        with self._moved:
            return self._moved.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def _start(self) -> None:
        worker = threading.Thread(target=_run, args=(weakref.ref(self),), name="compact-events")
        worker.daemon = True
        self._thread = worker
        worker.start()

    def _next(self) -> dict[str, Any] | None:
        with self._moved:
            self._busy = False
            self._moved.notify_all()
            # A pause, so that a dispatcher that nobody holds any more can be collected.
            if not self._moved.wait_for(lambda: bool(self._waiting), timeout=0.5):
                return None
            self._busy = True
            return self._waiting.popleft()

    def _deliver(self, event: dict[str, Any]) -> None:
        for receiver in self.receivers:
            try:
                receiver(event)
            except Exception:
                self.dropped += 1
                logger.warning("an exporter failed on %s", event.get("event"), exc_info=True)


def _run(reference: weakref.ref[Dispatcher]) -> None:
    while (dispatcher := reference()) is not None:
        event = dispatcher._next()
        if event is not None:
            dispatcher._deliver(event)
        del dispatcher


@atexit.register
def _flush_all() -> None:
    for dispatcher in list(_ALIVE):
        dispatcher.flush(timeout=2.0)
