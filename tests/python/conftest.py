"""Conversations to compact, and managers to do it with."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from compact import CallbackExporter, CompactConfig, CompactManager, CompactPolicy, MemoryStorage


def chat(turns: int, *, seed: int = 7, words: int = 30) -> list[dict[str, Any]]:
    """Chat completions with a tool call in every turn, always the same for a seed."""
    rng = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You mend a shop."}]
    for turn in range(turns):
        path, code = f"src/part_{turn}.py", f"E{rng.randrange(10_000):04d}"
        filler = " ".join(rng.choice(("stock", "order", "price", "cart")) for _ in range(words))
        call = {"name": "read", "arguments": json.dumps({"path": path})}
        messages += [
            {"role": "user", "content": f"Mend {code} in {path}. {filler}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"{code}\n" + "x = 1\n" * words},
            {"role": "assistant", "content": f"{code} in {path} is mended."},
        ]
    return messages


def config(window: int = 4_000, **more: Any) -> CompactConfig:
    return CompactConfig(**{"model": "gpt-5", "max_context_tokens": window, "storage": MemoryStorage(), **more})


@pytest.fixture
def events() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def manager(events: list[dict[str, Any]]) -> Iterator[CompactManager]:
    yield CompactManager(config(exporter=CallbackExporter(events.append), policy=CompactPolicy()))
