"""The engine's own stores in a folder and in memory."""

from __future__ import annotations

import os
from typing import Any

from ..exceptions import ConfigError

__all__ = ["FileStorage", "MemoryStorage", "NativeStorage"]


class NativeStorage:
    """A store of the engine, described by a ``storage`` section of the configuration.

    What it keeps can be restored, searched and verified.
    """

    section: dict[str, Any]

    def settings(self) -> dict[str, Any]:
        """Returns the ``storage`` section that describes the store."""
        return self.section

    @classmethod
    def from_section(cls, section: dict[str, Any]) -> NativeStorage:
        """Builds the store from a section that was read from a file."""
        made = cls.__new__(cls)
        made.section = section
        return made


class FileStorage(NativeStorage):
    """Stores originals in a folder that only its owner can read; ``compactctl`` can use the same folder.

    ``key_env`` names the environment variable with the encryption key (64 hexadecimal digits); without it
    originals are not encrypted. Raises ``ConfigError`` if ``path`` is empty.
    """

    def __init__(self, path: str | os.PathLike[str], *, key_env: str | None = None) -> None:
        folder = os.fspath(path)
        if not folder:
            raise ConfigError("path is empty: give a folder, such as './.compact/archive'")
        self.section = {
            "adapter": "fs",
            "path": os.path.abspath(os.path.expanduser(folder)),
            "archive": {"key_env": key_env},
        }

    @property
    def path(self) -> str | None:
        """The folder, or ``None`` for the default one in the user's data directory."""
        path: str | None = self.section["path"]
        return path

    def __repr__(self) -> str:
        return f"FileStorage({self.path!r})"


class MemoryStorage(NativeStorage):
    """Stores everything in the memory of this process, until it ends."""

    def __init__(self) -> None:
        self.section = {"adapter": "custom"}

    def __repr__(self) -> str:
        return "MemoryStorage()"
