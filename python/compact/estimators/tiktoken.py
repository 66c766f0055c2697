"""The engine's own estimators; they need no other package and no download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from .. import _native, wire
from ..exceptions import ConfigError
from ..message import Message

__all__ = ["HeuristicEstimator", "NativeEstimator", "TiktokenEstimator", "TokenEstimator"]


@runtime_checkable
class TokenEstimator(Protocol):
    """Counts the tokens of messages.

    It must be deterministic, and the count of a list must be the sum of the counts of its messages. If it
    raises, the caller gets an ``EstimatorError`` and nothing has changed.
    """

    def estimate(self, messages: Sequence[Message], model: str) -> int:
        """Returns the tokens of ``messages`` for ``model``."""
        ...


class NativeEstimator:
    """An estimator of the engine, by its name."""

    name: str = "auto"

    def estimate(self, messages: Sequence[Any], model: str) -> int:
        """Returns the tokens of ``messages`` for ``model``; dicts and SDK objects are accepted too."""
        return wire.account(messages, estimator=self.name, model=model).total

    def count(self, text: str, model: str = "") -> int:
        """Returns the tokens of a text."""
        return _native.count_text(text, self.name, model or None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class TiktokenEstimator(NativeEstimator):
    """Counts with OpenAI's BPE tables, scaled for other model families; ``auto`` picks by the model.

    Raises ``ConfigError`` for an encoding that it does not have.
    """

    def __init__(self, encoding: Literal["auto", "o200k", "cl100k"] = "auto") -> None:
        if encoding not in ("auto", "o200k", "cl100k"):
            raise ConfigError(f"encoding is {encoding!r}: give one of auto, o200k, cl100k")
        self.name = encoding


class HeuristicEstimator(NativeEstimator):
    """Counts one token for four characters, and one for each CJK character: fast but rough."""

    name = "heuristic"
