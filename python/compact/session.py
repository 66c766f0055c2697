"""A session of the OpenAI Agents SDK whose record is compacted in place.

A compaction takes a moment, and items may be added meanwhile: by other tasks, by other threads, by another
object of the same session. So a view is made of what the record was, beside everything else, and put in
its place under a lock, together with what was added since. What the record was is in the manager's
storage; what to send and what to leave out is the manager's to decide.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from .events import logger
from .exceptions import CompactError
from .manager import CompactManager
from .wire import Codec, flags

if TYPE_CHECKING:
    from agents.memory import OpenAIResponsesCompactionArgs, Session, SessionSettings

__all__ = ["RESPONSES", "CompactSession"]

RESPONSES = Codec("openai-responses")

T = TypeVar("T")


class _Record(Protocol):
    """What keeps items: the part of a ``Session`` that is needed here."""

    async def get_items(self, limit: int | None = None) -> list[Any]: ...
    async def add_items(self, items: list[Any]) -> None: ...
    async def pop_item(self) -> Any: ...
    async def clear_session(self) -> None: ...


class _Lock:
    """A lock between threads, waited for without stopping the event loop of any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        while not self._lock.acquire(blocking=False):
            await asyncio.sleep(0.001)

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class _Locks:
    """What objects of one session share: who touches its record, and who makes a view of it."""

    def __init__(self) -> None:
        self.record = _Lock()
        self.view = _Lock()


class _InMemory:
    """The record of a session that nobody else keeps."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return list(self.items if limit is None else self.items[-limit:] if limit else [])

    async def add_items(self, items: list[Any]) -> None:
        self.items.extend(items)

    async def pop_item(self) -> Any:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


#: Of each session in this process, however many objects speak for it.
_LOCKS: WeakValueDictionary[str, _Locks] = WeakValueDictionary()
_LOCKS_LOCK = threading.Lock()

#: More items than any record has: none at all may mean the last few, where a session is set so.
_ALL = 2**31 - 1


class CompactSession:
    """A session whose record is compacted in place, by ``run_compaction`` after each turn.

    ``underlying`` keeps the items, in memory if none is given. Whatever is added through an object of this
    class while a compaction runs is kept, in order. A record that cannot be written is put back as it
    was, at the next call if not at once; one that was popped or cleared meanwhile is left alone.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self, session_id: str, manager: CompactManager, underlying: Session | None = None
    ) -> None:
        self.session_id = session_id
        self.manager = manager
        self.underlying = underlying
        self._record: _Record = _InMemory() if underlying is None else underlying
        with _LOCKS_LOCK:
            self._locks = _LOCKS.setdefault(session_id, _Locks())
        #: What the record was, and what was to be written, where neither could be.
        self._owed: tuple[list[Any], list[Any]] | None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, or the last so many."""
        return await self._alone(lambda: self._record.get_items(limit))

    async def add_items(self, items: list[Any]) -> None:
        """Adds items as they are sent; what their ``meta`` protects, the manager protects."""

        async def add() -> None:
            await self._record.add_items(await self._bare(items))

        await self._alone(add)

    async def _bare(self, items: list[Any]) -> list[Any]:
        flag = self.manager.config.policy.protected_flag
        bare = [RESPONSES.bare(item) for item in items]
        said = [flags(item, getattr(item, "model_extra", None)) for item in items]
        protected = [item for item, about in zip(items, said, strict=True) if about.get(flag)]
        if protected:
            await asyncio.to_thread(
                self.manager.protect, self.session_id, protected, codec=RESPONSES
            )
        return bare

    async def pop_item(self) -> Any:
        """Takes the last item away."""
        return await self._alone(self._record.pop_item)

    async def clear_session(self) -> None:
        """Empties the record: what it held is told in nothing that comes after."""
        self._owed = None
        await self._alone(self._record.clear_session)

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Compacts the record when it must, or with ``force`` whatever the pressure."""
        note = "run_compaction" if (args or {}).get("force") else None
        # A view that is not put in its place would be a branch of the session that nobody goes on with.
        async with self._locks.view:
            items = await self._alone(self._all)
            try:
                prepared = await self.manager.aprepare(
                    self.session_id, items, codec=RESPONSES, note=note
                )
            except CompactError as error:
                logger.warning("session %s stays as it is: %s", self.session_id, error)
                return
            if prepared.receipt is not None:
                await self._alone(lambda: self._replace(items, prepared.messages))

    async def _replace(self, before: list[Any], after: list[Any]) -> None:
        """The view in place of what it was made of; what came since stays behind it."""
        now = await self._all()
        if now[: len(before)] != before:
            logger.info("session %s has changed: its record stays as it is", self.session_id)
            return
        new = [*after, *now[len(before) :]]
        self._owed = (now, new)
        try:
            await self._write(new)
            self._owed = None
        except BaseException:
            await self._put_back()
            raise

    async def _put_back(self) -> None:
        """The record as it was, with what others added to what is left of it."""
        if self._owed is None:
            return
        was, half = self._owed
        now = await self._all()
        known = max(_common(now, was), _common(now, half))
        self._owed = ([*was, *now[known:]], half)
        await self._write(self._owed[0])
        self._owed = None

    async def _write(self, items: list[Any]) -> None:
        await self._record.clear_session()
        await self._record.add_items(items)

    async def _all(self) -> list[Any]:
        settings = getattr(self._record, "session_settings", None)
        is_limited = getattr(settings, "limit", None) is not None
        return list(await self._record.get_items(_ALL if is_limited else None))

    async def _alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs to its end once it has begun, while nobody else touches the record."""

        async def run() -> T:
            async with self._locks.record:
                await self._put_back()
                return await work()

        return await _finished(asyncio.ensure_future(run()))


async def _finished(task: asyncio.Future[T]) -> T:
    """Its outcome, once it has one: whoever is cancelled meanwhile waits for it first."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


def _common(one: list[Any], other: list[Any]) -> int:
    """How many items both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
