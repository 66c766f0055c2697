"""Compact in the Claude Agent SDK, which keeps its history to itself and compacts it by itself.

``make_precompact_hook`` archives the transcript before that happens, ``make_session_start_hook`` puts
what must not be forgotten before the model afterwards, ``CompactSessionStore`` replaces the history
of a session that is resumed, and ``context_tokens`` reads the one number that is the size of a context.

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
from ..identity import scoped
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
    """The folder of a repository's archives: one for each path, the one that ``compactctl hook`` uses."""
    return _native.shelf_folder(os.path.abspath(repo_path))


def make_precompact_hook(
    repo_path: str | os.PathLike[str], manager: CompactManager | None = None
) -> Hook:
    """A PreCompact hook that archives the transcript. It never blocks a compaction.

    What is archived is what ``compactctl hook`` would archive: whole or not at all, and redacted as the
    manager's configuration says, or without a manager the user's. A manager reads the transcript as
    well, so that it remembers afterwards what was said.
    """
    repository = os.path.abspath(repo_path)
    archive = _native.shelf_archive if manager is None else manager.archive_transcript

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
            await asyncio.to_thread(_learn, manager, session_id, Path(source))
        return {}

    return precompact_hook


def _learn(manager: CompactManager, session_id: str, transcript: Path) -> None:
    """Draws from a transcript what is to be remembered of it."""
    try:
        text = transcript.read_text(encoding="utf-8")
        manager.rewrite(session_id, text, "claude-code", note="precompact")
    except (CompactError, OSError, UnicodeError) as error:
        logger.error("PreCompact: failed to read transcript: %s", error)


def make_session_start_hook(manager: CompactManager, session_id: str | None = None) -> Hook:
    """A SessionStart hook: after a compaction, what the manager remembers goes before the model.

    The manager learns about the session from :func:`make_precompact_hook`; nothing is added when it
    knows nothing.
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
            events.info("nothing is remembered of %s: %s", name, error)
            return {}
        context = {"hookEventName": "SessionStart", "additionalContext": str(memory)}
        return {"hookSpecificOutput": context}

    return session_start_hook


class CompactSessionStore:
    """A ``SessionStore`` that hands out a smaller history when a session is resumed.

    ``underlying`` keeps the lines, in memory if none is given; they are only ever added to. The manager
    knows a session by its project and its id: ``PROJECT/SESSION``.
    """

    def __init__(self, manager: CompactManager, underlying: Any = None) -> None:
        self.manager = manager
        self.underlying = underlying
        self._lines: dict[str, list[Any]] = {}

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Takes lines of the transcript."""
        if self.underlying is not None:
            await self.underlying.append(key, entries)
        else:
            self._lines.setdefault(dumps(key), []).extend(entries)

    async def load(self, key: Any) -> list[Any] | None:
        """The lines, with a boundary and a smaller view behind them where they outgrew the window."""
        lines: list[Any] | None = self._lines.get(dumps(key))
        if self.underlying is not None:
            lines = await self.underlying.load(key)
        if not lines or key.get("subpath"):
            return lines
        parts = (key[part] for part in ("project_key", "session_id") if part in key)
        return self._compacted(scoped(*parts), lines)

    def _compacted(self, session_id: str, lines: list[Any]) -> list[Any]:
        source = "".join(json.dumps(line) + "\n" for line in lines)
        try:
            made = self.manager.rewrite(session_id, source, "claude-code")
        except CompactError as error:
            events.warning("session %s is resumed as it is: %s", session_id, error)
            return lines
        if made is None:
            return lines
        return [json.loads(line) for line in made[0].splitlines() if line.strip()]


def context_tokens(messages: Iterable[Any]) -> int | None:
    """The size of the context after these messages of a query; ``None`` when nothing was reported.

    Only ``AssistantMessage.usage`` is about one request. ``ResultMessage.usage`` is the sum over all
    requests of a query and ``model_usage`` that of the session: neither is the size of anything.
    """
    size = None
    for message in messages:
        report = getattr(message, "usage", None)
        is_assistant = hasattr(message, "content") and hasattr(message, "model")
        if not report or not is_assistant or getattr(message, "parent_tool_use_id", None):
            continue
        read = _native.usage("claude-agent-message", dumps({"usage": report}))
        if read is not None:
            size = int(json.loads(read)["prompt_tokens"])
    return size
