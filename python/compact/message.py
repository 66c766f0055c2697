"""A plain message: a role, a text, and metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Message", "Role"]

Role = Literal["system", "developer", "assistant", "user", "tool"]


@dataclass
class Message:
    """One message. ``meta`` may carry ``tool_name``, ``tool_call_id``, ``turn_id``, ``protected``."""

    role: Role
    content: str
    meta: dict[str, Any] | None = None
