"""Token estimators."""

from .noop import NoopEstimator
from .tiktoken import HeuristicEstimator, NativeEstimator, TiktokenEstimator, TokenEstimator

__all__ = [
    "HeuristicEstimator",
    "NativeEstimator",
    "NoopEstimator",
    "TiktokenEstimator",
    "TokenEstimator",
]
