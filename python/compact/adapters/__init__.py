"""Stores for originals."""

from .custom import ObjectStorage, StorageAdapter, check_storage
from .fs import FileStorage, MemoryStorage, NativeStorage
from .s3 import S3Storage
from .sql import SqlStorage

__all__ = [
    "FileStorage",
    "MemoryStorage",
    "NativeStorage",
    "ObjectStorage",
    "S3Storage",
    "SqlStorage",
    "StorageAdapter",
    "check_storage",
]
