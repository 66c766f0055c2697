"""Everything that can be configured, from code, a file and the environment."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .adapters.custom import ObjectStorage, StorageAdapter
from .adapters.fs import FileStorage, NativeStorage
from .adapters.s3 import S3Storage
from .adapters.sql import SqlStorage
from .estimators.tiktoken import NativeEstimator, TokenEstimator
from .exceptions import ConfigError
from .exporters.console import ConsoleExporter
from .exporters.custom import Exporter
from .exporters.otlp import OtlpExporter
from .message import Message
from .policy import CompactPolicy
from .summarizer import Summarizer

__all__ = ["CompactConfig"]


@dataclass
class CompactConfig:
    """What a manager works with. Only the model is worth naming; everything else has a default."""

    model: str = ""
    #: The window in tokens; unset, the registry's for the model.
    max_context_tokens: int | None = None
    policy: CompactPolicy = field(default_factory=CompactPolicy)
    #: Unset, the BPE that fits the model.
    token_estimator: TokenEstimator | NativeEstimator | None = None
    #: Unset, nothing is archived, and an event says so.
    storage: StorageAdapter | ObjectStorage | NativeStorage | None = None
    exporter: Exporter | None = None
    #: Applied to every text that goes to a summarizer, into a summary, to your storage or to an
    #: exporter; where the engine asks, the message is a text without its role.
    redact: Callable[[Message], Message] | None = None
    #: Unset, summaries are extractive: no model, no network.
    summarizer: Summarizer | None = None
    #: The provider's format; unset, it is found out from the messages.
    format: str | None = None
    #: Sessions that are kept in memory; a session beyond is taken up again from its history.
    max_sessions: int = 256
    #: Further sections of the configuration file: ``redaction``, ``summarizer``, ``estimator``, …
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        window = self.max_context_tokens
        if isinstance(window, int) and window <= 0:
            raise ConfigError(f"max_context_tokens is {window}: give the model's window, or None")
        for name, kinds, methods in _EXPECTED:
            value = getattr(self, name)
            does = any(all(callable(getattr(value, m, None)) for m in some) for some in methods)
            if value is not None and not isinstance(value, kinds) and not does:
                wanted = [kind.__name__ for kind in kinds]
                wanted += [f"object with {' and '.join(some)}" for some in methods]
                raise ConfigError(f"{name} is {value!r}: give {' or '.join(wanted)}")
        if self.redact is not None and not callable(self.redact):
            raise ConfigError(f"redact is {self.redact!r}: give a function of a Message")

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        **overrides: Any,
    ) -> CompactConfig:
        """Reads YAML or JSON, ``COMPACT_*`` variables over it, and arguments over both.

        A path means that file alone. Without one, the user's own file is read and, above it, the one
        that ``COMPACT_CONFIG`` names or ``./compact.yaml``. That last one comes with a repository: what
        it may not decide is ignored with a warning, until ``compactctl config trust`` was run for it.
        """
        variables = list((os.environ if env is None else env).items())
        file = None if path is None else os.fspath(path)
        text, notes = _native.load_config(file, variables, path is None)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return cls(**{**_arguments(json.loads(text)), **overrides})

    def engine_settings(self) -> dict[str, Any]:
        """The configuration as the engine reads it."""
        settings: dict[str, Any] = dict(self.settings)
        settings["model"] = self.model or None
        settings["max_context_tokens"] = self.max_context_tokens
        settings["policy"] = self.policy.settings()
        settings["storage"] = {"adapter": "none", "archive": {"required": False}}
        if isinstance(self.storage, NativeStorage):
            settings["storage"] = self.storage.settings()
        elif isinstance(self.storage, ObjectStorage):
            settings["storage"] = {"adapter": "custom"}
        if isinstance(self.token_estimator, NativeEstimator):
            settings["estimator"] = self.token_estimator.name
        return settings


#: Arguments with the classes that they may be of, and the sets of methods that do as well.
_EXPECTED: tuple[tuple[str, tuple[type, ...], tuple[tuple[str, ...], ...]], ...] = (
    ("max_context_tokens", (int,), ()),
    ("policy", (CompactPolicy,), ()),
    ("settings", (Mapping,), ()),
    ("max_sessions", (int,), ()),
    ("token_estimator", (NativeEstimator,), (("estimate",),)),
    (
        "storage",
        (NativeStorage,),
        (("save_transcript", "save_summary", "save_event"), ("put", "get", "names")),
    ),
    ("exporter", (), (("emit",),)),
    ("summarizer", (), (("summarize",),)),
)


def _arguments(loaded: dict[str, Any]) -> dict[str, Any]:
    """A configuration file's sections as arguments."""
    del loaded["profile"]  # The policy has its values.
    return {
        "model": loaded.pop("model") or "",
        "max_context_tokens": loaded.pop("max_context_tokens"),
        "policy": CompactPolicy.from_settings(loaded.pop("policy")),
        "storage": _storage(loaded.pop("storage")),
        "exporter": _exporter(loaded.pop("telemetry")),
        "settings": loaded,
    }


def _storage(section: dict[str, Any]) -> NativeStorage | None:
    """What a program keeps in a store of its own (``custom``), it passes as an argument."""
    if section["adapter"] in ("none", "custom"):
        return None
    if section["catalog"] is not None:
        return SqlStorage.of(section)
    return (S3Storage if section["adapter"] == "s3" else FileStorage).of(section)


def _exporter(section: dict[str, Any]) -> Exporter | None:
    if section["exporter"] == "console":
        return ConsoleExporter(form=section["format"])
    if section["exporter"] == "otlp":
        return OtlpExporter(**section["otlp"])
    return None
