"""Times one package in its own interpreter: `worker.py PEER HISTORY BUDGET OUT`.

Prints one JSON object: seconds of a first pre-flight (what the package counts or decides before a call), of one with a
turn more, and of a compaction to the budget; and the peak memory of the process. What it made is written to OUT in
OpenAI's chat format.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import pathlib
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from packages import PACKAGES


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def measure(peer: Any, history: dict, budget: int) -> tuple[dict, list[dict]]:
    messages = peer.load(copy.deepcopy(history["messages"]))
    first, _ = timed(lambda: peer.preflight(messages))
    longer = peer.load(copy.deepcopy(history["messages"] + history["turn"]))
    one_more, _ = timed(lambda: peer.preflight(longer))
    compaction, made = timed(lambda: peer.compact(messages, budget))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times = {"preflight": first, "one_more_turn": one_more, "compaction": compaction, "peak_mb": peak}
    return times, peer.dump(made)


def main(name: str, history_file: str, budget: str, out: str) -> None:
    history = json.loads(pathlib.Path(history_file).read_text())
    # Packages print as they like; the answer is the only line on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        peer = PACKAGES[name](int(budget))
        times, made = measure(peer, history, int(budget))
    pathlib.Path(out).write_text(json.dumps(made))
    print(json.dumps({"version": peer.version(), **times}))


if __name__ == "__main__":
    main(*sys.argv[1:])
