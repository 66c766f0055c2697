"""Builds session names from the names that a framework uses.

A conversation that its framework does not name gets no name here: the engine recognises it by its history.
"""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["join_session_name"]


def join_session_name(*parts: object) -> str:
    """Joins the parts of a name, such as app, user and session: ``shop/ann/7``.

    A slash within a part becomes ``%2F``, so that different parts never make the same name.
    """
    return "/".join(quote(str(part), safe=" @:+,;=!~") for part in parts)
