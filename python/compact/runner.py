"""Checkpoint-restart over the Claude Agent SDK: a full context is the end of a session, not of a task.

When a query fills the window, the agent is asked for a checkpoint, and a new session goes on from it.
Nothing is written to disk and nobody waits; what the process holds (locks, files, a dirty tree) stays.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from . import _native

__all__ = [
    "ContextPressureError",
    "ContextUsage",
    "SessionRun",
    "SessionRunner",
    "build_continuation_prompt",
    "extract_checkpoint",
]

logger = logging.getLogger(__name__)

CHECKPOINT_REQUEST = """\
CONTEXT LIMIT APPROACHING - CHECKPOINT REQUIRED

Output a checkpoint summary now:

<checkpoint>
## Goal
[1-2 sentence summary of the original task]

## Completed Work
[List each file modified and what changed]

## Remaining Tasks
[Ordered list of what still needs to be done]

## Do Not Redo
[Completed items that should not be repeated]

## Key Decisions
[Architectural choices or constraints for continuation]
</checkpoint>

After outputting this checkpoint, STOP.
"""

CONTINUATION = """\
CONTINUING FROM PREVIOUS SESSION

The previous session hit the context limit. Here is the state:

{checkpoint}

Continue from the remaining tasks. Do not repeat completed work.
"""


@dataclass
class ContextUsage:
    """What the last request counted; ``-1`` input tokens say that nothing is tracked."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0

    def pressure_ratio(self, limit: int = 200_000) -> float:
        """How full the window is; nothing is known of one without a limit, or without tracking."""
        if limit <= 0 or self.input_tokens < 0:
            return 0.0
        return (self.input_tokens + self.output_tokens) / limit


class ContextPressureError(Exception):
    """The context reached the threshold: time for a checkpoint."""

    def __init__(self, session_id: str, usage: ContextUsage) -> None:
        super().__init__(f"Context pressure: {usage.pressure_ratio():.1%}")
        self.session_id = session_id
        self.usage = usage


def extract_checkpoint(text: str) -> str:
    """The words between the tags, without a code block around them; all of them without tags."""
    found = re.search(r"<checkpoint>(.*?)</checkpoint>", text, re.DOTALL)
    inner = found.group(1) if found else text
    fenced = re.fullmatch(r"\s*```\w*\n(.*?)\n?```\s*", inner, re.DOTALL)
    return (fenced.group(1) if fenced else inner).strip()


def build_continuation_prompt(checkpoint: str) -> str:
    """What the next session begins with."""
    # Not `format`: a checkpoint may hold braces.
    return CONTINUATION.replace("{checkpoint}", checkpoint)


@dataclass
class SessionRun:
    """What came of a task."""

    result: str | None
    continuation_count: int
    checkpoints: list[str] = field(default_factory=list)
    usage: ContextUsage = field(default_factory=ContextUsage)


class SessionRunner:
    """Runs a task through as many sessions as it takes.

    ``client`` makes a client like ``ClaudeSDKClient``: an async context manager with ``query`` and
    ``receive_response``. ``on_message`` sees every message of the task, those of checkpoints excepted.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        *,
        context_restart_threshold: float = 0.90,
        context_limit: int = 200_000,
        max_restarts: int | None = None,
        on_message: Callable[[Any], None] | None = None,
    ) -> None:
        self.client = client
        self.context_restart_threshold = context_restart_threshold
        self.context_limit = context_limit
        self.max_restarts = max_restarts
        self.on_message = on_message

    async def run(self, prompt: str) -> SessionRun:
        """Runs until a session ends below the threshold, or the restarts are used up."""
        run = SessionRun(None, 0)
        while True:
            async with self.client() as client:
                try:
                    run.result = await self._session(client, prompt, run)
                    return run
                except ContextPressureError as pressure:
                    if run.continuation_count == self.max_restarts:
                        return run
                    checkpoint = await self._checkpoint(client)
                    run.continuation_count += 1
                    run.checkpoints.append(checkpoint)
                    logger.info(
                        "Session %s: context restart #%d at %.1f%%",
                        pressure.session_id,
                        run.continuation_count,
                        100 * pressure.usage.pressure_ratio(self.context_limit),
                    )
            prompt = build_continuation_prompt(checkpoint)

    async def _session(self, client: Any, prompt: str, run: SessionRun) -> str | None:
        """One query. The stream is read to its end first: nothing is injected into it."""
        run.usage = usage = ContextUsage()
        result: Any = None
        await client.query(prompt)
        async for message in _messages(client):
            if self.on_message is not None:
                self.on_message(message)
            _count(usage, message)
            result = message if hasattr(message, "total_cost_usd") else result
        run.result = getattr(result, "result", None)
        session = str(getattr(result, "session_id", "unknown"))
        if usage == ContextUsage():
            logger.warning(
                "Session %s: SDK did not provide token usage, context tracking disabled", session
            )
            usage.input_tokens = -1
        if usage.pressure_ratio(self.context_limit) >= self.context_restart_threshold:
            raise ContextPressureError(session, usage)
        return run.result

    async def _checkpoint(self, client: Any) -> str:
        """Asks the session that is full for what the next one must know."""
        await client.query(CHECKPOINT_REQUEST)
        words = [text async for message in _messages(client) for text in _texts(message)]
        return extract_checkpoint("".join(words))


async def _messages(client: Any) -> AsyncIterator[Any]:
    async for message in client.receive_response():
        yield message


def _texts(message: Any) -> list[str]:
    content = getattr(message, "content", None)
    if not isinstance(content, list) or not hasattr(message, "model"):
        return []
    return [block.text for block in content if hasattr(block, "text")]


def _count(usage: ContextUsage, message: Any) -> None:
    """Takes a report about one request; sums over requests are no context size."""
    import json

    report = getattr(message, "usage", None)
    if not report or not hasattr(message, "model"):
        return
    read = _native.usage("claude-agent-message", json.dumps({"usage": report}))
    if read is not None:
        counts = json.loads(read)
        usage.input_tokens = counts["prompt_tokens"]
        usage.output_tokens = counts["output_tokens"]
        usage.cache_read_tokens = counts["cache_read_tokens"]
