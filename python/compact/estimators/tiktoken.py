"""Estimators of the engine itself; they need no package and no download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from .. import _native, wire
from ..message import Message

__all__ = ["HeuristicEstimator", "NativeEstimator", "TiktokenEstimator", "TokenEstimator"]


@runtime_checkable
class TokenEstimator(Protocol):
    """Counts messages. Must be deterministic, and add up over messages.

    When it raises, the caller gets an ``EstimatorError`` and nothing has changed.
    """

    def estimate(self, messages: Sequence[Message], model: str) -> int:
        """The tokens of ``messages`` for ``model``."""
        ...


class NativeEstimator:
    """An estimator of the engine itself, by its name."""

    name: str = "auto"

    def estimate(self, messages: Sequence[Any], model: str) -> int:
        """The tokens of ``messages`` for ``model``; dicts and objects of SDKs count too."""
        return wire.account(messages, estimator=self.name, model=model).total

    def count(self, text: str, model: str = "") -> int:
        """The tokens of a text."""
        return _native.count(text, self.name, model or None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class TiktokenEstimator(NativeEstimator):
    """BPE with OpenAI's tables, scaled for other families; ``auto`` picks what fits the model."""

    def __init__(self, encoding: Literal["auto", "o200k", "cl100k"] = "auto") -> None:
        self.name = encoding


class HeuristicEstimator(NativeEstimator):
    """Characters over four, a token for each CJK character: quick and rough."""

    name = "heuristic"
