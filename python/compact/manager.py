"""The manager: what to send now, and the way back to everything that was left out."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from . import _native, wire
from .adapters.custom import ObjectStorage, StorageAdapter
from .config import CompactConfig
from .estimators.tiktoken import NativeEstimator
from .events import Deliver, Dispatcher, logger
from .exceptions import (
    CompactError,
    EstimatorError,
    InsufficientBudget,
    RedactorError,
    StorageError,
)
from .message import Message
from .receipt import Decision, Hit, Memory, Receipt
from .summarizer import asking
from .wire import Codec, Told

__all__ = ["CompactManager", "Prepared"]

#: Engines of a parent process: they must not be closed in a child, their files are the parent's.
_OF_PARENT: list[Any] = []


@dataclass(frozen=True)
class Prepared:
    """What to send, and why."""

    messages: list[Any]
    decision: Decision
    #: Set when this call compacted.
    receipt: Receipt | None
    #: Instructions beside the messages, when the summary was put there.
    system: Any = None
    #: The session's name: the one that was given, or the one that the engine knows it by.
    session_id: str = ""


class CompactManager:
    """Keeps any number of sessions inside their window.

    Safe to use from several threads; each session is handled by one call at a time. After a fork,
    the child's manager starts over from the histories that it is passed.
    """

    def __init__(self, cfg: CompactConfig) -> None:
        if not isinstance(cfg, CompactConfig):
            raise TypeError(f"cfg must be a CompactConfig, found {type(cfg).__name__}")
        self.config = cfg
        self._codec = Codec(cfg.format)
        self._lock = threading.Lock()
        self._start()

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
        """Counts, decides, and answers what to send: the messages, or a smaller view of them.

        Without a name (``None``) the session is the one that these messages go on from; a history that
        goes on from none is a new session.
        """
        return self.prepare(
            session_id, messages, system=system, tools=tools, codec=codec
        ).messages

    def manual_compact(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        note: str = "manual",
        *,
        system: Any = None,
        tools: Any = None,
        codec: Codec | None = None,
    ) -> list[Any]:
        """Compacts whatever the pressure; ``note`` says who asked."""
        return self.prepare(
            session_id, messages, system=system, tools=tools, codec=codec, note=note
        ).messages

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
        """As :meth:`preflight` (or, with a note, :meth:`manual_compact`), with the reasons."""
        told = self._tell(session_id, messages, codec, system=system, tools=tools, more=more)
        arguments = (session_id, *told.arguments())
        engine = self._engine()
        with self._during(told):
            if note is None:
                turn = engine.preflight(*arguments)
            else:
                turn = engine.manual_compact(*arguments, note)
        return self._prepared(told, codec or self._codec, turn)

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
        """A smaller prompt for a provider that refused the last one, to be sent once.

        ``None`` when the refusal has another reason, or when nothing smaller can be made.
        """
        told = self._tell(session_id, messages, codec, system=system, tools=tools)
        engine = self._engine()
        with self._during(told):
            turn = engine.overflowed(session_id, *told.arguments(), status, body)
        if turn is None:
            return None
        return self._prepared(told, codec or self._codec, turn).messages

    def try_prepare(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> Prepared | None:
        """As :meth:`prepare`; ``None`` when the engine failed, and the history should go out as it is.

        What does not fit whatever is done still raises ``InsufficientBudget``.
        """
        messages = list(messages)
        try:
            return self.prepare(session_id, messages, **how)
        except InsufficientBudget:
            raise
        except CompactError as error:
            logger.warning("session %s goes out as it is: %s", session_id, error)
            codec = how.get("codec") or self._codec
            return _uncompacted(messages, [codec.bare(message) for message in messages], error)

    async def atry_prepare(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> Prepared | None:
        """:meth:`try_prepare` beside the event loop."""
        made: Prepared | None = await _beside(
            partial(self.try_prepare, session_id, list(messages), **how)
        )
        return made

    async def apreflight(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> list[Any]:
        """:meth:`preflight` beside the event loop."""
        return (await self.aprepare(session_id, messages, **how)).messages

    async def amanual_compact(
        self, session_id: str | None, messages: Iterable[Any], note: str = "manual", **how: Any
    ) -> list[Any]:
        """:meth:`manual_compact` beside the event loop."""
        return (await self.aprepare(session_id, messages, note=note, **how)).messages

    async def aprepare(
        self, session_id: str | None, messages: Iterable[Any], **how: Any
    ) -> Prepared:
        """:meth:`prepare` beside the event loop: it runs on a thread and lets go of the GIL."""
        made: Prepared = await _beside(partial(self.prepare, session_id, list(messages), **how))
        return made

    # What must stay.

    def protect(
        self, session_id: str, messages: Iterable[Any], *, codec: Codec | None = None
    ) -> list[str]:
        """Protects messages of a session, from the next call on and in every later process.

        For objects that cannot carry ``meta={"protected": True}``. A message is known again by what it
        says, so it may be passed before, with or after the history that it stands in. A tool's result
        is best passed with its call: results are often alike. Answers the hashes that name them.
        """
        told = wire.tell(messages, codec or self._codec)
        return self._engine().protect(session_id, told.format, told.texts)

    def unprotect(
        self, session_id: str, messages: Iterable[Any], *, codec: Codec | None = None
    ) -> list[str]:
        """Lets messages go that were protected, by :meth:`protect` or by their ``meta``."""
        told = wire.tell(messages, codec or self._codec)
        return self._engine().unprotect(session_id, told.format, told.texts)

    # What providers say.

    def observe(self, session_id: str, usage: Any, source: str) -> None:
        """Takes what a provider reported of the last request; ``None`` when it reported nothing.

        ``source`` says whose numbers: ``openai-chat``, ``openai-responses``, ``anthropic``,
        ``gemini``, ``claude-agent-message``, ``claude-agent-result``, ``claude-agent-models``.
        """
        report = None if usage is None else wire.dumps(usage)
        self._engine().observe(session_id, source, report)

    def idle(self, session_id: str, seconds: float) -> bool:
        """Tells that nothing happened for so long; true when a compaction was started for it."""
        return self._engine().idle(session_id, seconds)

    # Transcripts of agents.

    def rewrite(
        self, session_id: str, transcript: str, format: str, note: str | None = None
    ) -> tuple[str, Receipt] | None:
        """An agent's transcript with a boundary and a smaller view behind it, to be resumed from.

        ``None`` when there is no need; with a note, it is compacted whatever the pressure.
        """
        engine = self._engine()
        with self._during(wire.tell_lines(transcript)):
            made = engine.rewrite(session_id, transcript, format, note)
        return None if made is None else (made[0], Receipt(json.loads(made[1])))

    def archive_transcript(
        self,
        repository: str | os.PathLike[str],
        session_id: str,
        transcript: str | os.PathLike[str] | None,
    ) -> tuple[Path, int]:
        """Copies an agent's transcript to where ``compactctl hook`` archives it: the file, and its size.

        It appears whole or not at all, redacted where the archive is.
        """
        return self._engine().shelf_archive(repository, session_id, transcript)

    # The way back.

    def recall(self, query: str, session_id: str | None = None, limit: int = 8) -> list[Hit]:
        """Searches everything archived, in one session or in all."""
        hits = json.loads(self._engine().recall(query, session_id, limit))
        return [Hit(**hit) for hit in hits]

    def expand(self, pointer: str) -> Message:
        """The archived message that a pointer (``RECEIPT#17``) of a view or a hit names, whole."""
        found = json.loads(self._engine().expand(pointer))
        return Message(found.pop("role"), found.pop("text"), found)

    def remember(self, session_id: str) -> Memory:
        """What the session knows after its last compaction; ``str`` of it tells it to a person."""
        return Memory(**json.loads(self._engine().remember(session_id)))

    def restore(self, name: str) -> list[Any]:
        """The messages that a receipt was made of, or all of a session, as they were passed."""
        original, format, _ = self._engine().restore(name)
        return _messages(original, format)

    def receipts(self, session_id: str) -> list[Receipt]:
        """The compactions of a session, the oldest first."""
        return [Receipt(data) for data in json.loads(self._engine().receipts(session_id))]

    def verify(self, receipt_id: str) -> list[dict[str, Any]]:
        """Recomputes a receipt from the archive and answers what differs: nothing, if all is well."""
        found: list[dict[str, Any]] = json.loads(self._engine().verify(receipt_id))
        return found

    # Housekeeping.

    @property
    def window(self) -> int:
        """What the model takes, in tokens."""
        return self._engine().about()[0]

    def forget(self, session_id: str) -> None:
        """Lets go of a session's state in memory; what is archived stays."""
        self._engine().forget(session_id)
        with self._lock:
            self._told.pop(session_id, None)
            self._made.pop(session_id, None)

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until exporters have all events; false when that took longer."""
        flush = getattr(self.config.exporter, "flush", None)
        done = self._events.flush(timeout)
        return bool(flush(timeout)) and done if callable(flush) else done

    def emit(self, event: Mapping[str, Any]) -> None:
        """Hands an event of an integration to the exporters."""
        self._events.put(dict(event))

    # How.

    def _start(self) -> None:
        cfg = self.config
        self._process = os.getpid()
        self._told: OrderedDict[str, Told] = OrderedDict()
        #: What the calls were told that run now, by their thread: a new session has no name before it.
        self._telling: dict[int, Told] = {}
        self._made: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._events = Dispatcher(_receivers(cfg))
        self._native = _native.Engine(
            wire.dumps(cfg.engine_settings()),
            self._events.put_json,
            self._before_record,
            self._estimator(),
            self._summarizer(),
            None if cfg.redact is None else self._redact_text,
            _objects(cfg),
            cfg.max_sessions,
        )

    def _engine(self) -> _native.Engine:
        if self._process != os.getpid():
            # Locks of the parent's threads may be held for ever here.
            self._lock = threading.Lock()
            _OF_PARENT.append((self._native, self._events))
            self._start()
        return self._native

    def _tell(
        self,
        session_id: str | None,
        messages: Iterable[Any],
        codec: Codec | None,
        *,
        system: Any = None,
        tools: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> Told:
        if session_id is not None and (not isinstance(session_id, str) or not session_id):
            raise TypeError(
                f"session_id must be a text that names the session, or None, found {session_id!r}"
            )
        codec = codec or self._codec
        self._engine()
        with self._lock:
            known = list(self._told.values())
            before = None if session_id is None else self._told.get(session_id)
        if session_id is None and isinstance(messages, Sequence):
            before = wire.likely(messages, codec, known)
        told = wire.tell(
            messages,
            codec,
            model=self.config.model,
            system=system,
            tools=tools,
            more=more,
            before=before,
        )
        if session_id is not None:
            self._keep(session_id, told)
        return told

    def _keep(self, session_id: str, told: Told) -> None:
        with self._lock:
            # The caller's own objects are the caller's to keep.
            known = replace(told, items=[])
            _remember(self._told, session_id, known, self.config.max_sessions)

    @contextmanager
    def _during(self, told: Told) -> Iterator[None]:
        thread = threading.get_ident()
        outer = self._telling.get(thread)
        self._telling[thread] = told
        try:
            yield
        finally:
            if outer is None:
                self._telling.pop(thread, None)
            else:
                self._telling[thread] = outer

    def _prepared(self, told: Told, codec: Codec, turn: Any) -> Prepared:
        items, beside, decision, receipt, session_id = turn
        self._keep(session_id, told)
        messages = self._loaded(session_id, told, codec, items)
        changed = json.loads(beside) if beside else {}
        prepared = Prepared(
            messages=messages,
            decision=Decision(**json.loads(decision)),
            receipt=Receipt(json.loads(receipt)) if receipt else None,
            system=changed.get(told.system_key),
            session_id=session_id,
        )
        if prepared.receipt is not None:
            self._store_summary(session_id, items, prepared.receipt)
        return prepared

    def _loaded(
        self, session_id: str, told: Told, codec: Codec, items: Sequence[int | str]
    ) -> list[Any]:
        """The caller's own objects where nothing changed, the same new ones in every call.

        What a caller says about a message in ``meta`` is never sent: such a one is handed out as a copy.
        """
        with self._lock:
            known = self._made.get(session_id, {})
        made: dict[str, Any] = {}
        messages: list[Any] = []
        for item in items:
            if isinstance(item, int):
                messages.append(codec.bare(told.items[item]))
                continue
            if item not in made:
                made[item] = known[item] if item in known else codec.load(json.loads(item), told.items)
            messages.append(codec.bare(made[item]))
        with self._lock:
            _remember(self._made, session_id, made, self.config.max_sessions)
        return messages

    # What the user wrote.

    def _before_record(self, session_id: str, receipt: str) -> None:
        """Archive first, then prune: what is raised here leaves everything as it was."""
        storage = _adapter(self.config)
        if storage is None:
            return
        told = self._telling.get(threading.get_ident()) or self._told_before(session_id)
        texts = (self._native.handed_message(text) for text in told.texts)
        messages = (wire.as_message(json.loads(text)) for text in texts)
        transcript = [self._redact(message) for message in messages]
        try:
            storage.save_transcript(session_id, transcript)
        except Exception as error:
            raise StorageError(
                f"{type(storage).__name__}.save_transcript failed: {error}; nothing was pruned"
            ) from error

    def _told_before(self, session_id: str) -> Told:
        """What a session was told that is compacted beside its calls.

        One without a name is known by it once the call returns that began this.
        """
        for _ in range(500):
            with self._lock:
                if session_id in self._told:
                    return self._told[session_id]
            time.sleep(0.01)
        raise StorageError(f"nothing is known of session {session_id}; nothing was pruned")

    def _store_summary(self, session_id: str, items: Sequence[int | str], receipt: Receipt) -> None:
        storage = _adapter(self.config)
        if storage is None:
            return
        frame = f"COMPACT-SUMMARY v{receipt.summary_version}"
        texts = [item for item in items if isinstance(item, str) and frame in item]
        for text in texts[:1]:
            summary = wire.as_message(json.loads(self._native.handed_summary(text)))
            try:
                storage.save_summary(session_id, summary, receipt.summary_version)
            except Exception as error:
                self._warn(session_id, "compact.storage_failed", error)

    def _redact(self, message: Message) -> Message:
        redact = self.config.redact
        if redact is None:
            return message
        name = getattr(redact, "__name__", type(redact).__name__)
        try:
            redacted = redact(message)
        except Exception as error:
            raise RedactorError(
                f"{name} failed: {error}; nothing left and nothing was pruned"
            ) from error
        if not isinstance(redacted, Message) or not isinstance(redacted.content, str):
            raise RedactorError(f"{name} answered {redacted!r}: it must answer with a Message")
        return redacted

    def _redact_text(self, text: str) -> str:
        return self._redact(Message("user", text)).content

    def _warn(self, session_id: str, event: str, error: Exception) -> None:
        logger.warning("%s: %s", event, error)
        kind = type(error).__name__
        self._events.put(
            {"event": event, "session_id": session_id, "severity": "high", "error": kind}
        )

    def _estimator(self) -> tuple[str, Callable[[str], int]] | None:
        theirs = self.config.token_estimator
        if theirs is None or isinstance(theirs, NativeEstimator):
            return None
        name, model = type(theirs).__name__, self.config.model

        def count(text: str) -> int:
            try:
                tokens = theirs.estimate([Message("user", text)], model)
            except Exception as error:
                raise EstimatorError(f"{name}.estimate failed: {error}") from error
            if not isinstance(tokens, int) or tokens < 0:
                raise EstimatorError(f"{name}.estimate answered {tokens!r}: that is no count")
            return tokens

        return (f"python:{name}", count)

    def _summarizer(self) -> tuple[str, Callable[[str, str, int], str]] | None:
        theirs = self.config.summarizer
        if theirs is None:
            return None
        policy = self.config.policy
        ask = asking(theirs, policy.strategy, [policy.protected_flag])
        return (f"python:{type(theirs).__name__}", ask)


def _uncompacted(
    messages: list[Any], bare: list[Any], error: CompactError
) -> Prepared | None:
    """A history as it is, where it carries what no provider takes."""
    if all(a is b for a, b in zip(messages, bare, strict=True)):
        return None
    return Prepared(bare, Decision("unknown", str(error), 0.0, 0, 0), None)


def _receivers(cfg: CompactConfig) -> list[Deliver]:
    receivers: list[Deliver] = []
    if cfg.exporter is not None:
        receivers.append(cfg.exporter.emit)
    storage = _adapter(cfg)
    if storage is not None:
        receivers.append(partial(_save_event, storage))
    return receivers


def _adapter(cfg: CompactConfig) -> StorageAdapter | None:
    """A storage that wants to be told what is archived, summarized and reported."""
    return cfg.storage if isinstance(cfg.storage, StorageAdapter) else None


def _objects(cfg: CompactConfig) -> ObjectStorage | None:
    """A storage that the engine keeps everything in."""
    return cfg.storage if isinstance(cfg.storage, ObjectStorage) else None


def _save_event(storage: StorageAdapter, event: dict[str, Any]) -> None:
    storage.save_event(str(event.get("session_id", "")), event)


def _remember(cache: OrderedDict[str, Any], key: str, value: Any, most: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)


def _messages(original: bytes, format: str) -> list[Any]:
    """The list of messages in an archived body."""
    if format == "entries":
        raise CompactError("this receipt was made of entries, not of messages: use compactctl")
    body = json.loads(original)
    if isinstance(body, list):
        return body
    for key in ("messages", "input", "contents"):
        if key in body:
            found: list[Any] = body[key]
            return found
    raise CompactError("the archived original holds no messages")


async def _beside(work: Callable[[], Any]) -> Any:
    import asyncio  # costs more to import than everything else here

    return await asyncio.to_thread(work)
