"""The engine's store in an S3 bucket."""

from __future__ import annotations

import os
from typing import Literal

from ..exceptions import ConfigError
from .fs import NativeStorage

__all__ = ["S3Storage"]


class S3Storage(NativeStorage):
    """Stores originals in a bucket of Amazon S3 or a compatible server.

    Credentials come from ``AWS_ACCESS_KEY_ID`` and the other variables of Amazon's clients, or from the
    machine's role. Receipts and the recall index are kept in the folder ``path``, by default in the user's
    data directory. To share them between machines, use ``SqlStorage(url, originals=S3Storage(…))``. Raises
    ``ConfigError`` if ``bucket`` is not a name.
    """

    def __init__(
        self,
        bucket: str,
        *,
        prefix: str | None = None,
        endpoint: str | None = None,
        region: str | None = None,
        style: Literal["path", "host"] = "path",
        sse: Literal["unset", "aes256", "kms"] = "unset",
        kms_key: str | None = None,
        path: str | os.PathLike[str] | None = None,
        key_env: str | None = None,
    ) -> None:
        if not isinstance(bucket, str) or not bucket:
            raise ConfigError(f"bucket is {bucket!r}: give the bucket's name")
        self.section = {
            "adapter": "s3",
            "path": None if path is None else os.path.abspath(os.path.expanduser(os.fspath(path))),
            "archive": {"key_env": key_env},
            "s3": {
                "bucket": bucket,
                "prefix": prefix,
                "endpoint": endpoint,
                "region": region,
                "style": style,
                "sse": sse,
                "kms_key": kms_key,
            },
        }

    def __repr__(self) -> str:
        bucket = self.section["s3"]
        place = "/".join(part for part in (bucket["bucket"], bucket["prefix"]) if part)
        return f"S3Storage('s3://{place}')"
