"""Names for conversations that their framework does not name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from .wire import Codec, dumps

__all__ = ["session_name"]


def session_name(kind: str, messages: Sequence[Any], codec: Codec) -> str:
    """A name made of how the conversation begins, which later calls begin with as well."""
    first = dumps(codec.dump(messages[0])) if messages else ""
    return f"{kind}-{hashlib.sha256(first.encode()).hexdigest()[:16]}"
