"""No counting: nothing ever triggers by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["NoopEstimator"]


class NoopEstimator:
    """Counts nothing, so that only the provider's own reports and refusals lead to a compaction."""

    def estimate(self, messages: Sequence[Any], model: str) -> int:
        """Always zero."""
        return 0
