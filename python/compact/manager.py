"""The manager: computes what to send now, and finds again what was left out."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _native, wire
from .adapters.custom import ObjectStorage, StorageAdapter
from .check import check_note, check_number
from .config import CompactConfig
from .estimators.tiktoken import NativeEstimator
from .events import Dispatcher, EventReceiver, logger
from .exceptions import (
    CompactError,
    ConfigError,
    EstimatorError,
    FormatError,
    InsufficientBudget,
    RedactorError,
    StorageError,
)
from .message import Message
from .receipt import Decision, Hit, Memory, Receipt, SessionChart
from .reset import ResetSession
from .summarizer import summarizer_callback
from .wire import Codec, EncodedMessages

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CompactManager", "LiveSession", "Prepared"]

#: Engines inherited from a parent process. They are kept alive so that a child never closes its files.
_PARENT_ENGINES: list[Any] = []

#: More hits than anybody reads, and more tokens than any text has.
_MOST_HITS = 1_000_000
_MOST_TOKENS = 2**53

#: More seconds than any session lasts.
_LONGEST = 1e15

_SUMMARY_BESIDE = (
    "the summary is in the system prompt, which this method does not return: call prepare(...), or shrink(...) "
    "after a refusal, and send both its .system and its .messages"
)


@dataclass(frozen=True)
class Prepared:
    """The messages to send, and the decision behind them."""

    #: Not in the ``repr``, like everything that was said.
    messages: list[Any] = field(repr=False)
    decision: Decision
    #: The receipt, if this call compacted.
    receipt: Receipt | None
    #: The system prompt to send instead of yours, if the summary was put into it; ``None`` if yours is unchanged.
    system: Any = field(default=None, repr=False)
    #: The session's name: the one that was given, or the one that the engine gave it.
    session_id: str = ""


class LiveSession:
    """A conversation to which messages are added: pass what is new, and get what to send.

    Messages that were added must not be changed afterwards; to rewrite a history, pass the whole of it to
    :meth:`CompactManager.preflight`. Use it from one thread at a time.
    """

    def __init__(
        self,
        manager: CompactManager,
        session_id: str,
        messages: Iterable[Any] = (),
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
    ) -> None:
        wire.check_beside(system, tools)
        self.manager = manager
        self.session_id = session_id
        self._codec = wire.check_codec(codec)
        self._beside = {"system": system, "tools": tools}
        self._messages = list(messages)
        self._encoded: EncodedMessages | None = None

    def __repr__(self) -> str:
        return f"<LiveSession {self.session_id!r} of {len(self._messages)} messages>"

    @property
    def messages(self) -> list[Any]:
        """Everything that was said, as it was passed."""
        return list(self._messages)

    def append(self, *messages: Any) -> list[Any]:
        """Adds messages, and returns what to send now. Raises what :meth:`CompactManager.preflight` raises.

        Messages that cannot be read are not added; after any other error they are part of the conversation.
        """
        return _only_messages(self._add(messages, self.manager._require_messages_only))

    async def aappend(self, *messages: Any) -> list[Any]:
        """Runs :meth:`append` in a thread, without blocking the event loop."""
        sent: list[Any] = await _run_in_thread(partial(self.append, *messages))
        return sent

    def prepare(self, *messages: Any) -> Prepared:
        """Does what :meth:`append` does, and returns the decision and the receipt as well."""
        return self._add(messages)

    def _add(
        self, messages: Sequence[Any], check: Callable[[EncodedMessages], None] | None = None
    ) -> Prepared:
        """Adds messages and answers, if ``check`` does not raise for the conversation."""
        before = len(self._messages)
        try:
            encoded = self._encode_with(messages)
            if check is not None:
                check(encoded)
            codec = self._codec or self.manager._codec
            prepared, self._encoded = self.manager._answer(self.session_id, encoded, codec, None)
        except (ConfigError, FormatError, TypeError):
            # Every later call would be refused for the same messages.
            del self._messages[before:]
            raise
        return prepared

    def _encode_with(self, messages: Sequence[Any]) -> EncodedMessages:
        """Adds messages to the conversation, and returns it encoded."""
        known, self._encoded = self._encoded, None
        codec = self._codec or self.manager._codec
        encoded = None if known is None else wire.extend_encoded(known, messages, codec)
        self._messages.extend(messages)
        if encoded is None or known is None or encoded.format != known.format:
            return self.manager._encode(
                self.session_id, self._messages, self._codec, **self._beside
            )
        self.manager._keep_encoded(self.session_id, encoded)
        return encoded


class CompactManager:
    """Keeps any number of sessions inside their window.

    It is safe to use from several threads; calls for one session run one at a time. After a fork, the
    child's manager starts over from the histories that it is passed. Use it in a ``with`` block, or call
    :meth:`close`, to be sure that every event was delivered; at the end of the program this happens by itself.
    """

    def __init__(self, cfg: CompactConfig) -> None:
        if not isinstance(cfg, CompactConfig):
            raise TypeError(f"cfg must be a CompactConfig, found {type(cfg).__name__}")
        self.config = cfg
        self._codec = Codec(cfg.format)
        self._lock = threading.Lock()
        self._is_closed = False
        self._start_engine()

    def __repr__(self) -> str:
        cfg = self.config
        if self._is_closed:
            return f"<CompactManager of {cfg.model or 'any model'}, closed>"
        return f"<CompactManager of {cfg.model or 'any model'}, window {self.window:,}, storage {cfg.storage!r}>"

    def __enter__(self) -> CompactManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What to send.

    def preflight(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
    ) -> list[Any]:
        """Returns what to send now: the messages, or a smaller view if they outgrow the window.

        Pass the whole history every time. ``system`` and ``tools`` are counted with it. If ``session_id``
        is ``None``, the session is the one that these messages continue, or else a new one. Raises
        ``InsufficientBudget`` if the protected messages do not fit, ``FormatError`` if a message cannot
        be read, ``StorageError`` if the original could not be archived, and ``ConfigError`` if the policy
        puts the summary into a system prompt that only :meth:`prepare` returns; then nothing has changed.
        """
        return self._answer_messages(
            session_id, messages, codec, None, system=system, tools=tools
        )

    def manual_compact(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        note: str | None = "manual",
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
    ) -> list[Any]:
        """Compacts now, whatever the pressure, and returns what to send.

        ``note`` records who asked for it. Raises what :meth:`preflight` raises.
        """
        note = "manual" if note is None else note
        return self._answer_messages(
            session_id, messages, codec, note, system=system, tools=tools
        )

    def prepare(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
        note: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Prepared:
        """Does what :meth:`preflight` does, and returns the decision and the receipt as well.

        If its ``system`` is not ``None``, send it instead of yours, which it contains: the summary is in it.
        With a ``note`` it compacts as :meth:`manual_compact` does. ``more`` holds further members of the
        request body that decide which rules apply, such as ``thinking``.
        """
        check_note(note)
        encoded = self._encode(session_id, messages, codec, system=system, tools=tools, more=more)
        return self._answer(session_id, encoded, codec or self._codec, note)[0]

    def session(
        self,
        session_id: str,
        messages: Iterable[Any] = (),
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
    ) -> LiveSession:
        """Returns a conversation to which messages are added, so that none is passed twice.

        ``messages`` is what was said before; nothing is counted or compacted before the first
        :meth:`LiveSession.append`.
        """
        return LiveSession(self, session_id, messages, system=system, tools=tools, codec=codec)

    def _answer_messages(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        codec: Codec | None,
        note: str | None,
        **beside: Any,
    ) -> list[Any]:
        """Answers a caller that gets nothing but messages."""
        check_note(note)
        encoded = self._encode(session_id, messages, codec, **beside)
        self._require_messages_only(encoded)
        return _only_messages(self._answer(session_id, encoded, codec or self._codec, note)[0])

    def _require_messages_only(self, encoded: EncodedMessages) -> None:
        """Raises ``ConfigError`` if a summary would not be among the messages of an answer."""
        if self.config.policy.placement == "system_suffix" and encoded.has_system_beside():
            raise ConfigError(f"policy.placement is 'system_suffix': {_SUMMARY_BESIDE}")

    def _answer(
        self, session_id: str | None, encoded: EncodedMessages, codec: Codec, note: str | None
    ) -> tuple[Prepared, EncodedMessages]:
        """Answers a call, and returns the conversation as the engine knows it now."""
        engine = self._engine()
        with self._running_call(encoded):
            turn = None
            if session_id is not None and note is None and encoded.grown_from is not None:
                turn = engine.append(session_id, encoded.grown_from, encoded.texts[encoded.known :])
            if turn is None and note is not None:
                turn = engine.manual_compact(session_id, *encoded.arguments(), note)
            elif turn is None:
                turn = engine.preflight(session_id, *encoded.arguments())
        return self._to_prepared(encoded, codec, turn), replace(encoded, mark=turn[-1])

    def overflowed(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        status: int,
        body: str,
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
    ) -> list[Any] | None:
        """Returns a smaller prompt for a provider that refused the last one as too long; send it once.

        ``status`` and ``body`` are the provider's response. Returns ``None`` if it refused for another
        reason, or if nothing smaller can be made. Raises what :meth:`preflight` raises.
        """
        encoded = self._encode(session_id, messages, codec, system=system, tools=tools)
        self._require_messages_only(encoded)
        prepared = self._answer_refusal(session_id, encoded, codec or self._codec, status, body)
        return None if prepared is None else _only_messages(prepared)

    def shrink(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        status: int,
        body: str,
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Prepared | None:
        """Does what :meth:`overflowed` does, and returns what :meth:`prepare` returns."""
        encoded = self._encode(session_id, messages, codec, system=system, tools=tools, more=more)
        return self._answer_refusal(session_id, encoded, codec or self._codec, status, body)

    def _answer_refusal(
        self, session_id: str | None, encoded: EncodedMessages, codec: Codec, status: int, body: str
    ) -> Prepared | None:
        check_number("status", status, 0, 65_535, "the HTTP status of the provider's response")
        engine = self._engine()
        with self._running_call(encoded):
            turn = engine.overflowed(session_id, *encoded.arguments(), status, body)
        return None if turn is None else self._to_prepared(encoded, codec, turn)

    def try_prepare(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> Prepared | None:
        """Does what :meth:`prepare` does, but returns ``None`` on an error: send the history unchanged.

        The error is logged. ``InsufficientBudget`` is still raised, since no prompt would fit.
        """
        messages = list(messages)
        try:
            return self.prepare(session_id, messages, **how)
        except InsufficientBudget:
            raise
        except CompactError as error:
            logger.warning("session %s is sent unchanged: %s", session_id, error)
            codec = how.get("codec") or self._codec
            return _uncompacted(messages, [codec.bare(message) for message in messages], error)

    async def atry_prepare(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> Prepared | None:
        """Runs :meth:`try_prepare` in a thread, without blocking the event loop."""
        made: Prepared | None = await _run_in_thread(
            partial(self.try_prepare, session_id, list(messages), **how)
        )
        return made

    async def apreflight(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> list[Any]:
        """Runs :meth:`preflight` in a thread, without blocking the event loop."""
        sent: list[Any] = await _run_in_thread(
            partial(self.preflight, session_id, list(messages), **how)
        )
        return sent

    async def amanual_compact(
        self, session_id: str | None, messages: Iterable[Any], note: str | None = "manual", **how: Any
    ) -> list[Any]:
        """Runs :meth:`manual_compact` in a thread, without blocking the event loop."""
        sent: list[Any] = await _run_in_thread(
            partial(self.manual_compact, session_id, list(messages), note, **how)
        )
        return sent

    async def aprepare(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> Prepared:
        """Runs :meth:`prepare` in a thread, without the GIL and without blocking the event loop."""
        made: Prepared = await _run_in_thread(partial(self.prepare, session_id, list(messages), **how))
        return made

    # What must stay.

    def protect(
        self, session_id: str, messages: Iterable[Any], *, codec: Codec | None = None
    ) -> list[str]:
        """Protects messages of a session, from the next call on and in every later process.

        Use it for objects that cannot carry ``meta={"protected": True}``. A message is recognised by its
        content, so it may be passed before, with or after the history that contains it. Pass a tool
        result together with its call, since results are often alike. Returns the hashes of the messages.
        """
        encoded = wire.encode_messages(messages, wire.check_codec(codec) or self._codec)
        return self._engine().protect(session_id, encoded.format, encoded.texts)

    def unprotect(
        self, session_id: str, messages: Iterable[Any], *, codec: Codec | None = None
    ) -> list[str]:
        """Ends the protection of messages, whether by :meth:`protect` or by ``meta``; returns their hashes."""
        encoded = wire.encode_messages(messages, wire.check_codec(codec) or self._codec)
        return self._engine().unprotect(session_id, encoded.format, encoded.texts)

    # What providers report.

    def observe(self, session_id: str, usage: Any, source: str) -> None:
        """Records the usage that a provider reported for the last request; ``None`` if it reported none.

        Raises ``FormatError`` if the report or its source cannot be read.
        ``source`` names the shape of the report: ``openai-chat``, ``openai-responses``, ``anthropic``,
        ``gemini``, ``claude-agent-message``, ``claude-agent-result``, ``claude-agent-models``.
        """
        try:
            report = None if usage is None else wire.dumps(usage)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"usage cannot be read: {error}") from error
        self._engine().observe(session_id, source, report)

    def idle(self, session_id: str, seconds: float) -> bool:
        """Reports that a session was idle for ``seconds``; true if that started a compaction."""
        return self._engine().idle(session_id, min(seconds, _LONGEST))

    # Transcripts of agents.

    def reset_session(
        self,
        session_id: str,
        messages: Iterable[Any] = (),
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> ResetSession:
        """Begins a session under the profile ``hard-reset``, which goes on from its summary when it grows too large.

        ``messages`` is what it begins with: its instructions, and after a restart all that it had come to. Its events
        go where all events go, and to ``on_event``.
        """
        return ResetSession(self, session_id, list(messages), on_event)

    def rewrite(
        self, session_id: str, transcript: str, format: str, note: str | None = None
    ) -> tuple[str, Receipt] | None:
        """Appends a boundary and a smaller view to an agent's transcript, for the agent to resume from.

        Returns the new transcript and the receipt, or ``None`` if there is no need to compact. With a
        ``note`` it compacts whatever the pressure.
        """
        check_note(note)
        engine = self._engine()
        with self._running_call(wire.encode_transcript(transcript)):
            made = engine.rewrite(session_id, transcript, format, note)
        return None if made is None else (made[0], Receipt(json.loads(made[1])))

    def archive_transcript(
        self,
        repository: str | os.PathLike[str],
        session_id: str,
        transcript: str | os.PathLike[str] | None,
    ) -> tuple[Path, int]:
        """Copies an agent's transcript to where ``compactctl hook`` archives it.

        The copy is written whole or not at all, and redacted if the archive is. Returns its path and its
        size in bytes. Raises ``NotFound`` if there is no transcript.
        """
        return self._engine().archive_transcript(repository, session_id, transcript)

    # The way back.

    def recall(
        self, query: str, session_id: str | None = None, limit: int = 8, *, unredacted: bool = False
    ) -> list[Hit]:
        """Searches everything archived, in one session or in all; the best hits first.

        Secrets are redacted, unless ``unredacted``; they are never searched for.
        """
        check_number("limit", limit, 0, _MOST_HITS, "the most hits to return")
        hits = json.loads(self._engine().recall(query, session_id, limit, unredacted))
        return [Hit(**hit) for hit in hits]

    def expand(
        self, pointer: str, session_id: str | None = None, *, unredacted: bool = False
    ) -> Message:
        """Returns the archived message that a pointer (``RECEIPT#17``) in a view or a hit names.

        With a ``session_id``, ``#17`` is a message of that session, and a pointer to another session is refused.
        Secrets are redacted, unless ``unredacted``; ``exact`` says whether it stands as it was.
        """
        found = json.loads(self._engine().expand(pointer, session_id, unredacted))
        return Message(found.pop("role"), found.pop("text"), found)

    def remember(self, session_id: str) -> Memory:
        """Returns what the session knows after its last compaction; ``str()`` of it is for people."""
        return Memory(**json.loads(self._engine().remember(session_id)))

    def restore(self, name: str) -> list[Any]:
        """Returns the original messages of a receipt, or of a whole session, as they were passed.

        A chat that was rewound or forked has several histories: then it raises, and names each as ``history:ID``.
        """
        original, format, _ = self._engine().restore(name)
        return _archived_messages(original, format)

    def receipts(self, session_id: str) -> list[Receipt]:
        """Returns the receipts of a session, the oldest first."""
        return [Receipt(data) for data in json.loads(self._engine().receipts(session_id))]

    def chart(self, session_id: str) -> SessionChart:
        """Returns what each call of a session was sent, with its compactions, as a picture for a notebook."""
        return SessionChart(*self._engine().session_chart(session_id))

    def verify(self, receipt_id: str) -> list[dict[str, Any]]:
        """Recomputes a receipt from the archive; returns what differs, an empty list if nothing does."""
        found: list[dict[str, Any]] = json.loads(self._engine().verify(receipt_id))
        return found

    # Housekeeping.

    @property
    def window(self) -> int:
        """The model's context window, in tokens."""
        return self._engine().window()

    def forget(self, session_id: str) -> None:
        """Drops a session's state from memory; what is archived stays."""
        self._engine().forget(session_id)
        with self._lock:
            self._encoded.pop(session_id, None)
            self._new_messages.pop(session_id, None)

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until the exporters have all events, for at most ``timeout`` seconds; false if they do not.

        An exporter of your own answers for its own queue, if it has a method ``flush``.
        """
        flush = getattr(self.config.exporter, "flush", None)
        done = self._events.flush(timeout)
        return bool(flush(timeout)) and done if callable(flush) else done

    def close(self) -> None:
        """Delivers the events that wait and releases the stores; later calls raise ``CompactError``.

        Closing twice is harmless. What is archived stays.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self.flush()
        self._events.close()
        if self._process == os.getpid():
            self._native.finish_indexing(5.0)
        del self._native
        self._encoded.clear()
        self._new_messages.clear()

    def emit(self, event: Mapping[str, Any]) -> None:
        """Hands an event of an integration to the exporters."""
        self._events.put(dict(event))

    def _put_event(self, text: str) -> None:
        """Takes an event of the engine; why a model was replaced is logged too, for those without exporters."""
        if '"compact.fallback"' in text:
            _log_fallback(json.loads(text))
        self._events.put_json(text)

    # Internals.

    def _start_engine(self) -> None:
        cfg = self.config
        self._process = os.getpid()
        self._encoded: OrderedDict[str, EncodedMessages] = OrderedDict()
        #: The conversation of each running call, by thread: a new session has no name before its call returns.
        self._running: dict[int, EncodedMessages] = {}
        self._new_messages: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._events = Dispatcher(_event_receivers(cfg))
        self._native = _native.Engine(
            wire.dumps(cfg.engine_settings()),
            self._put_event,
            self._before_record,
            self._estimator_callback(),
            self._summarizer_callback(),
            None if cfg.redact is None else self._redact_text,
            _object_storage(cfg),
            cfg.max_sessions,
        )

    def _engine(self) -> _native.Engine:
        if self._is_closed:
            raise CompactError("the manager is closed: make a new one with the same configuration")
        if self._process != os.getpid():
            # The parent's threads do not exist here, so a lock that one of them held is never released.
            self._lock = threading.Lock()
            _PARENT_ENGINES.append((self._native, self._events))
            self._start_engine()
        return self._native

    def _encode(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        codec: Codec | None,
        *,
        system: Any = None,
        tools: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> EncodedMessages:
        if session_id is not None and (not isinstance(session_id, str) or not session_id):
            raise TypeError(
                f"session_id must be a text that names the session, or None, found {session_id!r}"
            )
        codec = wire.check_codec(codec) or self._codec
        self._engine()
        with self._lock:
            known = list(self._encoded.values())
            before = None if session_id is None else self._encoded.get(session_id)
        if session_id is None and isinstance(messages, Sequence):
            before = wire.find_continued(messages, codec, known)
        encoded = wire.encode_messages(
            messages,
            codec,
            model=self.config.model,
            system=system,
            tools=tools,
            more=more,
            before=before,
        )
        if session_id is not None:
            self._keep_encoded(session_id, encoded)
        return encoded

    def _keep_encoded(self, session_id: str, encoded: EncodedMessages) -> None:
        with self._lock:
            # The caller's objects must not be kept alive here.
            known = replace(encoded, items=[])
            _cache_recent(self._encoded, session_id, known, self.config.max_sessions)

    @contextmanager
    def _running_call(self, encoded: EncodedMessages) -> Iterator[None]:
        thread = threading.get_ident()
        outer = self._running.get(thread)
        self._running[thread] = encoded
        try:
            yield
        finally:
            if outer is None:
                self._running.pop(thread, None)
            else:
                self._running[thread] = outer

    @contextmanager
    def _running_messages(self, gather: Callable[[], list[Any]], codec: Codec) -> Iterator[None]:
        """Says which messages a call is about, where a store of the user's own wants them."""
        if _storage_adapter(self.config) is None:
            yield
            return
        with self._running_call(wire.encode_messages(gather(), codec)):
            yield

    def _to_prepared(self, encoded: EncodedMessages, codec: Codec, turn: Any) -> Prepared:
        items, beside, decision, receipt, session_id, mark = turn
        self._keep_encoded(session_id, replace(encoded, mark=mark))
        if items is None:
            messages = self._unchanged_messages(encoded, codec)
        else:
            messages = self._load_messages(session_id, encoded, codec, items)
        changed = json.loads(beside) if beside else {}
        prepared = Prepared(
            messages=messages,
            decision=Decision(**json.loads(decision)),
            receipt=Receipt(json.loads(receipt)) if receipt else None,
            system=changed.get(encoded.system_key),
            session_id=session_id,
        )
        if prepared.receipt is not None:
            made = [item for item in items or () if isinstance(item, str)]
            made += wire.encode_instructions(prepared.system)
            self._store_summary(session_id, made, prepared.receipt)
        return prepared

    def _unchanged_messages(self, encoded: EncodedMessages, codec: Codec) -> list[Any]:
        if encoded.is_flagged:
            return [codec.bare(item) for item in encoded.items]
        return list(encoded.items)

    def _load_messages(
        self, session_id: str, encoded: EncodedMessages, codec: Codec, items: Sequence[int | str]
    ) -> list[Any]:
        """Returns the caller's own objects where nothing changed, and the same new objects in every call.

        ``meta`` is never sent: a message that has it is returned as a copy without it.
        """
        with self._lock:
            known = self._new_messages.get(session_id, {})
        made: dict[str, Any] = {}
        messages: list[Any] = []
        for item in items:
            if isinstance(item, int):
                messages.append(codec.bare(encoded.items[item]))
                continue
            if item not in made:
                made[item] = known[item] if item in known else codec.load(json.loads(item), encoded.items)
            messages.append(codec.bare(made[item]))
        with self._lock:
            _cache_recent(self._new_messages, session_id, made, self.config.max_sessions)
        return messages

    # Callbacks of the user.

    def _before_record(self, session_id: str, receipt: str) -> None:
        """Stores the transcript before anything is pruned; raising here leaves everything unchanged."""
        storage = _storage_adapter(self.config)
        if storage is None:
            return
        encoded = self._running.get(threading.get_ident()) or self._wait_for_encoded(session_id)
        texts = (self._native.redact_original(text) for text in encoded.texts)
        messages = (wire.as_message(json.loads(text)) for text in texts)
        transcript = [self._redact(message) for message in messages]
        try:
            storage.save_transcript(session_id, transcript)
        except Exception as error:
            raise StorageError(
                f"{type(storage).__name__}.save_transcript failed: {error}; nothing was pruned"
            ) from error

    def _wait_for_encoded(self, session_id: str) -> EncodedMessages:
        """Returns the conversation of a session that is compacted in the background.

        A session without a name gets one when the call that started the compaction returns, so this
        waits for up to five seconds. Raises ``StorageError`` after that.
        """
        for _ in range(500):
            with self._lock:
                if session_id in self._encoded:
                    return self._encoded[session_id]
            time.sleep(0.01)
        raise StorageError(f"session {session_id} is unknown; nothing was pruned")

    def _store_summary(self, session_id: str, made: Sequence[str], receipt: Receipt) -> None:
        """Stores the summary among the texts that the engine made."""
        storage = _storage_adapter(self.config)
        if storage is None:
            return
        frame = f"COMPACT-SUMMARY v{receipt.summary_version}"
        for text in [text for text in made if frame in text][:1]:
            summary = wire.as_message(json.loads(self._native.redact_summary(text)))
            try:
                storage.save_summary(session_id, summary, receipt.summary_version)
            except Exception as error:
                self._report_failure(session_id, "compact.storage_failed", error)

    def _redact(self, message: Message) -> Message:
        redact = self.config.redact
        if redact is None:
            return message
        name = getattr(redact, "__name__", type(redact).__name__)
        try:
            redacted = redact(message)
        except Exception as error:
            raise RedactorError(
                f"{name} failed: {error}; nothing was sent or pruned"
            ) from error
        if not isinstance(redacted, Message) or not isinstance(redacted.content, str):
            raise RedactorError(f"{name} returned {redacted!r}: it must return a Message")
        return redacted

    def _redact_text(self, text: str) -> str:
        return self._redact(Message("user", text)).content

    def _report_failure(self, session_id: str, event: str, error: Exception) -> None:
        logger.warning("%s: %s", event, error)
        kind = type(error).__name__
        self._events.put(
            {"event": event, "session_id": session_id, "severity": "high", "error": kind}
        )

    def _estimator_callback(self) -> tuple[str, Callable[[str], int]] | None:
        theirs = self.config.token_estimator
        if theirs is None or isinstance(theirs, NativeEstimator):
            return None
        name, model = type(theirs).__name__, self.config.model

        def count(text: str) -> int:
            try:
                tokens = theirs.estimate([Message("user", text)], model)
            except Exception as error:
                raise EstimatorError(f"{name}.estimate failed: {error}") from error
            if not isinstance(tokens, int) or not 0 <= tokens <= _MOST_TOKENS:
                raise EstimatorError(f"{name}.estimate returned {tokens!r}: it must return a count of tokens")
            return tokens

        return (f"python:{name}", count)

    def _summarizer_callback(self) -> tuple[str, Callable[..., str]] | None:
        theirs = self.config.summarizer
        if theirs is None:
            return None
        callback = summarizer_callback(theirs, [self.config.policy.protected_flag])
        return (f"python:{type(theirs).__name__}", callback)


def _only_messages(prepared: Prepared) -> list[Any]:
    """Returns the messages; raises ``ConfigError`` if an earlier policy put the summary beside them."""
    if prepared.system is not None:
        raise ConfigError(f"session {prepared.session_id}: {_SUMMARY_BESIDE}")
    return prepared.messages


def _uncompacted(
    messages: list[Any], bare: list[Any], error: CompactError
) -> Prepared | None:
    """Returns the history without ``meta``, or ``None`` if no message has any."""
    if all(a is b for a, b in zip(messages, bare, strict=True)):
        return None
    return Prepared(bare, Decision("unknown", str(error), 0.0, 0, 0), None)


def _log_fallback(event: Mapping[str, Any]) -> None:
    name = event.get("summarizer") or event.get("embedder") or ""
    # What a summarizer of the user's raised was logged with its traceback.
    if not name.startswith("python:"):
        logger.warning("session %s: %s failed: %s", event.get("session_id"), name, event.get("reason"))


def _event_receivers(cfg: CompactConfig) -> list[EventReceiver]:
    receivers: list[EventReceiver] = []
    if cfg.exporter is not None:
        receivers.append(cfg.exporter.emit)
    storage = _storage_adapter(cfg)
    if storage is not None:
        receivers.append(partial(_save_event, storage))
    return receivers


def _storage_adapter(cfg: CompactConfig) -> StorageAdapter | None:
    """Returns the storage if it receives transcripts, summaries and events."""
    return cfg.storage if isinstance(cfg.storage, StorageAdapter) else None


def _object_storage(cfg: CompactConfig) -> ObjectStorage | None:
    """Returns the storage if the engine keeps everything in it."""
    return cfg.storage if isinstance(cfg.storage, ObjectStorage) else None


def _save_event(storage: StorageAdapter, event: dict[str, Any]) -> None:
    storage.save_event(str(event.get("session_id", "")), event)


def _cache_recent(cache: OrderedDict[str, Any], key: str, value: Any, most: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)


def _archived_messages(original: bytes, format: str) -> list[Any]:
    """Returns the list of messages in an archived body."""
    if format == "entries":
        raise CompactError("this receipt was made from entries, not from messages: use `compactctl restore`")
    body = json.loads(original)
    if isinstance(body, list):
        return body
    for key in ("messages", "input", "contents"):
        if key in body:
            found: list[Any] = body[key]
            return found
    raise CompactError("the archived original holds no messages")


async def _run_in_thread(work: Callable[[], Any]) -> Any:
    import asyncio  # takes longer to import than the rest of this module

    return await asyncio.to_thread(work)
