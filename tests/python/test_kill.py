"""Processes that are killed while they compact; ``cargo xtask prove kill-python`` kills a hundred."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from compact import CompactConfig, CompactManager, FileStorage

# An agent: its history in a file of its own, one message per line, and a preflight before each call.
AGENT = """
import json, sys
from pathlib import Path
from compact import CompactConfig, CompactManager, FileStorage

history, store, session = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
messages = [json.loads(line) for line in history.read_text().splitlines()]
manager = CompactManager(CompactConfig(model="gpt-5", max_context_tokens=8000, storage=FileStorage(store)))
with history.open("a") as file:
    while True:
        n = len(messages)
        call = {"name": "read", "arguments": json.dumps({"path": f"src/part_{n}.py"})}
        new = [
            {"role": "user", "content": f"Mend part {n}; never touch module_{n}."},
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": f"call_{n}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": f"def part_{n}(): return {n}\\n" * 40},
            {"role": "assistant", "content": f"Part {n} is mended."},
        ]
        file.write("".join(json.dumps(message) + "\\n" for message in new))
        file.flush()
        messages += new
        manager.preflight(session, messages)
        print("told", len(manager.receipts(session)), flush=True)
"""


def whole(history: Path) -> list[dict]:
    """What the agent wrote before it was killed, without half a line or half an exchange."""
    lines = history.read_text().split("\n")[:-1]
    lines = lines[: len(lines) - len(lines) % 4]
    history.write_text("".join(line + "\n" for line in lines))
    return [json.loads(line) for line in lines]


def test_a_killed_process_leaves_nothing_torn_or_unlisted(tmp_path: Path):
    trials, moments = int(os.environ.get("COMPACT_TRIALS", "3")), random.Random(3)
    history, store = tmp_path / "history.jsonl", tmp_path / "store"
    killed = receipts = 0
    for trial in range(trials):
        if trial % 10 == 0:
            history.write_text("")
        session = f"killed-{trial // 10}"
        agent = [sys.executable, "-c", AGENT, str(history), str(store), session]
        child = subprocess.Popen(agent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.8))
        child.send_signal(signal.SIGKILL)
        out, err = child.communicate()
        assert (child.returncode, err) == (-signal.SIGKILL, b""), err.decode()
        killed += 1
        told = [int(line.split()[1]) for line in (first + out).splitlines() if line.startswith(b"told")]
        said = whole(history)
        manager = CompactManager(CompactConfig(model="gpt-5", max_context_tokens=8000, storage=FileStorage(store)))
        known = manager.receipts(session)
        # What a process was told is on record is there, and all that is there is whole.
        assert len(known) >= max(told, default=0)
        for receipt in known[-3:]:
            assert manager.verify(receipt.id) == []
        if known:
            restored = manager.restore(session)
            assert restored == said[: len(restored)]
        receipts = max(receipts, len(known))
    print(f"{killed} killed, {receipts} compactions on record")
    assert receipts > 0
    packs = [path for path in store.rglob("*") if path.is_file() and path.parent.parent.name in ("packs", "receipts")]
    assert {path.suffix for path in packs if "#" not in path.name} == {".pack"}
