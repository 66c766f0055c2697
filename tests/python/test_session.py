"""``CompactSession`` while others write: nothing is lost, nothing is doubled, everything is in order."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from typing import Any

import pytest
from agents import Agent, SQLiteSession
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData

from compact import CompactManager
from compact.hooks import CompactSession

from .conftest import config

WINDOW = 6_000

#: How many items are added while compactions run.
ITEMS = max(200, int(os.environ.get("COMPACT_TRIALS", "1")) * 50)


class Interleaving:
    """A store that lets others run between any two of its steps, and fails when it is told to."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        #: So many more items are taken; none for any number.
        self.room: int | None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        await asyncio.sleep(0)
        found = list(self.items)
        await asyncio.sleep(0)
        return found if limit is None else found[-limit:] if limit else []

    async def add_items(self, items: list[Any]) -> None:
        for item in items:
            await asyncio.sleep(0)
            if self.room is not None:
                if self.room == 0:
                    raise OSError("disk full")
                self.room -= 1
            self.items.append(item)

    async def pop_item(self) -> Any:
        await asyncio.sleep(0)
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        while self.items:
            await asyncio.sleep(0)
            self.items.pop()


def item(writer: int, n: int) -> dict[str, Any]:
    role = "assistant" if n % 2 else "user"
    return {"role": role, "content": f"MARK-{writer}-{n}. " + "Mend the stock and the price. " * 6}


def marks(items: list[Any]) -> list[tuple[int, int]]:
    """Which of our items these are, in their order, words of a summary aside."""
    texts = [i["content"] for i in items if isinstance(i.get("content"), str)]
    found = [re.match(r"MARK-(\d+)-(\d+)\.", text) for text in texts]
    return [(int(m[1]), int(m[2])) for m in found if m]


def check(manager: CompactManager, kept: list[Any], writers: int, each: int) -> int:
    """Every item once in what the session was, in the order in which its writer added it."""
    receipts = manager.receipts("s")
    held = marks(manager.restore("s"))
    since = [mark for mark in marks(kept) if mark not in set(held)]
    whole = [*held, *since]
    assert sorted(whole) == [(w, n) for w in range(writers) for n in range(each)]
    for writer in range(writers):
        assert [n for w, n in whole if w == writer] == list(range(each))
    assert sum("COMPACT-SUMMARY v" in json.dumps(i) for i in kept) <= 1
    return len(receipts)


def stores(kind: str, folder: Any) -> Any:
    if kind == "memory":
        return lambda: None
    if kind == "sqlite":
        return lambda: SQLiteSession("s", folder / "items.sqlite")
    shared = Interleaving()
    return lambda: shared


@pytest.mark.parametrize("kind", ["memory", "sqlite", "interleaving"])
async def test_items_added_while_a_session_is_compacted_are_kept(kind, tmp_path):
    manager = CompactManager(config(WINDOW))
    session = CompactSession("s", manager, stores(kind, tmp_path)())
    writers, each = 4, ITEMS // 4
    done = 0

    async def write(writer: int) -> None:
        nonlocal done
        for n in range(each):
            await session.add_items([item(writer, n)])
            await asyncio.sleep(0.01)
        done += 1

    async def compact() -> None:
        while done < writers:
            await session.run_compaction({"force": True})
            await asyncio.sleep(0)

    await asyncio.gather(*(write(n) for n in range(writers)), compact(), compact())
    kept = await session.get_items()
    assert check(manager, kept, writers, each) >= 3


@pytest.mark.parametrize("kind", ["sqlite", "interleaving"])
def test_threads_and_objects_of_one_session_share_its_record(kind, tmp_path):
    manager = CompactManager(config(WINDOW))
    make = stores(kind, tmp_path)
    writers, each = 4, ITEMS // 4
    running = threading.Semaphore(0)
    failures: list[BaseException] = []

    def thread(work: Any) -> threading.Thread:
        def run() -> None:
            try:
                asyncio.run(work(CompactSession("s", manager, make())))
            except BaseException as error:
                failures.append(error)
            finally:
                running.release()

        return threading.Thread(target=run)

    def writing(writer: int) -> Any:
        async def write(session: CompactSession) -> None:
            for n in range(each):
                await session.add_items([item(writer, n)])
                await asyncio.sleep(0.01)

        return write

    stop = threading.Event()

    async def compact(session: CompactSession) -> None:
        while not stop.is_set():
            await session.run_compaction({"force": True})

    writing_threads = [thread(writing(n)) for n in range(writers)]
    compacting = [thread(compact) for _ in range(2)]
    [t.start() for t in (*writing_threads, *compacting)]
    [t.join(120) for t in writing_threads]
    stop.set()
    [t.join(120) for t in compacting]
    assert failures == []
    kept = asyncio.run(CompactSession("s", manager, make()).get_items())
    assert check(manager, kept, writers, each) >= 2


@pytest.mark.parametrize("room", [0, 1, 5])
async def test_a_record_that_cannot_be_written_is_put_back(room):
    manager, store = CompactManager(config(WINDOW)), Interleaving()
    session = CompactSession("s", manager, store)
    await session.add_items([item(0, n) for n in range(60)])
    before = list(store.items)
    store.room = room
    with pytest.raises(OSError, match="disk full"):
        await session.run_compaction({"force": True})
    with pytest.raises(OSError, match="disk full"):
        await session.add_items([item(0, 60)])
    store.room = None
    other = CompactSession("s", manager, store)
    await other.add_items([item(1, 0)])
    assert await session.get_items() == [*before, item(1, 0)]
    await session.add_items([item(0, 60)])
    await session.run_compaction({"force": True})
    assert len(store.items) < 60
    assert marks(manager.restore("s")) == [*((0, n) for n in range(60)), (1, 0), (0, 60)]


async def test_a_record_that_failed_half_way_holds_nothing_twice():
    manager, store = CompactManager(config(WINDOW)), Interleaving()
    session = CompactSession("s", manager, store)
    await session.add_items([item(0, n) for n in range(60)])
    store.room = 70
    failing = store.add_items

    async def once(items: list[Any]) -> None:
        store.add_items = failing  # type: ignore[method-assign]
        await failing(items[:3])
        raise OSError("connection lost")

    store.add_items = once  # type: ignore[method-assign]
    with pytest.raises(OSError, match="connection lost"):
        await session.run_compaction({"force": True})
    assert store.items == [item(0, n) for n in range(60)]


async def test_whoever_is_cancelled_leaves_a_whole_record():
    manager, store = CompactManager(config(WINDOW)), Interleaving()
    session = CompactSession("s", manager, store)
    await session.add_items([item(0, n) for n in range(60)])
    cleared = asyncio.Event()
    clear = store.clear_session

    async def clearing() -> None:
        await clear()
        cleared.set()

    store.clear_session = clearing  # type: ignore[method-assign]
    task = asyncio.create_task(session.run_compaction({"force": True}))
    await cleared.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = await session.get_items()
    assert len(kept) < 60 and marks(kept)[-1] == (0, 59)


async def test_what_was_popped_or_cleared_meanwhile_stays_away():
    manager = CompactManager(config(WINDOW))
    for change in ("pop_item", "clear_session"):
        session = CompactSession(change, manager)
        await session.add_items([item(0, n) for n in range(60)])
        prepare = manager.aprepare

        async def meanwhile(*args: Any, **how: Any) -> Any:
            made = await prepare(*args, **how)
            await getattr(session, change)()
            return made

        manager.aprepare = meanwhile  # type: ignore[method-assign]
        await session.run_compaction({"force": True})
        manager.aprepare = prepare  # type: ignore[method-assign]
        left = 59 if change == "pop_item" else 0
        assert await session.get_items() == [item(0, n) for n in range(left)]


async def test_a_session_that_shows_its_last_items_is_compacted_whole(tmp_path):
    manager = CompactManager(config(WINDOW))
    underlying = SQLiteSession("s", tmp_path / "items.sqlite", session_settings=SessionSettings(limit=5))
    session = CompactSession("s", manager, underlying)
    await session.add_items([item(0, n) for n in range(60)])
    assert marks(await session.get_items()) == [(0, n) for n in range(55, 60)]
    await session.run_compaction({"force": True})
    assert marks(manager.restore("s")) == [(0, n) for n in range(60)]
    assert "COMPACT-SUMMARY v1" in json.dumps(await session.get_items(1_000))


async def test_the_filter_and_the_record_are_one_session():
    manager = CompactManager(config(WINDOW))
    session = CompactSession("s", manager)
    items = [item(0, n) for n in range(120)]
    call = CallModelData(model_data=ModelInputData(input=list(items), instructions="Mend."), agent=Agent(name="a"), context=None)
    filtered = await session.input_filter(call)
    assert len(filtered.input) < len(items) and filtered.instructions == "Mend."
    assert [r["session_id"] for r in manager.receipts("s")] == ["s"]
    await session.add_items([*items, item(0, 120)])
    await session.run_compaction()
    # The record becomes the view that was sent, and what came since stays behind it.
    kept = await session.get_items()
    assert kept[: len(filtered.input)] == filtered.input and kept[-1] == item(0, 120)
    assert len(manager.receipts("s")) == 1
