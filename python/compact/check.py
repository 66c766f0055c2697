"""Checks of arguments whose type alone does not say whether they can be used."""

from __future__ import annotations

import inspect
from typing import Any

from .exceptions import ConfigError

__all__ = ["check_note", "check_number", "is_async"]


def check_number(name: str, number: Any, least: int, most: int, meaning: str) -> None:
    """Raises ``TypeError`` if an argument is not an int, and ``ConfigError`` if it is out of its range."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} must be an int, {meaning}, found {type(number).__name__}")
    if not least <= number <= most:
        raise ConfigError(f"{name} is {number}: give {meaning}, from {least:,} to {most:,}")


def check_note(note: Any) -> None:
    """Raises ``TypeError`` if a note is neither a text nor ``None``."""
    if note is not None and not isinstance(note, str):
        raise TypeError(f"note must be a text, found {type(note).__name__}")


def is_async(function: Any) -> bool:
    """Returns whether a call of the function would do nothing before it is awaited."""
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
