"""Commands for chat loops."""

from __future__ import annotations

from compact import CompactManager
from compact.chat import ChatCommands

from .conftest import chat, config


def test_a_person_may_ask_for_a_compaction():
    commands = ChatCommands(CompactManager(config(window=100_000)), "s")
    messages = chat(30)
    assert commands.handle("Hello", messages) is None
    assert "I remember everything" in commands.handle("/memory", messages).text
    reply = commands.handle("/compact keep the prices", messages)
    assert reply.text.startswith("Compacted ") and len(reply.messages) < len(messages)
    assert commands.manager.receipts("s")[0]["note"] == "keep the prices"
    assert commands.handle(" /memory", reply.messages).text.startswith("What I remember now")


def test_what_cannot_be_compacted_is_told():
    commands = ChatCommands(CompactManager(config(window=100_000)), "s")
    reply = commands.handle("/compact", chat(1)[:2])
    assert "nothing to gain" in reply.text and reply.messages == chat(1)[:2]
    assert "Nothing was compacted:" in commands.compact([{"no": "role"}]).text


def test_the_coding_session_plays_by_itself(tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    script = Path("examples/coding_session.py").absolute()
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Compacted " in done.stdout and "What I remember now" in done.stdout
    assert "E0003" in done.stdout and "compact.completed" in done.stderr
