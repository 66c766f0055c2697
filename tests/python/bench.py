"""How long things take: importing, a preflight at 200,000 tokens, and what others need for the same history.

``python -m tests.python.bench [LIMITS] [PYTHON]`` prints a table, in time of the processor, the best of a few
runs; with ``LIMITS`` it fails when one is exceeded. ``PYTHON`` is another interpreter whose packages are timed
as well: LiteLLM does not get along with the rest. ``cargo xtask bench python`` builds what this measures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .conftest import chat

#: Turns that come to some 200,000 tokens.
TURNS = 480


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


def steady(manager: Any, history: list[Any], kind: Callable[[Any], Any] = dict, **how: Any) -> float:
    """A preflight of a history that was seen before, with one message more each time."""
    messages = [kind(message) for message in history]
    manager.preflight("bench", messages, **how)

    def one_more() -> None:
        messages.append(kind({"role": "user", "content": f"And part {len(messages)}?"}))
        manager.preflight("bench", messages, **how)

    return best(one_more, 25)


def main(limits: bool, pythons: list[str]) -> int:
    from compact import CompactConfig, CompactManager, MemoryStorage, TiktokenEstimator

    history = chat(TURNS, words=60)
    tokens = TiktokenEstimator().estimate(history, "gpt-5")
    how = {"model": "gpt-5", "format": "openai-chat", "storage": MemoryStorage()}
    roomy = lambda: CompactManager(CompactConfig(max_context_tokens=2 * tokens, **how))  # noqa: E731
    full = CompactManager(CompactConfig(max_context_tokens=tokens, **how))
    ours = steady(roomy(), history)
    compaction = best(lambda: full.manual_compact(f"c{time.time_ns()}", history), 3)
    rows = [
        ("import compact, over import json", importing("compact") - importing("json"), 60),
        (f"preflight, steady, {tokens:,} tokens", ours, 10),
        ("the same behind a compacted view", steady(full, history), 10),
        *objects(roomy, history),
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


def objects(manager: Callable[[], Any], history: list[Any]) -> Iterator[tuple[str, float, None]]:
    """The same with the objects of SDKs, where most of the time is what those take to say what they hold."""
    try:
        from langchain_core.messages import convert_to_messages

        from compact.integrations.langchain import LangChainCodec

        message = lambda said: convert_to_messages([said])[0]  # noqa: E731
        yield "the same with LangChain's messages", steady(manager(), history, message, codec=LangChainCodec()), None
    except ImportError:
        pass


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
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it fetches its table otherwise
        import litellm

        # It counts all of them for each one that it takes: the whole history would take sixteen times as long.
        quarter = [dict(message) for message in history[: len(history) // 4]]
        trim = lambda: litellm.utils.trim_messages(quarter, max_tokens=tokens // 8, model="gpt-4o")  # noqa: E731
        yield "litellm trim_messages to half, a quarter of them", best(trim, 1)
    except ImportError:
        pass


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["OTHERS"]:
        print(json.dumps(list(others(int(words[1])))))
    else:
        sys.exit(main("LIMITS" in words, [word for word in words if word != "LIMITS"]))
