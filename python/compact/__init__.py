"""Compact keeps a long-running LLM agent inside its context window without losing what matters.

>>> from compact import CompactConfig, CompactManager, MemoryStorage
>>> manager = CompactManager(CompactConfig(model="gpt-5", storage=MemoryStorage()))
>>> manager.preflight("my-session", [{"role": "user", "content": "Hello"}])
[{'role': 'user', 'content': 'Hello'}]

``preflight`` returns what to send: your own messages, or a smaller view of them. In a view tool calls keep
their results, protected messages stay as they are, and a summary stands for what was left out.
"""

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .adapters import (
        FileStorage,
        MemoryStorage,
        NativeStorage,
        ObjectStorage,
        S3Storage,
        SqlStorage,
        StorageAdapter,
        check_storage,
    )
    from .config import CompactConfig
    from .estimators import (
        HeuristicEstimator,
        NativeEstimator,
        NoopEstimator,
        TiktokenEstimator,
        TokenEstimator,
    )
    from .exceptions import (
        CompactError,
        ConfigError,
        EstimatorError,
        FormatError,
        InsufficientBudget,
        NotFound,
        RedactorError,
        SessionBusy,
        StorageError,
        SummaryError,
    )
    from .exporters import CallbackExporter, ConsoleExporter, Exporter, OtlpExporter
    from .manager import CompactManager, LiveSession, Prepared
    from .message import Message, Role
    from .policy import CompactPolicy
    from .receipt import Decision, Hit, Memory, Receipt, SessionChart
    from .reset import ResetOutcome, ResetSession, ResetStatus
    from .summarizer import MessagesToSummarize, Summarizer
    from .wire import Account, Codec, Violation, account, validate

#: The version of the package.
__version__: str = _native.VERSION

#: The module that each name is imported from, when it is first used: most programs need few of them.
_HOMES = {
    "adapters": (
        "FileStorage",
        "MemoryStorage",
        "NativeStorage",
        "ObjectStorage",
        "S3Storage",
        "SqlStorage",
        "StorageAdapter",
        "check_storage",
    ),
    "config": ("CompactConfig",),
    "estimators": (
        "HeuristicEstimator",
        "NativeEstimator",
        "NoopEstimator",
        "TiktokenEstimator",
        "TokenEstimator",
    ),
    "exceptions": (
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
    ),
    "exporters": ("CallbackExporter", "ConsoleExporter", "Exporter", "OtlpExporter",),
    "manager": ("CompactManager", "LiveSession", "Prepared",),
    "message": ("Message", "Role",),
    "policy": ("CompactPolicy",),
    "receipt": ("Decision", "Hit", "Memory", "Receipt", "SessionChart",),
    "reset": ("ResetOutcome", "ResetSession", "ResetStatus",),
    "summarizer": ("MessagesToSummarize", "Summarizer",),
    "wire": (
        "Account",
        "Codec",
        "Violation",
        "account",
        "validate",
    ),
}

__all__ = [
    "Account",
    "CallbackExporter",
    "Codec",
    "CompactConfig",
    "CompactError",
    "CompactManager",
    "CompactPolicy",
    "ConfigError",
    "ConsoleExporter",
    "Decision",
    "EstimatorError",
    "Exporter",
    "FileStorage",
    "FormatError",
    "HeuristicEstimator",
    "Hit",
    "InsufficientBudget",
    "LiveSession",
    "Memory",
    "MemoryStorage",
    "Message",
    "MessagesToSummarize",
    "NativeEstimator",
    "NativeStorage",
    "NoopEstimator",
    "NotFound",
    "ObjectStorage",
    "OtlpExporter",
    "Prepared",
    "Receipt",
    "RedactorError",
    "ResetOutcome",
    "ResetSession",
    "ResetStatus",
    "Role",
    "S3Storage",
    "SessionBusy",
    "SessionChart",
    "SqlStorage",
    "StorageAdapter",
    "StorageError",
    "Summarizer",
    "SummaryError",
    "TiktokenEstimator",
    "TokenEstimator",
    "Violation",
    "account",
    "check_storage",
    "validate",
]


def __getattr__(name: str) -> object:
    """Imports what is asked for."""
    from importlib import import_module

    if name in _HOMES:
        found: object = import_module(f".{name}", __name__)
    else:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
