"""Where originals are kept."""

from .custom import StorageAdapter
from .fs import FileStorage, MemoryStorage, NativeStorage
from .s3 import S3Storage
from .sql import SqlStorage

__all__ = [
    "FileStorage",
    "MemoryStorage",
    "NativeStorage",
    "S3Storage",
    "SqlStorage",
    "StorageAdapter",
]
