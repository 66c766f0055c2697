"""Where originals are kept."""

from .custom import StorageAdapter
from .fs import FileStorage, MemoryStorage, NativeStorage

__all__ = ["FileStorage", "MemoryStorage", "NativeStorage", "StorageAdapter"]
