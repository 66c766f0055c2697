"""Integration with the Claude Agent SDK, which keeps and compacts its history itself.

``make_precompact_hook`` archives the transcript before the SDK compacts it, ``make_session_start_hook``
reminds the model afterwards, ``CompactSessionStore`` gives a resumed session a smaller history, and
``context_tokens`` returns the size of a context.

>>> options = ClaudeAgentOptions(
...     hooks={
...         "PreCompact": [HookMatcher(hooks=[make_precompact_hook(repo, manager)])],
...         "SessionStart": [HookMatcher(hooks=[make_session_start_hook(manager)])],
...     }
... )  # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from .. import _native
from ..events import logger as events
from ..exceptions import CompactError, NotFound
from ..identity import join_session_name
from ..manager import CompactManager
from ..wire import dumps

__all__ = [
    "CompactSessionStore",
    "context_tokens",
    "get_repo_runs_dir",
    "make_precompact_hook",
    "make_session_start_hook",
]

logger = logging.getLogger(__name__)

Hook = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


def get_repo_runs_dir(repo_path: str | os.PathLike[str]) -> Path:
    """Returns the folder where ``compactctl hook`` archives transcripts of a repository."""
    return _native.hook_folder(os.path.abspath(repo_path))


def make_precompact_hook(
    repo_path: str | os.PathLike[str], manager: CompactManager | None = None
) -> Hook:
    """Returns a PreCompact hook that archives the transcript. It never blocks a compaction.

    It archives what ``compactctl hook`` would: whole or not at all, and redacted by the manager's
    configuration, or by the user's if no manager is given. A manager also reads the transcript, so that it
    can remember it afterwards. Errors are logged.
    """
    repository = os.path.abspath(repo_path)
    archive = _native.archive_transcript if manager is None else manager.archive_transcript

    async def precompact_hook(hook_input: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        session_id = hook_input.get("session_id") or "unknown"
        source = hook_input.get("transcript_path") or None
        trigger = hook_input.get("trigger", "unknown")
        try:
            dest, size = await asyncio.to_thread(archive, repository, session_id, source)
        except NotFound as error:
            logger.warning("PreCompact: %s", error)
            return {}
        except CompactError as error:
            logger.error("PreCompact: %s", error)
            return {}
        logger.info(
            "PreCompact: archived transcript (trigger=%r) to %s (%.1f KB)",
            *(trigger, dest, size / 1024),
        )
        if manager is not None and source and session_id != "unknown":
            await asyncio.to_thread(_remember_transcript, manager, session_id, Path(source))
        return {}

    return precompact_hook


def _remember_transcript(manager: CompactManager, session_id: str, transcript: Path) -> None:
    """Lets the manager compact a transcript, so that it remembers it; errors are logged."""
    try:
        text = transcript.read_text(encoding="utf-8")
        manager.rewrite(session_id, text, "claude-code", note="precompact")
    except (CompactError, OSError, UnicodeError) as error:
        logger.error("PreCompact: failed to read transcript: %s", error)


def make_session_start_hook(manager: CompactManager, session_id: str | None = None) -> Hook:
    """Returns a SessionStart hook that adds what the manager remembers to the context after a compaction.

    The manager learns about the session from :func:`make_precompact_hook`. If it knows nothing, nothing is
    added.
    """

    async def session_start_hook(hook_input: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if hook_input.get("source") != "compact":
            return {}
        name = session_id or hook_input.get("session_id")
        if not name:
            return {}
        try:
            memory = await asyncio.to_thread(manager.remember, name)
        except CompactError as error:
            events.info("nothing is remembered about session %s: %s", name, error)
            return {}
        context = {"hookEventName": "SessionStart", "additionalContext": str(memory)}
        return {"hookSpecificOutput": context}

    return session_start_hook


class CompactSessionStore:
    """A ``SessionStore`` that returns a smaller history when a session is resumed.

    ``underlying`` stores the transcript lines; without one they are kept in memory. Lines are only ever
    appended. The manager's name for a session is its project and id: ``PROJECT/SESSION``.
    """

    def __init__(self, manager: CompactManager, underlying: Any = None) -> None:
        self.manager = manager
        self.underlying = underlying
        self._lines: dict[str, list[Any]] = {}

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Appends lines of the transcript."""
        if self.underlying is not None:
            await self.underlying.append(key, entries)
        else:
            self._lines.setdefault(dumps(key), []).extend(entries)

    async def load(self, key: Any) -> list[Any] | None:
        """Returns the lines; if they outgrew the window, with a boundary and a smaller view behind them."""
        lines: list[Any] | None = self._lines.get(dumps(key))
        if self.underlying is not None:
            lines = await self.underlying.load(key)
        if not lines or key.get("subpath"):
            return lines
        parts = (key[part] for part in ("project_key", "session_id") if part in key)
        return self._compact_lines(join_session_name(*parts), lines)

    def _compact_lines(self, session_id: str, lines: list[Any]) -> list[Any]:
        source = "".join(json.dumps(line) + "\n" for line in lines)
        try:
            made = self.manager.rewrite(session_id, source, "claude-code")
        except CompactError as error:
            events.warning("session %s is resumed unchanged: %s", session_id, error)
            return lines
        if made is None:
            return lines
        return [json.loads(line) for line in made[0].splitlines() if line.strip()]


def context_tokens(messages: Iterable[Any]) -> int | None:
    """Returns the size of the context in tokens after these messages; ``None`` if none was reported.

    Only ``AssistantMessage.usage`` is about one request. ``ResultMessage.usage`` is the sum over all
    requests of a query and ``model_usage`` over the session, so neither is a context size.
    """
    size = None
    for message in messages:
        report = getattr(message, "usage", None)
        is_assistant = hasattr(message, "content") and hasattr(message, "model")
        if not report or not is_assistant or getattr(message, "parent_tool_use_id", None):
            continue
        read = _native.read_usage("claude-agent-message", dumps({"usage": report}))
        if read is not None:
            size = int(json.loads(read)["prompt_tokens"])
    return size
