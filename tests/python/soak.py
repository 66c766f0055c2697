"""A soak: many sessions of random tool use against a model that enforces its window and every rule.

``python -m tests.python.soak 1000`` runs a thousand of them and prints what came of it.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from dataclasses import dataclass, field
from typing import Any

import compact
from compact import CompactConfig, CompactManager, HeuristicEstimator

WINDOW = 2_000
CODEC = compact.Codec("openai-chat")


@dataclass
class Outcome:
    """What came of a soak."""

    sessions: int = 0
    calls: int = 0
    compactions: int = 0
    overflows: int = 0
    refused: int = 0
    unstable: int = 0
    kilobytes: list[int] = field(default_factory=list)

    @property
    def stable(self) -> float:
        return 1 - self.unstable / max(self.sessions, 1)

    @property
    def growth(self) -> float:
        """Memory at the end over memory once a tenth was done."""
        warm = self.kilobytes[max(len(self.kilobytes) // 10, 1) - 1]
        return self.kilobytes[-1] / warm


def turn(rng: random.Random, n: int, density: float) -> list[dict[str, Any]]:
    """A request, as many tool calls as the session's density says, and an answer."""
    words = lambda most: " ".join(rng.choice(("stock", "order", "price", "cart")) for _ in range(rng.randrange(5, most)))  # noqa: E731
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Mend E{n:04d} in src/part_{n}.py. {words(40)}"}]
    while rng.random() < density:
        ids = [f"c{n}_{len(messages)}_{k}" for k in range(rng.choice((1, 1, 2, 3)))]
        calls = [
            {"id": i, "type": "function", "function": {"name": rng.choice(("read", "grep", "run")), "arguments": json.dumps({"path": f"src/part_{n}.py"})}}
            for i in ids
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": i, "content": words(160)} for i in ids]
    return [*messages, {"role": "assistant", "content": f"E{n:04d} is mended. {words(20)}"}]


def session(manager: CompactManager, seed: int, outcome: Outcome) -> None:
    rng = random.Random(seed)
    density = rng.uniform(0.0, 0.8)
    history: list[dict[str, Any]] = [{"role": "system", "content": "You mend a shop."}]
    name, wrong, total, n = f"soak-{seed}", 0, 0, 0
    while total < 3 * WINDOW:
        messages = turn(rng, n, density)
        history.extend(messages[:-1])
        sent = manager.preflight(name, history, codec=CODEC)
        outcome.calls += 1
        tokens = compact.account(sent, estimator="heuristic", codec=CODEC).total
        over, broken = tokens > WINDOW, bool(compact.validate(sent, "openai-chat"))
        outcome.overflows += over
        outcome.refused += broken
        wrong += over or broken
        history.append(messages[-1])
        total, n = total + sum(len(json.dumps(m)) for m in messages) // 4, n + 1
    outcome.compactions += len(manager.receipts(name))
    outcome.sessions += 1
    outcome.unstable += bool(wrong)
    manager.forget(name)


def soak(sessions: int, *, first: int = 0) -> Outcome:
    """Runs so many sessions on one manager."""
    cfg = CompactConfig(model="gpt-5", max_context_tokens=WINDOW, token_estimator=HeuristicEstimator(), max_sessions=8)
    manager, outcome = CompactManager(cfg), Outcome()
    for seed in range(first, first + sessions):
        session(manager, seed, outcome)
        outcome.kilobytes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return outcome


if __name__ == "__main__":
    done = soak(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    print(
        f"{done.sessions} sessions, {done.calls} calls, {done.compactions} compactions: {done.overflows} overflows, "
        f"{done.refused} refused, {done.stable:.2%} stable, memory x{done.growth:.2f}"
    )
    sys.exit(bool(done.overflows or done.refused))
