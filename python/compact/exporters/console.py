"""An exporter that prints events."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal, TextIO

from .. import _native

__all__ = ["ConsoleExporter"]


class ConsoleExporter:
    """Writes one line for each event to standard error or ``stream``, for people or as JSON."""

    def __init__(
        self, stream: TextIO | None = None, *, form: Literal["human", "json"] = "human"
    ) -> None:
        self.stream = stream
        self.form = form

    def emit(self, event: dict[str, Any]) -> None:
        """Writes one event."""
        text = json.dumps(event, ensure_ascii=False)
        line = text if self.form == "json" else _native.format_event(text)
        print(line, file=self.stream or sys.stderr, flush=True)
