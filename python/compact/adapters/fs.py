"""Stores of the engine itself: what they keep can be restored, searched and verified."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["FileStorage", "MemoryStorage", "NativeStorage"]


class NativeStorage:
    """A store of the engine itself: a ``storage`` section of the configuration."""

    section: dict[str, Any]

    def settings(self) -> dict[str, Any]:
        """The ``storage`` section that it stands for."""
        return self.section

    @classmethod
    def of(cls, section: dict[str, Any]) -> NativeStorage:
        """The store of a section that was read from a file."""
        made = cls.__new__(cls)
        made.section = section
        return made


class FileStorage(NativeStorage):
    """A folder, readable by its owner only; ``compactctl`` reads the same one.

    ``key_env`` names the variable with the key (64 hexadecimal digits) that originals are encrypted
    with; without one they are not.
    """

    def __init__(self, path: str | os.PathLike[str], *, key_env: str | None = None) -> None:
        self.section = {
            "adapter": "fs",
            "path": os.path.abspath(os.path.expanduser(os.fspath(path))),
            "archive": {"key_env": key_env},
        }

    @property
    def path(self) -> str | None:
        """The folder; ``None`` for the one in the user's data directory."""
        path: str | None = self.section["path"]
        return path

    def __repr__(self) -> str:
        return f"FileStorage({self.path!r})"


class MemoryStorage(NativeStorage):
    """The memory of this process: gone when it ends."""

    def __init__(self) -> None:
        self.section = {"adapter": "custom"}

    def __repr__(self) -> str:
        return "MemoryStorage()"
