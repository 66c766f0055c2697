"""Names of sessions, made of what a framework calls them by.

A conversation that its framework does not name has no name here either: the engine knows it by its
history.
"""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["scoped"]


def scoped(*parts: object) -> str:
    """One name for what is named in parts, as app, user and session: ``shop/ann/7``.

    A slash within a part is written ``%2F``, so that no other parts make the same name.
    """
    return "/".join(quote(str(part), safe=" @:+,;=!~") for part in parts)
