"""Delivers events from the engine to exporters, through a queue and a thread.

The engine only adds to the queue, so an exporter that raises, hangs or is slow delays nobody.
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

#: How many events may wait; beyond that the newest are dropped and counted.
CAPACITY = 4096

EventReceiver = Callable[[dict[str, Any]], None]

_ALIVE: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher:
    """Delivers events one after the other, on a thread that starts with the first event."""

    def __init__(self, receivers: list[EventReceiver]) -> None:
        self.receivers = receivers
        self.dropped = 0
        self._waiting: deque[dict[str, Any]] = deque()
        self._moved = threading.Condition()
        self._busy = False
        self._is_closed = False
        self._thread: threading.Thread | None = None
        if receivers:
            _ALIVE.add(self)

    def put_json(self, text: str) -> None:
        """Queues an event given as JSON; never waits."""
        if self.receivers:
            self.put(json.loads(text))

    def put(self, event: dict[str, Any]) -> None:
        """Queues an event; never waits. If the queue is full, the event is dropped and counted."""
        if not self.receivers:
            return
        with self._moved:
            if self._is_closed or len(self._waiting) >= CAPACITY:
                self.dropped += 1
                return
            self._waiting.append(event)
            if self._thread is None:
                self._start_thread()
            self._moved.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until everything is delivered; false if that takes longer than ``timeout`` seconds."""
        with self._moved:
            return self._moved.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def close(self) -> None:
        """Ends the thread once it has delivered what waits; later events are dropped."""
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()

    def _start_thread(self) -> None:
        worker = threading.Thread(target=_deliver_events, args=(weakref.ref(self),), name="compact-events")
        worker.daemon = True
        self._thread = worker
        worker.start()

    def _next_event(self) -> dict[str, Any] | None:
        with self._moved:
            self._busy = False
            self._moved.notify_all()
            # The timeout lets the garbage collector take a dispatcher that nobody holds any more.
            if not self._moved.wait_for(lambda: bool(self._waiting) or self._is_closed, timeout=0.5):
                return None
            if not self._waiting:
                return None
            self._busy = True
            return self._waiting.popleft()

    def _is_finished(self) -> bool:
        return self._is_closed and not self._waiting

    def _deliver(self, event: dict[str, Any]) -> None:
        for receiver in self.receivers:
            try:
                receiver(event)
            except Exception:
                self.dropped += 1
                logger.warning("an exporter failed on %s", event.get("event"), exc_info=True)


def _deliver_events(reference: weakref.ref[Dispatcher]) -> None:
    while (dispatcher := reference()) is not None:
        event = dispatcher._next_event()
        if event is not None:
            dispatcher._deliver(event)
        elif dispatcher._is_finished():
            return
        del dispatcher


@atexit.register
def _flush_all() -> None:
    for dispatcher in list(_ALIVE):
        dispatcher.flush(timeout=2.0)
