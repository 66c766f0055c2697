"""An exporter to an OpenTelemetry collector: a log record for each event, spans of calls, and metrics."""

from __future__ import annotations

import atexit
import json
import os
import weakref
from typing import Any, Literal

from .. import _native

__all__ = ["OtlpExporter"]

_ALIVE: weakref.WeakSet[OtlpExporter] = weakref.WeakSet()


class OtlpExporter:
    """Sends events over OTLP from a queue, so that a missing or slow collector delays nobody.

    OpenTelemetry's own variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_HEADERS``,
    ``OTEL_SERVICE_NAME``, …) apply to arguments that are not given. Raises ``ConfigError`` if the endpoint
    is not valid.
    """

    #: How many events had been dropped at the last flush.
    _dropped_before: int

    def __init__(
        self, endpoint: str | None = None, *, protocol: Literal["grpc", "http"] | None = None
    ) -> None:
        self.endpoint = endpoint
        self.protocol = protocol
        self._start_collector()
        _ALIVE.add(self)

    def emit(self, event: dict[str, Any]) -> None:
        """Queues one event; never waits."""
        self._own_collector().emit(json.dumps(event, ensure_ascii=False))

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until everything that was emitted is sent, for at most ``timeout`` seconds.

        Returns whether the collector has it all: false if events still wait, or if any were dropped since the
        last call. :attr:`dropped` counts them.
        """
        collector = self._own_collector()
        waiting = collector.flush(timeout)
        dropped = collector.dropped()
        is_complete = waiting == 0 and dropped == self._dropped_before
        self._dropped_before = dropped
        return is_complete

    @property
    def dropped(self) -> int:
        """How many events could not be delivered so far."""
        return self._own_collector().dropped()

    def _start_collector(self) -> None:
        self._process = os.getpid()
        self._collector = _native.Collector(self.endpoint, self.protocol)
        self._dropped_before = 0

    def _own_collector(self) -> _native.Collector:
        """Returns the queue of this process; after a fork the parent's queue has no thread here."""
        if self._process != os.getpid():
            self._start_collector()
        return self._collector


@atexit.register
def _flush_all() -> None:
    for exporter in list(_ALIVE):
        if exporter._process == os.getpid():
            exporter.flush(timeout=1.5)
