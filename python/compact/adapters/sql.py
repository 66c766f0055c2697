"""The engine's store with receipts in a database: SQLite, or PostgreSQL for several machines."""

from __future__ import annotations

import os
import re
from typing import Any

from ..exceptions import ConfigError
from .fs import FileStorage, NativeStorage
from .s3 import S3Storage

__all__ = ["SqlStorage"]


class SqlStorage(NativeStorage):
    """Stores receipts and sessions in the database at ``place``, and originals in ``originals``.

    ``place`` is ``postgres://user@host/database?sslmode=verify-full``, with the password in ``PGPASSWORD``, or
    the path of a SQLite file. By default originals are stored in the folder of the SQLite file, or with
    PostgreSQL in the user's data directory. Raises ``ConfigError`` if ``place`` is empty.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        originals: FileStorage | S3Storage | None = None,
    ) -> None:
        place = os.fspath(place)
        if not place:
            raise ConfigError("place is empty: give postgres://user@host/database, or a file")
        section: dict[str, Any] = {"adapter": "fs"} if originals is None else originals.settings()
        if "://" not in place:
            file = os.path.abspath(os.path.expanduser(place))
            beside = {"path": os.path.dirname(file)} if originals is None else {}
            self.section = {**section, **beside, "catalog": f"sqlite:{file}"}
        else:
            self.section = {**section, "catalog": place}

    def __repr__(self) -> str:
        place = re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", self.section["catalog"])
        return f"SqlStorage({place.removeprefix('sqlite:')!r})"
