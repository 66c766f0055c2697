"""A small soak; ``cargo xtask prove soak`` is the large one."""

from __future__ import annotations

import os

from .soak import soak


def test_sessions_of_random_density_stay_within_their_window_and_keep_what_was_said_last():
    outcome = soak(int(os.environ.get("COMPACT_TRIALS", "12")))
    print(f"{outcome.sessions} sessions, {outcome.calls} calls, {outcome.compactions} compactions, {outcome.large} large messages")
    assert (outcome.overflows, outcome.refused, outcome.stable) == (0, 0, 1.0)
    assert outcome.changed == 0 and outcome.large > outcome.sessions
    assert outcome.compactions >= 2 * outcome.sessions
    assert outcome.growth < 1.3
