"""Stores of the engine itself: what they keep can be restored, searched and verified."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["FileStorage", "MemoryStorage", "NativeStorage"]


class NativeStorage:
    """A store of the engine itself."""

    def settings(self) -> dict[str, Any]:
        """The ``storage`` section that it stands for."""
        raise NotImplementedError


class FileStorage(NativeStorage):
    """A folder, readable by its owner only; ``compactctl`` reads the same one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))

    def settings(self) -> dict[str, Any]:
        return {"adapter": "fs", "path": self.path}

    def __repr__(self) -> str:
        return f"FileStorage({self.path!r})"


class MemoryStorage(NativeStorage):
    """The memory of this process: gone when it ends."""

    def settings(self) -> dict[str, Any]:
        return {"adapter": "custom"}

    def __repr__(self) -> str:
        return "MemoryStorage()"
