"""A soak: many sessions of random tool use against a model that enforces its window and every rule.

Every fourth message or so is a large one: words of 15 to 70 % of the window, a long tool result, a picture. What
was said last must reach the model as it was said wherever it fits.

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

WINDOW = 8_000
BUFFER = 1_024
# What an empty summary, its bridges and what is left of the first request take at most.
LEAST = 500
CODEC = compact.Codec("openai-chat")
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass
class Outcome:
    """What came of a soak."""

    sessions: int = 0
    calls: int = 0
    compactions: int = 0
    overflows: int = 0
    refused: int = 0
    unstable: int = 0
    large: int = 0
    changed: int = 0
    kilobytes: list[int] = field(default_factory=list)

    @property
    def stable(self) -> float:
        return 1 - self.unstable / max(self.sessions, 1)

    @property
    def growth(self) -> float:
        """Memory at the end over memory once a tenth was done."""
        warm = self.kilobytes[max(len(self.kilobytes) // 10, 1) - 1]
        return self.kilobytes[-1] / warm


def words(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choice(("stock", "order", "price", "cart")) for _ in range(rng.randrange(least, most)))


def large(rng: random.Random) -> str:
    """Words of 15 to 70 % of the window."""
    return words(rng, 1, 2) + " " + "mend it " * int(WINDOW * rng.uniform(0.15, 0.70) / 2)


def request(rng: random.Random, n: int) -> dict[str, Any]:
    text = f"Mend E{n:04d} in src/part_{n}.py. {words(rng, 5, 40)}"
    kind = rng.random()
    if kind < 0.12:
        return {"role": "user", "content": f"{text} {large(rng)}"}
    if kind < 0.24:
        picture = {"type": "image_url", "image_url": {"url": PICTURE}}
        return {"role": "user", "content": [{"type": "text", "text": text}, picture]}
    return {"role": "user", "content": text}


def steps(rng: random.Random, n: int, density: float) -> list[list[dict[str, Any]]]:
    """What is said before each call of the model in one turn, and each answer of it as the last of a step."""
    said: list[list[dict[str, Any]]] = [[request(rng, n)]]
    while rng.random() < density:
        ids = [f"c{n}_{len(said)}_{k}" for k in range(rng.choice((1, 1, 2, 3)))]
        calls = [
            {"id": i, "type": "function", "function": {"name": rng.choice(("read", "grep", "run")), "arguments": json.dumps({"path": f"src/part_{n}.py"})}}
            for i in ids
        ]
        said[-1].append({"role": "assistant", "content": None, "tool_calls": calls})
        is_large = rng.random() < 0.08
        said.append([{"role": "tool", "tool_call_id": i, "content": large(rng) if is_large and i == ids[0] else words(rng, 5, 160)} for i in ids])
    said[-1].append({"role": "assistant", "content": f"E{n:04d} is mended. {words(rng, 5, 20)}"})
    return said


def count(messages: list[dict[str, Any]]) -> int:
    return compact.account(messages, estimator="heuristic", codec=CODEC).total


def is_changed(history: list[dict[str, Any]], sent: list[dict[str, Any]], newest: list[dict[str, Any]]) -> bool:
    """True when what was said last fits, and does not stand at the end of what is sent as it was said."""
    fits = count(history[:1]) + count(newest) + LEAST <= WINDOW - BUFFER
    return fits and sent[-len(newest) :] != newest


def session(manager: CompactManager, seed: int, outcome: Outcome) -> None:
    rng = random.Random(seed)
    density = rng.uniform(0.0, 0.8)
    history: list[dict[str, Any]] = [{"role": "system", "content": "You mend a shop."}]
    name, wrong, total, n = f"soak-{seed}", 0, 0, 0
    while total < 3 * WINDOW:
        for *newest, answer in steps(rng, n, density):
            history.extend(newest)
            sent = manager.preflight(name, history, codec=CODEC)
            outcome.calls += 1
            outcome.large += count(newest) > 0.15 * WINDOW
            over, broken = count(sent) > WINDOW, bool(compact.validate(sent, "openai-chat"))
            changed = is_changed(history, sent, newest)
            outcome.overflows += over
            outcome.refused += broken
            outcome.changed += changed
            wrong += over or broken or changed
            history.append(answer)
            total += sum(len(json.dumps(m)) for m in [*newest, answer]) // 4
        n += 1
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
        f"{done.refused} refused, {done.changed} newest messages changed ({done.large} large ones), "
        f"{done.stable:.2%} stable, memory x{done.growth:.2f}"
    )
    sys.exit(bool(done.overflows or done.refused or done.changed))
