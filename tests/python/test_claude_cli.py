"""The Claude Agent SDK with the agent that its wheel carries, against an API on loopback that is scripted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

from compact import CompactManager
from compact.integrations.claude import get_repo_runs_dir, make_precompact_hook, make_session_start_hook
from compact.runner import SessionRunner, checkpoint_request

from ..agents.scripted import Anthropic
from .conftest import config

RULE = "Never drop the column ledger_rows.amount_legacy before the September close."


@pytest.fixture
def api():
    api = Anthropic()
    yield api
    api.server.shutdown()


def options(folder: Path, api: Anthropic, **more: Any) -> ClaudeAgentOptions:
    """An agent with a home and a repository of its own."""
    for name in ("home", "repo"):
        (folder / name).mkdir(exist_ok=True)
    variables = {
        "HOME": str(folder / "home"), "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-test-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CONFIG_DIR": str(folder / "home" / ".claude"),
    }
    return ClaudeAgentOptions(cwd=folder / "repo", env=variables, model="claude-sonnet-4-5", **more)


async def say(client: ClaudeSDKClient, prompt: str) -> None:
    await client.query(prompt)
    async for _ in client.receive_response():
        pass


async def test_a_compaction_is_archived_and_what_it_forgot_is_told_again(api, tmp_path, monkeypatch):
    monkeypatch.setenv("COMPACT_STORAGE_PATH", str(tmp_path / "store"))
    manager = CompactManager(config(window=4_000))
    hooks = {
        "PreCompact": [HookMatcher(hooks=[make_precompact_hook(tmp_path / "repo", manager)])],
        "SessionStart": [HookMatcher(hooks=[make_session_start_hook(manager)])],
    }
    api.words = "Understood. " + "The ledger is read row by row. " * 150
    api.summary = "The ledger moves to the new API."
    async with ClaudeSDKClient(options(tmp_path, api, hooks=hooks)) as client:
        await say(client, f"We move src/ledger/rows.py to the new API. {RULE}")
        for part in ("totals", "taxes", "dates"):
            await say(client, f"Then look at src/ledger/{part}.py.")
        await say(client, "/compact keep it short")
        await say(client, "Go on.")
    [archive] = (get_repo_runs_dir(tmp_path / "repo") / "archives").iterdir()
    assert RULE in archive.read_text() and "compact_boundary" not in archive.read_text()
    assert len(api.summaries()) == 1
    last = api.turns()[-1]
    assert api.summary in last, "the agent goes on from its own summary"
    assert "What I remember now" in last and "amount_legacy" in last, "and from what that summary lost"


async def test_a_full_session_is_followed_by_another(api, tmp_path):
    # Each answer of the script is said to have taken 900 tokens.
    api.words = "<checkpoint>\n## Goal\nMove the ledger\n</checkpoint>"
    runner = SessionRunner(lambda: ClaudeSDKClient(options(tmp_path, api)), context_limit=950, max_restarts=1)
    run = await runner.run(f"Move the ledger. {RULE}")
    asked = [held for held in api.turns() if checkpoint_request().splitlines()[0] in held]
    assert (run.continuation_count, run.sources, len(asked)) == (1, ["tagged"], 1)
    assert RULE in run.prompts[0] and "CONTINUING FROM PREVIOUS SESSION" in api.turns()[-1]
    assert RULE in asked[0] and checkpoint_request().splitlines()[0] not in api.turns()[-1], "it is another session"


def test_the_example_runs_without_a_key(api, tmp_path):
    import subprocess
    import sys

    script = Path("examples/claude_agent.py").absolute()
    environment = {**os.environ, **options(tmp_path, api).env, "COMPACT_STORAGE_PATH": str(tmp_path / "store")}
    done = subprocess.run(
        [sys.executable, str(script), "Say", "hello."], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Understood.\n0 restarts" in done.stdout
