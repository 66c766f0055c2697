"""Everything that Compact raises. After any of these the conversation is as it was."""

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
    """The root of all errors of this package."""


class InsufficientBudget(CompactError):
    """What must stay does not fit: do not send, shorten what is pinned or start a new session."""

    def __init__(
        self, message: str, *, pinned_tokens: int = 0, needed: int = 0, budget: int = 0
    ) -> None:
        super().__init__(message)
        self.pinned_tokens = pinned_tokens
        self.needed = needed
        self.budget = budget


class ConfigError(CompactError, ValueError):
    """A setting that does not exist or cannot have this value."""


class FormatError(CompactError, ValueError):
    """Messages that cannot be read as a conversation."""


class EstimatorError(CompactError):
    """A token estimator of yours raised, or answered with something that is no count."""


class RedactorError(CompactError):
    """A redactor of yours raised, or answered with no message: nothing left and nothing was pruned."""


class StorageError(CompactError):
    """What was to be pruned could not be stored first, so nothing was pruned."""


class SummaryError(CompactError):
    """The summarizer failed, and the policy says that nothing else will do."""


class NotFound(CompactError, LookupError):
    """No receipt, session or entry of that name is on record."""


class SessionBusy(CompactError):
    """The session is being compacted by the very call that asks for it, or refuses input meanwhile."""
