"""How long things take: importing, a preflight at 200,000 tokens, and what others need for the same history.

``python -m tests.python.bench [LIMITS]`` prints a table; with ``LIMITS`` it fails when one is exceeded.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from compact import Codec, CompactConfig, CompactManager, MemoryStorage, TiktokenEstimator

from .conftest import chat

CODEC = Codec("openai-chat")


def best(work: Callable[[], Any], times: int = 5) -> float:
    """The median of a few runs, in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def importing(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print(1000 * (time.perf_counter() - t))"
    run = lambda: float(subprocess.check_output([sys.executable, "-c", code]))  # noqa: E731
    return statistics.median(run() for _ in range(7))


def steady(manager: CompactManager, history: list[Any]) -> float:
    """A preflight of a history that was seen before, with one message more each time."""
    manager.preflight("bench", history, codec=CODEC)

    def one_more() -> None:
        history.append({"role": "user", "content": f"And part {len(history)}?"})
        manager.preflight("bench", history, codec=CODEC)

    return best(one_more, 9)


def main(limits: bool) -> int:
    history = chat(800, words=60)
    tokens = TiktokenEstimator().estimate(history, "gpt-5")
    roomy = CompactManager(CompactConfig(model="gpt-5", max_context_tokens=2 * tokens, storage=MemoryStorage()))
    rows: list[tuple[str, float, float | None]] = [
        ("import compact, over import json", importing("compact") - importing("json"), 60),
        (f"preflight, steady, {tokens:,} tokens", steady(roomy, list(history)), 10),
    ]
    full = CompactManager(CompactConfig(model="gpt-5", max_context_tokens=tokens, storage=MemoryStorage()))
    rows.append((f"compaction of {tokens:,} tokens", best(lambda: full.manual_compact(f"c{time.time_ns()}", history, codec=CODEC), 3), None))
    rows.append(("json.dumps of the same history", best(lambda: json.dumps(history)), None))
    rows += list(others(history, tokens))
    for name, taken, limit in rows:
        print(f"{name:<48} {taken:>10.1f} ms" + (f"  (limit {limit:.0f})" if limit else ""))
    over = [name for name, taken, limit in rows if limit and taken > limit]
    return len(over) if limits else 0


def others(history: list[Any], tokens: int) -> list[tuple[str, float, None]]:
    rows: list[tuple[str, float, None]] = []
    try:
        from langchain_core.messages import convert_to_messages, trim_messages

        messages = convert_to_messages(history)
        estimator = TiktokenEstimator()
        count = lambda ms: sum(estimator.count(str(m.content)) for m in ms)  # noqa: E731
        trim = lambda: trim_messages(messages, max_tokens=tokens // 2, token_counter=count)  # noqa: E731
        rows.append(("LangChain trim_messages to half", best(trim, 3), None))
    except ImportError:
        pass
    try:
        import litellm

        trim = lambda: litellm.utils.trim_messages([dict(m) for m in history], max_tokens=tokens // 2, model="gpt-4o")  # noqa: E731
        rows.append(("litellm trim_messages to half", best(trim, 3), None))
    except ImportError:
        pass
    return rows


if __name__ == "__main__":
    sys.exit(main("LIMITS" in sys.argv[1:]))
