"""Sessions under the profile ``hard-reset``: a history that grows too large goes on from its summary alone.

The program asks the model and tells the session what is said. Events are told as they happen; whether input is taken can be
read at any time, from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native, wire

if TYPE_CHECKING:
    from .manager import CompactManager

__all__ = ["ResetOutcome", "ResetSession", "ResetStatus"]

CHAT = wire.Codec("openai-chat")


@dataclass(frozen=True)
class ResetOutcome:
    """What came of a step: ``unchanged``, ``compacted`` or ``failed``."""

    outcome: str
    #: The receipt, by which the history comes back.
    receipt_id: str | None = None
    #: The files of what the summarizer was given and of the summary, if they could be kept.
    summarizer_input_path: str | None = None
    summary_path: str | None = None
    #: Why it failed; nothing was changed then.
    error: str | None = None


@dataclass(frozen=True)
class ResetStatus:
    """Where a session stands."""

    session_id: str
    #: ``open``, ``compacting`` or ``dead``.
    input: str
    model: str | None
    #: What the next request would cost, and what the model takes.
    tokens: int
    max_tokens: int
    compaction_count: int
    attempted_this_turn: bool


class ResetSession:
    """One session that is reset when it grows too large; made by ``CompactManager.reset_session``.

    Messages are those of the chat format. A message that is sent while the session compacts raises ``SessionBusy``; one
    that is sent to a dead session raises ``CompactError``: only ``start_new``, or a ``retry`` that succeeds, goes on.
    """

    def __init__(
        self,
        manager: CompactManager,
        session_id: str,
        messages: list[Any],
        on_event: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self._manager = manager
        emit = None if on_event is None else _event_reader(on_event)
        texts = [] if not messages else wire.encode_messages(messages, CHAT).texts
        base = f"[{','.join(texts)}]"
        self._native: _native.ResetSession = manager._engine().reset_session(session_id, base, emit)

    def __repr__(self) -> str:
        status = self.status
        return (
            f"<ResetSession {status.session_id!r} {status.input} "
            f"{status.tokens:,} of {status.max_tokens:,} tokens, {status.compaction_count} compactions>"
        )

    @property
    def input(self) -> str:
        """Whether input is taken: ``open``, ``compacting`` or ``dead``; told at once, also while it compacts."""
        return self._native.input()

    @property
    def status(self) -> ResetStatus:
        """Where the session stands."""
        return ResetStatus(**self._perform("status")["status"])

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What to send to the model."""
        messages: list[dict[str, Any]] = self._perform("messages")["messages"]
        return messages

    def send(self, message: str | Mapping[str, Any]) -> ResetOutcome:
        """Begins a turn with what a person says: the only moment at which the session is reset by choice."""
        return self._step("send", message=message)

    def before_call(self) -> ResetOutcome:
        """Checks before a call within a turn: resets only if the call would be refused otherwise."""
        return self._step("before_call")

    def retry(self) -> ResetOutcome:
        """Makes an attempt now, whatever the pressure; a dead session that succeeds lives."""
        return self._step("retry")

    def append(self, *messages: Mapping[str, Any]) -> None:
        """Adds what the model and its tools said."""
        self._perform("append", messages=list(messages))

    def observe(self, usage: Any) -> None:
        """Takes the provider's count of the last call, before its answer is appended."""
        self._perform("usage", usage=json.loads(wire.dumps(usage)))

    def record(self, event: Mapping[str, Any]) -> None:
        """Writes an event of the program into the transcript: an approval, a refusal, an error."""
        self._perform("record", event=event)

    def start_new(self, session_id: str) -> None:
        """Starts a new session with the same instructions; the old one's transcript stays."""
        self._perform("new", session_id=session_id)

    def flush(self) -> None:
        """Waits until everything said so far is durable in the transcript."""
        self._native.flush()

    def _step(self, command: str, **fields: Any) -> ResetOutcome:
        said = [fields["message"]] if "message" in fields else []
        with self._manager._running_messages(self._messages_with(said), CHAT):
            answer = self._perform(command, **fields)
        known = ResetOutcome.__dataclass_fields__
        return ResetOutcome(**{name: answer[name] for name in known if name in answer})

    def _messages_with(self, said: list[Any]) -> Callable[[], list[Any]]:
        """Returns what a store of the user's own is given before the history is replaced."""

        def gather() -> list[Any]:
            spoken = [{"role": "user", "content": m} if isinstance(m, str) else m for m in said]
            return [*self.messages, *spoken]

        return gather

    def _perform(self, command: str, **fields: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._native.perform(wire.dumps({"do": command, **fields})))
        return answer


def _event_reader(on_event: Callable[[dict[str, Any]], None]) -> Callable[[str], None]:
    return lambda text: on_event(json.loads(text))
