"""A small soak; ``python -m tests.python.soak 1000`` is the large one."""

from __future__ import annotations

from .soak import soak


def test_s2_12_s2_173_sessions_of_random_density_stay_within_their_window():
    outcome = soak(12)
    assert (outcome.overflows, outcome.refused, outcome.stable) == (0, 0, 1.0)
    assert outcome.compactions >= 2 * outcome.sessions
    assert outcome.growth < 1.3
