"""The view measured by somebody else: compaction-conformance-kit, through its own adapter protocol.

It plants rules, constraints, facts, goals and preferences among small talk, compacts five times to a share of the
characters, and looks for their values. Two of the planted things replace an earlier value, which must be gone.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from compaction_kit.canaries import Canary
from compaction_kit.compacted import CompactedContext
from compaction_kit.corpus import build_random_session
from compaction_kit.runner import ConformanceRun, run_conformance
from compaction_kit.session import Turn

from compact import CompactConfig, CompactManager, CompactPolicy, MemoryStorage

SEEDS = (1, 2, 3, 4)
ROUNDS = 5

#: Characters for which the kit's budgets allow and the engine's estimator counts one token.
CHARACTERS_PER_TOKEN = 4


class CompactAdapter:
    """A compactor of the kit over a manager whose window is the kit's budget.

    A context is rendered as the kit renders turns. The kit hands a rendered context back as one turn; what goes on
    from there are the messages behind it, as in a session.
    """

    name = "compact"

    def __init__(self) -> None:
        self._messages: dict[str, list[dict[str, Any]]] = {}

    def compact(
        self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        messages = self._messages.get(turns[0].text) or [
            {"role": turn.role, "content": turn.text} for turn in turns
        ]
        text = render(messages)
        window = (budget_chars or len(text)) // CHARACTERS_PER_TOKEN
        while budget_chars is not None and len(text) > budget_chars:
            view = manager(window).manual_compact("kit", messages)
            text = render(view)
            # The kit counts the roles and the line ends that it renders; the engine does not know them.
            window -= max(1, (len(text) - budget_chars) // CHARACTERS_PER_TOKEN)
            if len(text) <= budget_chars:
                messages = view
        self._messages[text] = messages
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def manager(window: int) -> CompactManager:
    policy = CompactPolicy(trigger_pct=1.0, target_of_trigger=0.99, hard_cap_buffer=0)
    return CompactManager(
        CompactConfig(
            model="gpt-5",
            max_context_tokens=window,
            storage=MemoryStorage(),
            policy=policy,
            settings={"estimator": "chars4"},
        )
    )


def render(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"[{message['role']}] {message['content']}" for message in messages)


@cache
def run(seed: int, budget: float) -> tuple[ConformanceRun, list[Canary]]:
    session, canaries = build_random_session(seed)
    result = run_conformance(
        session, CompactAdapter(), rounds=ROUNDS, canaries=canaries, budget_fraction=budget
    )
    return result, canaries


#: By budget: the least share of what was planted that five rounds keep, and the most replaced values, of eight, that
#: are still shown.
LIMITS = {0.1: (0.3, 0), 0.2: (0.85, 0), 0.3: (1.0, 0), 0.5: (1.0, 0)}


@pytest.mark.parametrize("budget", LIMITS)
def test_what_was_planted_is_kept_over_five_rounds(budget: float) -> None:
    kept = []
    for seed in SEEDS:
        result, _ = run(seed, budget)
        assert all(round.within_budget for round in result.rounds)
        kept += result.rounds[-1].survived.values()
        assert result.rounds[-1].survived == result.rounds[0].survived, "later rounds lose nothing"
    assert sum(kept) / len(kept) >= LIMITS[budget][0]


@pytest.mark.parametrize("budget", LIMITS)
def test_replaced_values_are_gone(budget: float) -> None:
    shown = []
    for seed in SEEDS:
        result, canaries = run(seed, budget)
        text = result.rounds[-1].context.text.lower()
        replaced = [token for canary in canaries for token in canary.superseded_tokens]
        shown += [token for token in replaced if token.lower() in text]
    assert len(shown) <= LIMITS[budget][1], shown
