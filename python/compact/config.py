"""The configuration of a manager, from code, a file and the environment."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _native, wire
from .adapters.custom import ObjectStorage, StorageAdapter
from .adapters.fs import FileStorage, NativeStorage
from .adapters.s3 import S3Storage
from .adapters.sql import SqlStorage
from .check import is_async
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
    """The configuration of a manager. Everything has a default; naming the model is usually enough.

    Raises ``ConfigError`` for an argument of the wrong kind.
    """

    model: str = ""
    #: The context window in tokens; by default that of the model in the registry.
    max_context_tokens: int | None = None
    policy: CompactPolicy = field(default_factory=CompactPolicy)
    #: By default the BPE that fits the model.
    token_estimator: TokenEstimator | NativeEstimator | None = None
    #: By default nothing is archived, and an event reports it.
    storage: StorageAdapter | ObjectStorage | NativeStorage | None = None
    exporter: Exporter | None = None
    #: Applied to every text that goes to a summarizer, into a summary, to your storage or to an
    #: exporter. The engine calls it with single texts, as messages with the role ``user``.
    redact: Callable[[Message], Message] | None = None
    #: By default summaries are extractive: no model, no network.
    summarizer: Summarizer | None = None
    #: The provider's format; by default it is detected from the messages.
    format: str | None = None
    #: How many sessions are kept in memory; others are continued from their history.
    max_sessions: int = 256
    #: Further sections of the configuration file: ``redaction``, ``summarizer``, ``embeddings``, …
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds, methods, wanted in _ARGUMENT_KINDS:
            value = getattr(self, name)
            is_instance = isinstance(value, kinds) and not isinstance(value, bool)
            does = not isinstance(value, type) and _has_methods(value, methods)
            is_left_out = value is None and name not in _NEEDED
            if not is_left_out and not is_instance and not does:
                raise ConfigError(f"{name} is {value!r}: give {wanted}")
        if self.redact is not None and not callable(self.redact):
            raise ConfigError(f"redact is {self.redact!r}: give a function that takes and returns a Message")
        if is_async(getattr(self.exporter, "emit", None)):
            raise ConfigError("exporter.emit is async, and nobody awaits it: give an ordinary method")
        for name in ("max_context_tokens", "max_sessions"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise ConfigError(f"{name} is {number}: give a number above 0")
        if self.max_sessions > _MOST_SESSIONS:
            raise ConfigError(f"max_sessions is {self.max_sessions}: give a number up to {_MOST_SESSIONS:,}")
        if self.format is not None and self.format not in wire.FORMATS:
            raise ConfigError(f"format is {self.format!r}: give one of {', '.join(wire.FORMATS)}")
        _check_sections(self.settings)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        **overrides: Any,
    ) -> CompactConfig:
        """Loads a YAML, JSON or TOML file; ``COMPACT_*`` variables override it, and arguments override both.

        With a path, only that file is read. Without one, the user's own file is read first, then the file
        that ``COMPACT_CONFIG`` names or ``./compact.yaml``. ``./compact.yaml`` may come with a repository:
        settings that it may not decide are ignored with a warning, until you trust the file with
        ``compactctl config trust``. Raises ``ConfigError`` with the file and key that is wrong.
        """
        variables = list((os.environ if env is None else env).items())
        file = None if path is None else os.fspath(path)
        if file is not None:
            _check_readable(file)
        text, notes = _native.load_config(file, variables, path is None)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        settings = json.loads(text)
        _check_custom(settings, overrides)
        return cls(**{**_constructor_arguments(settings), **overrides})

    def _check_window(self) -> None:
        window, buffer = self.max_context_tokens, self.policy.hard_cap_buffer
        if window is not None and window <= buffer:
            raise ConfigError(
                f"max_context_tokens is {window}, and policy.hard_cap_buffer reserves {buffer} of them: "
                "give the model's whole window, or a smaller buffer"
            )

    def engine_settings(self) -> dict[str, Any]:
        """Returns the configuration as the engine reads it."""
        self._check_window()
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


def _check_readable(file: str) -> None:
    try:
        with open(file, "rb"):
            return
    except OSError as error:
        raise ConfigError(
            f"{file!r} cannot be read: {error.strerror}; give the path of a file that can, or no path"
        ) from error


def _check_custom(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Raises an error where the file leaves something to the program, which does not pass it."""
    for section, key, argument in (("storage", "adapter", "storage"), ("telemetry", "exporter", "exporter")):
        if settings[section][key] == "custom" and overrides.get(argument) is None:
            raise ConfigError(
                f"{section}.{key} is custom: pass your own to CompactConfig.load(path, {argument}=...), "
                "or name another one in the file"
            )


_Methods = tuple[tuple[str, ...], ...]

#: The classes that each argument may have, the methods that an object may have instead, and both in words.
_ARGUMENT_KINDS: tuple[tuple[str, tuple[type, ...], _Methods, str], ...] = (
    ("model", (str,), (), "the model's name as text"),
    ("max_context_tokens", (int,), (), "the model's window as an int, or None"),
    ("policy", (CompactPolicy,), (), "a CompactPolicy(...)"),
    ("settings", (Mapping,), (), "a dict of sections"),
    ("max_sessions", (int,), (), "an int"),
    ("format", (str,), (), "the name of a format"),
    (
        "token_estimator",
        (NativeEstimator,),
        (("estimate",),),
        "TiktokenEstimator(), or an object with a method estimate(messages, model)",
    ),
    (
        "storage",
        (NativeStorage,),
        (("save_transcript", "save_summary", "save_event"), ("put", "get", "names")),
        "FileStorage(path) or another store, or an object with the methods of StorageAdapter or ObjectStorage",
    ),
    (
        "exporter",
        (),
        (("emit",),),
        "ConsoleExporter(), CallbackExporter(function), or an object with a method emit(event)",
    ),
    (
        "summarizer",
        (),
        (("summarize",),),
        "an object with a method summarize(messages, style, keep_keys)",
    ),
)

#: The arguments that are never ``None``.
_NEEDED = ("policy", "settings", "max_sessions")

#: More sessions than any machine's memory holds.
_MOST_SESSIONS = 2**31 - 1

#: Sections of a configuration file that are arguments here.
_ARGUMENTS_OF_SECTIONS = {
    "model": "model=",
    "max_context_tokens": "max_context_tokens=",
    "policy": "policy=CompactPolicy(...)",
    "profile": "policy=CompactPolicy(...), or load a file with CompactConfig.load(path)",
    "storage": "storage=",
    "telemetry": "exporter=",
}


def _has_methods(value: Any, methods: _Methods) -> bool:
    return any(all(callable(getattr(value, name, None)) for name in names) for names in methods)


def _check_sections(settings: Mapping[str, Any]) -> None:
    """Refuses sections that would be ignored."""
    for name in settings:
        if name in _ARGUMENTS_OF_SECTIONS:
            raise ConfigError(
                f"settings[{name!r}] would be ignored: pass {_ARGUMENTS_OF_SECTIONS[name]} instead"
            )
    known = json.loads(_native.load_config(None, [], False)[0]) if settings else {}
    for name in settings:
        if name not in known:
            sections = ", ".join(sorted(known.keys() - _ARGUMENTS_OF_SECTIONS.keys()))
            raise ConfigError(f"settings has no section {name!r}: give one of {sections}")
    _check_embeddings(settings.get("embeddings"))


def _check_embeddings(section: Any) -> None:
    """Refuses keys that have no effect because no model is asked."""
    if not isinstance(section, Mapping) or section.get("kind", "words") != "words":
        return
    for key in ("url", "model", "api_key_env"):
        if section.get(key):
            raise ConfigError(
                f"embeddings.{key} has no effect while embeddings.kind is 'words': set kind to 'openai' too"
            )


def _constructor_arguments(loaded: dict[str, Any]) -> dict[str, Any]:
    """Returns the sections of a configuration file as arguments of ``CompactConfig``."""
    del loaded["profile"]  # The policy has its values.
    return {
        "model": loaded.pop("model") or "",
        "max_context_tokens": loaded.pop("max_context_tokens"),
        "policy": CompactPolicy.from_settings(loaded.pop("policy")),
        "storage": _storage_from_section(loaded.pop("storage")),
        "exporter": _exporter_from_section(loaded.pop("telemetry")),
        "settings": loaded,
    }


def _storage_from_section(section: dict[str, Any]) -> NativeStorage | None:
    """Returns the store of a ``storage`` section; a ``custom`` store is passed as an argument instead."""
    if section["adapter"] in ("none", "custom"):
        return None
    if section["catalog"] is not None:
        return SqlStorage.from_section(section)
    if section["adapter"] == "s3":
        return S3Storage.from_section(section)
    if section["adapter"] == "fs":
        return FileStorage.from_section(section)
    raise ConfigError(f"storage.adapter: {section['adapter']!r} is not available in Python")


def _exporter_from_section(section: dict[str, Any]) -> Exporter | None:
    if section["exporter"] == "console":
        return ConsoleExporter(form=section["format"])
    if section["exporter"] == "otlp":
        return OtlpExporter(**section["otlp"])
    if section["exporter"] in ("none", "custom"):
        return None
    raise ConfigError(f"telemetry.exporter: {section['exporter']!r} is not available in Python")
