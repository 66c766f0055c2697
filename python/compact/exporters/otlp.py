"""Events to a collector of OpenTelemetry: a log record each, spans of calls, and metrics."""

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
    """Sends events over OTLP, behind a queue: a collector that is away or slow delays nobody.

    OpenTelemetry's own variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_HEADERS``,
    ``OTEL_SERVICE_NAME``, …) apply where an argument is not given.
    """

    def __init__(
        self, endpoint: str | None = None, *, protocol: Literal["grpc", "http"] | None = None
    ) -> None:
        self.endpoint = endpoint
        self.protocol = protocol
        self._start()
        _ALIVE.add(self)

    def emit(self, event: dict[str, Any]) -> None:
        """Takes one event; never waits."""
        self._here().emit(json.dumps(event, ensure_ascii=False))

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until the collector has everything; false when that took longer."""
        return self._here().flush(timeout) == 0

    @property
    def dropped(self) -> int:
        """How many events no collector took."""
        return self._here().dropped()

    def _start(self) -> None:
        self._process = os.getpid()
        self._collector = _native.Collector(self.endpoint, self.protocol)

    def _here(self) -> _native.Collector:
        """The queue of this process: a fork leaves the parent's without its thread."""
        if self._process != os.getpid():
            self._start()
        return self._collector


@atexit.register
def _flush_all() -> None:
    for exporter in list(_ALIVE):
        if exporter._process == os.getpid():
            exporter.flush(timeout=1.5)
