"""Commands for chat loops: ``/compact`` and ``/memory`` ("what I remember now")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .exceptions import CompactError, NotFound
from .manager import CompactManager

__all__ = ["ChatCommands", "Reply"]


@dataclass(frozen=True)
class Reply:
    """The text to show the user, and the messages to continue with."""

    text: str
    messages: list[Any]
    #: The system prompt to continue with; the one that was passed, unless the summary was put into it.
    system: Any = None


class ChatCommands:
    """Answers the commands of one conversation; anything else goes to the model.

    >>> reply = commands.handle(line, messages)  # doctest: +SKIP
    >>> if reply: print(reply.text); messages = reply.messages  # doctest: +SKIP

    Where the policy puts the summary into the system prompt, pass ``system`` and continue with the reply's.
    """

    def __init__(self, manager: CompactManager, session_id: str) -> None:
        self.manager = manager
        self.session_id = session_id

    def handle(
        self, line: str, messages: Iterable[Any], *, system: Any = None, tools: Any = None
    ) -> Reply | None:
        """Returns the reply to a command, or ``None`` if the line is not a command."""
        command, _, rest = line.strip().partition(" ")
        messages = list(messages)
        if command == "/compact":
            note = rest.strip() or "user-command"
            return self.compact(messages, note, system=system, tools=tools)
        if command == "/memory":
            return Reply(self.memory(), messages, system)
        return None

    def compact(
        self,
        messages: list[Any],
        note: str = "user-command",
        *,
        system: Any = None,
        tools: Any = None,
    ) -> Reply:
        """Compacts now and reports the outcome; an error becomes the text of the reply."""
        try:
            prepared = self.manager.prepare(
                self.session_id, messages, system=system, tools=tools, note=note
            )
        except CompactError as error:
            return Reply(f"Nothing was compacted: {error}", messages, system)
        receipt = prepared.receipt
        if receipt is None:
            return Reply("Nothing was compacted: there is nothing to gain yet.", messages, system)
        share = "an unknown share" if receipt.retention is None else f"{receipt.retention:.0%}"
        text = (
            f"Compacted {receipt.tokens_before:,} to {receipt.tokens_after:,} tokens "
            f"(−{receipt.saved:.0%}); {share} of names, numbers, decisions and "
            f"errors are still in my context. Receipt {receipt.id[:12]}."
        )
        return Reply(text, prepared.messages, system if prepared.system is None else prepared.system)

    def memory(self) -> str:
        """Returns what the session remembers, as text for the user."""
        try:
            return str(self.manager.remember(self.session_id))
        except NotFound:
            return "Nothing has been compacted yet: I remember everything that was said."
