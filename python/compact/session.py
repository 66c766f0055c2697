"""A session of the OpenAI Agents SDK whose record is compacted in place.

A compaction takes a moment, and items may be added meanwhile: by other tasks, by other threads, or by another
object for the same session. So the view is computed from a copy of the record without blocking anybody, and
then replaces that part of the record under a lock; items that were added since stay behind it. The original
is in the manager's storage, and the manager decides what to keep.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from .events import logger
from .exceptions import CompactError
from .manager import CompactManager, Prepared
from .wire import Codec, read_flags

if TYPE_CHECKING:
    from agents.memory import OpenAIResponsesCompactionArgs, Session, SessionSettings
    from agents.run_config import CallModelData

__all__ = ["RESPONSES", "CompactSession"]

RESPONSES = Codec("openai-responses")

T = TypeVar("T")


class _Record(Protocol):
    """Stores items: the part of the SDK's ``Session`` that is needed here."""

    async def get_items(self, limit: int | None = None) -> list[Any]: ...
    async def add_items(self, items: list[Any]) -> None: ...
    async def pop_item(self) -> Any: ...
    async def clear_session(self) -> None: ...


class _ThreadLock:
    """A lock between threads that is awaited without blocking an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        while not self._lock.acquire(blocking=False):
            await asyncio.sleep(0.001)

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class _SessionLocks:
    """The locks that all objects for one session share: one for its record, one for making a view."""

    def __init__(self) -> None:
        self.record = _ThreadLock()
        self.view = _ThreadLock()


class _MemoryRecord:
    """Keeps the items of a session in memory."""

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


#: The locks of each session in this process, shared by all objects for it.
_LOCKS: WeakValueDictionary[str, _SessionLocks] = WeakValueDictionary()
_LOCKS_LOCK = threading.Lock()

#: More items than any record has. ``None`` would apply the session's own limit, if it has one.
_NO_LIMIT = 2**31 - 1


class CompactSession:
    """A session whose record is compacted in place, by ``run_compaction`` after each turn.

    ``underlying`` stores the items; without one they are kept in memory. Items that are added through this
    class while a compaction runs are kept, in order. If the record cannot be written, it is restored at once
    or at the next call. A record that was popped or cleared meanwhile is left alone.

    The SDK reads a session when a run begins and not between its model calls. A run of many tool calls may
    outgrow the window by itself; pass :attr:`input_filter` to it, which the SDK asks before every call.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self, session_id: str, manager: CompactManager, underlying: Session | None = None
    ) -> None:
        self.session_id = session_id
        self.manager = manager
        self.underlying = underlying
        self._record: _Record = _MemoryRecord() if underlying is None else underlying
        with _LOCKS_LOCK:
            self._locks = _LOCKS.setdefault(session_id, _SessionLocks())
        #: The record before and after a replacement that failed halfway, until it is restored.
        self._unfinished: tuple[list[Any], list[Any]] | None = None

    @property
    def input_filter(self) -> Callable[[CallModelData[Any]], Any]:
        """Keeps every model call of a run inside the window: ``RunConfig(call_model_input_filter=…)``."""
        from .integrations.agents import compact_filter

        return compact_filter(self.manager, self.session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Returns the items, or the last ``limit`` of them."""
        return await self._run_exclusive(lambda: self._record.get_items(limit))

    async def add_items(self, items: list[Any]) -> None:
        """Adds items without their ``meta``; the manager protects those that it flags."""

        async def add() -> None:
            await self._record.add_items(await self._strip_flags(items))

        await self._run_exclusive(add)

    async def _strip_flags(self, items: list[Any]) -> list[Any]:
        flag = self.manager.config.policy.protected_flag
        bare = [RESPONSES.bare(item) for item in items]
        flags = [read_flags(item, getattr(item, "model_extra", None)) for item in items]
        protected = [item for item, about in zip(items, flags, strict=True) if about.get(flag)]
        if protected:
            await asyncio.to_thread(
                self.manager.protect, self.session_id, protected, codec=RESPONSES
            )
        return bare

    async def pop_item(self) -> Any:
        """Removes the last item and returns it."""
        return await self._run_exclusive(self._record.pop_item)

    async def clear_session(self) -> None:
        """Empties the record; nothing that it held appears in a later prompt."""
        self._unfinished = None
        await self._run_exclusive(self._record.clear_session)

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Compacts the record if it outgrew the window, or with ``force`` whatever the pressure.

        A view that was sent within the run replaces it too. On an error the record stays unchanged, and the error is logged.
        """
        note = "run_compaction" if (args or {}).get("force") else None
        # Two views at a time would make a branch of the session that nobody continues.
        async with self._locks.view:
            items = await self._run_exclusive(self._all_items)
            try:
                prepared = await self.manager.aprepare(
                    self.session_id, items, codec=RESPONSES, note=note
                )
            except CompactError as error:
                logger.warning("session %s is left unchanged: %s", self.session_id, error)
                return
            self._warn_of_long_run(prepared)
            # The view may be one that `input_filter` made within the run.
            if prepared.messages != items:
                await self._run_exclusive(lambda: self._replace_items(items, prepared.messages))

    def _warn_of_long_run(self, prepared: Prepared) -> None:
        decision = prepared.decision
        if decision.tokens > decision.window:
            logger.warning(
                "session %s grew to %s tokens within one run, beyond the window of %s: "
                "pass RunConfig(call_model_input_filter=session.input_filter) to such runs",
                self.session_id,
                decision.tokens,
                decision.window,
            )

    async def _replace_items(self, before: list[Any], after: list[Any]) -> None:
        """Replaces what the view was made from by the view; items that came since stay behind it."""
        now = await self._all_items()
        if now[: len(before)] != before:
            logger.info("session %s has changed meanwhile: its record is left unchanged", self.session_id)
            return
        new = [*after, *now[len(before) :]]
        self._unfinished = (now, new)
        try:
            await self._write_items(new)
            self._unfinished = None
        except BaseException:
            await self._restore_record()
            raise

    async def _restore_record(self) -> None:
        """Restores the record after a failed replacement, with the items that others added since."""
        if self._unfinished is None:
            return
        was, half = self._unfinished
        now = await self._all_items()
        known = max(_common_length(now, was), _common_length(now, half))
        self._unfinished = ([*was, *now[known:]], half)
        await self._write_items(self._unfinished[0])
        self._unfinished = None

    async def _write_items(self, items: list[Any]) -> None:
        await self._record.clear_session()
        await self._record.add_items(items)

    async def _all_items(self) -> list[Any]:
        settings = getattr(self._record, "session_settings", None)
        is_limited = getattr(settings, "limit", None) is not None
        return list(await self._record.get_items(_NO_LIMIT if is_limited else None))

    async def _run_exclusive(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs work to its end while nobody else touches the record, even if the caller is cancelled."""

        async def run() -> T:
            async with self._locks.record:
                await self._restore_record()
                return await work()

        return await _wait_for_result(asyncio.ensure_future(run()))


async def _wait_for_result(task: asyncio.Future[T]) -> T:
    """Returns the task's result; a cancellation of the caller takes effect once the task is done."""
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


def _common_length(one: list[Any], other: list[Any]) -> int:
    """Counts the items that both lists begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
