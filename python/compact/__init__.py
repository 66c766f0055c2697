"""Compact keeps a long-running LLM agent inside its context window without losing what matters.

>>> from compact import CompactConfig, CompactManager, MemoryStorage
>>> manager = CompactManager(CompactConfig(model="gpt-5", storage=MemoryStorage()))
>>> manager.preflight("my-session", [{"role": "user", "content": "Hello"}])
[{'role': 'user', 'content': 'Hello'}]

``preflight`` returns what to send: your own messages, or a smaller view of them. In a view tool calls keep
their results, protected messages stay as they are, and a summary stands for what was left out.
"""

from . import _native
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
from .manager import CompactManager, Prepared
from .message import Message, Role
from .policy import CompactPolicy
from .receipt import Decision, Hit, Memory, Receipt
from .summarizer import MessagesToSummarize, Summarizer
from .wire import Account, Codec, Violation, account, validate

#: The version of the package.
__version__: str = _native.VERSION

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
    "Role",
    "S3Storage",
    "SessionBusy",
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
