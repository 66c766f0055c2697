"""Results for programs and people: receipts, decisions, search hits and memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Decision", "Hit", "Memory", "Receipt", "SessionChart"]


@dataclass(frozen=True)
class Decision:
    """A verdict and the numbers behind it: ``tokens`` of the ``window``, as a share ``pressure``."""

    verdict: str
    reason: str
    pressure: float
    tokens: int
    window: int


class Receipt(Mapping[str, Any]):
    """The receipt of a compaction: a mapping of all its fields, with properties for the common ones."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = dict(data)

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def id(self) -> str:
        """The id that ``restore`` and ``verify`` take."""
        return str(self["receipt_id"])

    @property
    def tokens_before(self) -> int:
        """The tokens of the history before the compaction."""
        return int(self["tokens_before"])

    @property
    def tokens_after(self) -> int:
        """The tokens of the view that replaced it."""
        return int(self["tokens_after"])

    @property
    def saved(self) -> float:
        """The share of tokens that the compaction saved, from 0 to 1."""
        return 1 - self.tokens_after / max(self.tokens_before, 1)

    @property
    def retention(self) -> float | None:
        """The share of dropped names, numbers, decisions and errors that the view still shows, from 0 to 1.

        `None` when nothing of the kind was found in what was dropped: then nothing is proved.
        """
        score = self["retention"]["score"]
        return None if score is None else float(score)

    @property
    def summary_version(self) -> int:
        """The version of the rolling summary, counted from 1."""
        return int(self["summary_version"])

    def _retention_text(self) -> str:
        return "unknown" if self.retention is None else f"{self.retention:.1%}"

    def to_json(self) -> str:
        """Returns the receipt as JSON."""
        return json.dumps(self._data, ensure_ascii=False)

    def __repr__(self) -> str:
        return (
            f"<Receipt {self.id[:12]} {self.tokens_before:,} → {self.tokens_after:,} tokens "
            f"(−{self.saved:.0%}), retention {self._retention_text()}, summary v{self.summary_version}>"
        )

    def _repr_html_(self) -> str:
        """Returns a small card for notebooks: tokens before and after, retention, and a bar."""
        import html

        share = 100 * self.tokens_after / max(self.tokens_before, 1)
        session = html.escape(str(self.get("session_id", "")))
        bar = (
            '<div style="background:#ddd;width:16em;height:.6em;border-radius:.3em">'
            f'<div style="background:#2a7;width:{share:.1f}%;height:100%;border-radius:.3em">'
            "</div></div>"
        )
        return (
            f"<div><b>Compaction</b> <code>{html.escape(self.id[:12])}</code> of "
            f"<code>{session}</code><br>{self.tokens_before:,} → {self.tokens_after:,} tokens "
            f"(−{self.saved:.0%}), retention {self._retention_text()}{bar}</div>"
        )


@dataclass(frozen=True)
class SessionChart:
    """What each call of a session was sent, with its compactions: a picture in a notebook, and a file elsewhere."""

    #: The picture, with colours of its own.
    svg: str = field(repr=False)
    #: The same in words.
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Hit:
    """An archived message that a search found; ``pointer`` is what ``expand`` takes."""

    session_id: str
    entry_id: str
    ordinal: int | None
    receipt_id: str
    pointer: str
    role: str
    created_at: str
    score: float
    #: The words around what was found; not in the ``repr``.
    snippet: str = field(repr=False)
    #: How many entries the session has, and how many lines the message.
    session_entries: int = 0
    lines: int = 0
    #: When it was said, where the transcript says so.
    said_at: str | None = None
    #: Where in the message the matches are: ``line`` and ``text`` of each.
    windows: list[dict[str, Any]] = field(default_factory=list, repr=False)
    #: The call of a result, or the result of a call: ``pointer``, ``ordinal``, ``role``, ``excerpt``.
    partner: dict[str, Any] | None = field(default=None, repr=False)
    #: Words of the question that the message does not hold.
    missing_words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Memory:
    """What a session knows after its last compaction, layer by layer."""

    session_id: str
    receipt_id: str
    summary_version: int
    pinned: list[dict[str, Any]] = field(repr=False)
    ledger: dict[str, Any] = field(repr=False)
    summary: str = field(repr=False)
    recent: list[dict[str, Any]] = field(repr=False)

    def __str__(self) -> str:
        parts = [f"What I remember now (summary v{self.summary_version}):", self.summary.strip()]
        if self.pinned:
            parts += ["Always before me:", *(_format_entry(entry) for entry in self.pinned)]
        if self.recent:
            parts += ["Word for word:", *(_format_entry(entry) for entry in self.recent)]
        return "\n".join(parts)


def _format_entry(entry: Mapping[str, Any]) -> str:
    words = " ".join(str(entry["text"]).split())
    return f"- {entry['role']}: {words[:120]}" + ("…" if len(words) > 120 else "")
