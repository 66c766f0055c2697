"""An estimator that does not count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["NoopEstimator"]


class NoopEstimator:
    """Always counts zero, so that only the provider's reports and refusals lead to a compaction."""

    def estimate(self, messages: Sequence[Any], model: str) -> int:
        """Returns zero."""
        return 0
