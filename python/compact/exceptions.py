"""The errors that Compact raises. After any of them the conversation is unchanged."""

from __future__ import annotations

__all__ = [
    "CompactError",
    "ConfigError",
    "EstimatorError",
    "FormatError",
    "InsufficientBudget",
    "NotFound",
    "RedactorError",
    "SessionBusy",
    "StorageError",
    "SummaryError",
]


class CompactError(Exception):
    """The base class of all errors of this package."""


class InsufficientBudget(CompactError):
    """What must stay does not fit the budget: send nothing; shorten what is pinned, or start a new session.

    All three numbers are tokens.
    """

    def __init__(
        self, message: str, *, pinned_tokens: int = 0, needed: int = 0, budget: int = 0
    ) -> None:
        super().__init__(message)
        self.pinned_tokens = pinned_tokens
        self.needed = needed
        self.budget = budget


class ConfigError(CompactError, ValueError):
    """A setting does not exist or cannot have this value."""


class FormatError(CompactError, ValueError):
    """Messages cannot be read as a conversation."""


class EstimatorError(CompactError):
    """Your token estimator raised, or returned something other than a count."""


class RedactorError(CompactError):
    """Your redactor raised, or did not return a message; nothing was sent or pruned."""


class StorageError(CompactError):
    """The original could not be stored, so nothing was pruned."""


class SummaryError(CompactError):
    """The summarizer failed, and the policy allows no other summary."""


class NotFound(CompactError, LookupError):
    """No receipt, session or entry of that name exists."""


class SessionBusy(CompactError):
    """The session is being compacted: by the call that this callback belongs to, or in the background."""
