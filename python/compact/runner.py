"""Checkpoint-restart over the Claude Agent SDK: a full context is the end of a session, not of a task.

When the window fills, the turn is ended where no tool is at work, the agent is asked for a checkpoint,
and a new session goes on from it. What is asked, what an answer is worth, what it left out and what an
agent that gives none would have said is the engine's, as in ``compactctl run``; only the sessions are
here. Nothing is written to disk; what the process holds (locks, files, a dirty tree) stays.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .wire import dumps

__all__ = [
    "ContextPressureError",
    "ContextUsage",
    "SessionRun",
    "SessionRunner",
    "build_continuation_prompt",
    "checkpoint_request",
    "extract_checkpoint",
]

logger = logging.getLogger(__name__)


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


def checkpoint_request() -> str:
    """What a full session is asked."""
    return _native.checkpoint_request()


def extract_checkpoint(text: str) -> str:
    """The words between the tags, however they are wrapped; all of them where there are none."""
    return _native.extract_checkpoint(text) or text.strip()


def build_continuation_prompt(checkpoint: str) -> str:
    """What a session begins with that goes on from a checkpoint."""
    return _native.continuation_prompt(checkpoint)


@dataclass
class SessionRun:
    """What came of a task."""

    result: str | None
    continuation_count: int
    #: What each new session was told: the task, the checkpoint, and what that left out.
    prompts: list[str] = field(default_factory=list)
    #: Where each of them is from: ``tagged``, ``raw``, or ``built`` when the agent gave none.
    sources: list[str] = field(default_factory=list)
    usage: ContextUsage = field(default_factory=ContextUsage)


class SessionRunner:
    """Runs a task through as many sessions as it takes.

    ``client`` makes a client like ``ClaudeSDKClient``: an async context manager with ``query``,
    ``receive_response`` and ``interrupt``. ``on_message`` sees every message of the task, those of
    checkpoints excepted.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        *,
        context_restart_threshold: float = 0.90,
        context_limit: int = 200_000,
        max_restarts: int | None = None,
        checkpoint_seconds: float = 120.0,
        on_message: Callable[[Any], None] | None = None,
    ) -> None:
        self.client = client
        self.context_restart_threshold = context_restart_threshold
        self.context_limit = context_limit
        self.max_restarts = max_restarts
        self.checkpoint_seconds = checkpoint_seconds
        self.on_message = on_message

    async def run(self, prompt: str) -> SessionRun:
        """Runs until a session ends below the threshold, or the restarts are used up."""
        run = SessionRun(None, 0)
        task = _native.Carried(prompt, self.context_limit)
        session = _Session([{"role": "user", "content": prompt}])
        while True:
            async with self.client() as client:
                try:
                    await self._session(client, prompt, session, run)
                    return run
                except ContextPressureError as pressure:
                    if run.continuation_count == self.max_restarts:
                        return run
                    task.add_messages(dumps(session.said))
                    prompt, source = task.continuation(await self._checkpoint(client))
                    run.continuation_count += 1
                    run.prompts.append(prompt)
                    run.sources.append(source)
                    logger.info(
                        "Session %s: context restart #%d at %.1f%%",
                        pressure.session_id,
                        run.continuation_count,
                        100 * pressure.usage.pressure_ratio(self.context_limit),
                    )
            # Our own prompts are not part of what was said, or a model's words would come back as
            # the user's.
            session = _Session([])

    async def _session(
        self, client: Any, prompt: str, session: _Session, run: SessionRun
    ) -> None:
        """One query, read to its end: nothing is injected into its stream, but a full one is cut."""
        run.usage = session.usage
        await client.query(prompt)
        async for message in _messages(client):
            if self.on_message is not None:
                self.on_message(message)
            if session.take(message) and self._is_full(session.usage) and not session.cut:
                session.cut = True
                await client.interrupt()
        run.result = session.result
        if session.usage == ContextUsage():
            logger.warning(
                "Session %s: SDK did not provide token usage, context tracking disabled", session.id
            )
            session.usage.input_tokens = -1
        if self._is_full(session.usage):
            raise ContextPressureError(session.id, session.usage)

    def _is_full(self, usage: ContextUsage) -> bool:
        return usage.pressure_ratio(self.context_limit) >= self.context_restart_threshold

    async def _checkpoint(self, client: Any) -> str | None:
        """Asks the session that is full for what the next one must know; it may fail to answer."""
        try:
            return await asyncio.wait_for(_answer(client), self.checkpoint_seconds)
        except Exception as error:
            logger.warning("no checkpoint: %s", error or type(error).__name__)
            return None


@dataclass
class _Session:
    """What a session said, as Anthropic's messages, and what it counted."""

    said: list[dict[str, Any]]
    usage: ContextUsage = field(default_factory=ContextUsage)
    id: str = "unknown"
    result: str | None = None
    cut: bool = False
    _open: set[str] = field(default_factory=set)

    def take(self, message: Any) -> bool:
        """Takes a message; true where the session may be cut: a tool has answered and none is at work."""
        if hasattr(message, "total_cost_usd"):
            self.id, self.result = str(message.session_id), message.result
        if getattr(message, "parent_tool_use_id", None):
            return False
        _count(self.usage, message)
        blocks = [data for block in _blocks(message) if (data := _block(block))]
        if not blocks:
            return False
        is_answer = hasattr(message, "model")
        self.said.append({"role": "assistant" if is_answer else "user", "content": blocks})
        self._open |= {block["id"] for block in blocks if block["type"] == "tool_use"}
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        self._open -= results
        return bool(results) and not self._open


async def _answer(client: Any) -> str:
    await client.query(checkpoint_request())
    words = [
        block["text"]
        async for message in _messages(client)
        if hasattr(message, "model")
        for block in map(_block, _blocks(message))
        if block and block["type"] == "text"
    ]
    return "".join(words)


async def _messages(client: Any) -> AsyncIterator[Any]:
    async for message in client.receive_response():
        yield message


def _blocks(message: Any) -> list[Any]:
    content = getattr(message, "content", None)
    return content if isinstance(content, list) else []


def _block(block: Any) -> dict[str, Any] | None:
    """A block of the SDK's as Anthropic has it; reasoning is left out."""
    if hasattr(block, "tool_use_id"):
        content = block.content if block.content is not None else ""
        return {
            "type": "tool_result",
            "tool_use_id": block.tool_use_id,
            "content": content,
            "is_error": bool(block.is_error),
        }
    if hasattr(block, "input"):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if hasattr(block, "text"):
        return {"type": "text", "text": block.text}
    return None


def _count(usage: ContextUsage, message: Any) -> None:
    """Takes a report about one request; sums over requests are no context size."""
    report = getattr(message, "usage", None)
    if not report or not hasattr(message, "model"):
        return
    read = _native.usage("claude-agent-message", json.dumps({"usage": report}))
    if read is not None:
        counts = json.loads(read)
        usage.input_tokens = counts["prompt_tokens"]
        usage.output_tokens = counts["output_tokens"]
        usage.cache_read_tokens = counts["cache_read_tokens"]
