"""The Claude Agent SDK: every transcript is archived before Claude Code compacts it, what must not be
forgotten goes before the model afterwards, and a task goes on in a new session when one is full.

Needs a key, or `ANTHROPIC_BASE_URL` for a server of your own.
"""

import asyncio
import sys
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

from compact import CompactConfig, CompactManager, FileStorage
from compact.integrations.claude import (
    get_repo_runs_dir,
    make_precompact_hook,
    make_session_start_hook,
)
from compact.runner import SessionRunner

repo = Path.cwd()
manager = CompactManager(CompactConfig(storage=FileStorage("./.compact/archive")))
options = ClaudeAgentOptions(
    cwd=repo,
    hooks={
        "PreCompact": [HookMatcher(hooks=[make_precompact_hook(repo, manager)])],
        "SessionStart": [HookMatcher(hooks=[make_session_start_hook(manager)])],
    },
)


async def main(task: str) -> None:
    run = await SessionRunner(lambda: ClaudeSDKClient(options)).run(task)
    print(run.result)
    print(f"{run.continuation_count} restarts; archives are in {get_repo_runs_dir(repo)}.")


asyncio.run(main(" ".join(sys.argv[1:]) or "Say hello."))
