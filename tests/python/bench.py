"""How long things take: importing, a preflight at 200,000 tokens, and what others need for the same history.

``python -m tests.python.bench [LIMITS] [PYTHON]`` prints a table, in time of the processor, the best of a few
runs; with ``LIMITS`` it fails when one is exceeded. ``PYTHON`` is another interpreter whose packages are timed
as well: LiteLLM does not get along with the rest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .conftest import chat

#: Turns that come to some 200,000 tokens.
TURNS = 800


def best(work: Callable[[], Any], times: int = 5) -> float:
    """The best of a few runs, in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - start))
    return min(taken)


def importing(module: str) -> float:
    code = f"import time; t = time.process_time(); import {module}; print(1000 * (time.process_time() - t))"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(9))


def steady(manager: Any, history: list[Any]) -> float:
    """A preflight of a history that was seen before, with one message more each time."""
    manager.preflight("bench", history)

    def one_more() -> None:
        history.append({"role": "user", "content": f"And part {len(history)}?"})
        manager.preflight("bench", history)

    return best(one_more, 9)


def main(limits: bool, pythons: list[str]) -> int:
    from compact import CompactConfig, CompactManager, MemoryStorage, TiktokenEstimator

    history = chat(TURNS, words=60)
    tokens = TiktokenEstimator().estimate(history, "gpt-5")
    how = {"model": "gpt-5", "format": "openai-chat", "storage": MemoryStorage()}
    roomy = CompactManager(CompactConfig(max_context_tokens=2 * tokens, **how))
    full = CompactManager(CompactConfig(max_context_tokens=tokens, **how))
    ours = steady(roomy, list(history))
    compaction = best(lambda: full.manual_compact(f"c{time.time_ns()}", history), 3)
    rows = [
        ("import compact, over import json", importing("compact") - importing("json"), 60),
        (f"preflight, steady, {tokens:,} tokens", ours, 10),
        ("the compaction of them", compaction, None),
        ("json.dumps of them", best(lambda: json.dumps(history)), None),
    ]
    for name, taken, limit in rows:
        print(f"{name:<48} {taken:>10.1f} ms" + (f"  (limit {limit})" if limit else ""))
    command = ["-m", "tests.python.bench", "OTHERS", str(tokens)]
    elsewhere = [json.loads(subprocess.check_output([python, *command])) for python in pythons]
    for name, taken in [*others(tokens), *(row for rows in elsewhere for row in rows)]:
        print(f"{name:<48} {taken:>10.1f} ms  ({taken / ours:.1f} × a preflight, {taken / compaction:.1f} × a compaction)")
    over = [name for name, taken, limit in rows if limit and taken > limit]
    return len(over) if limits else 0


def others(tokens: int) -> Iterator[tuple[str, float]]:
    history = chat(TURNS, words=60)
    try:
        from langchain_core.messages import convert_to_messages, trim_messages

        from compact import TiktokenEstimator

        messages, estimator = convert_to_messages(history), TiktokenEstimator()
        count = lambda ms: sum(estimator.count(str(m.content)) for m in ms)  # noqa: E731
        trim = lambda: trim_messages(messages, max_tokens=tokens // 2, token_counter=count)  # noqa: E731
        yield "LangChain trim_messages to half", best(trim, 3)
        trim = lambda: trim_messages(messages, max_tokens=tokens // 2, token_counter="approximate")  # noqa: E731
        yield "the same, counting characters", best(trim, 3)
    except ImportError:
        pass
    try:
        import litellm

        # It shortens messages one by one until they fit, and counts all of them each time.
        trim = lambda: litellm.utils.trim_messages([dict(m) for m in history], max_tokens=tokens // 2, model="gpt-4o")  # noqa: E731
        yield "litellm trim_messages to half", best(trim, 1)
    except ImportError:
        pass


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["OTHERS"]:
        print(json.dumps(list(others(int(words[1])))))
    else:
        sys.exit(main("LIMITS" in words, [word for word in words if word != "LIMITS"]))
