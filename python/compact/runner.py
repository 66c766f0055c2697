"""Restarts sessions of the Claude Agent SDK from checkpoints: a full context ends a session, not its task.

When the window fills, the session is interrupted while no tool is running, the agent is asked for a
checkpoint, and a new session continues from it. The engine writes the request, reads the answer, adds what it
left out and builds a checkpoint if there is none, as in ``compactctl run``; this module only runs the
sessions. Nothing is written to disk, and nothing that the process holds (locks, files, a dirty tree) changes.
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
    "TRACKING_DISABLED",
    "ContextPressureError",
    "ContextUsage",
    "SessionRun",
    "SessionRunner",
    "build_continuation_prompt",
    "checkpoint_request",
    "extract_checkpoint",
]

logger = logging.getLogger(__name__)


#: The ``input_tokens`` of a usage that is not tracked.
TRACKING_DISABLED = -1


@dataclass
class ContextUsage:
    """The tokens of the current context. Tokens read from a cache are counted and never part of the pressure.

    A :class:`SessionRunner` sets the numbers to those of the last request, which is the whole context. Where a
    report covers one turn only, :meth:`add_turn` adds it to the totals.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0

    def add_turn(self, *, input_tokens: int, output_tokens: int, cache_read_tokens: int = 0) -> None:
        """Adds the tokens of one turn; numbers below zero count as zero. Does nothing while tracking is off."""
        if not self.is_tracking_enabled():
            return
        self.input_tokens += max(0, input_tokens)
        self.output_tokens += max(0, output_tokens)
        self.cache_read_tokens += max(0, cache_read_tokens)

    def reset(self) -> None:
        """Counts from zero, for a new context; tracking that is off stays off."""
        self.input_tokens = 0 if self.is_tracking_enabled() else TRACKING_DISABLED
        self.output_tokens = self.cache_read_tokens = 0

    def disable_tracking(self) -> None:
        """Turns tracking off: the pressure is zero from now on."""
        self.input_tokens = TRACKING_DISABLED

    def is_tracking_enabled(self) -> bool:
        """Returns whether usage is tracked."""
        return self.input_tokens != TRACKING_DISABLED

    def pressure_ratio(self, limit: int = 200_000) -> float:
        """Returns the share of ``limit`` tokens that is used; 0 without a limit or without usage."""
        if limit <= 0 or not self.is_tracking_enabled():
            return 0.0
        return (max(0, self.input_tokens) + max(0, self.output_tokens)) / limit


class ContextPressureError(Exception):
    """Raised when the context reaches the threshold and a checkpoint is due."""

    def __init__(self, session_id: str, usage: ContextUsage, limit: int = 200_000) -> None:
        self.session_id = session_id
        self.usage = usage
        self.pressure_ratio = usage.pressure_ratio(limit)
        super().__init__(f"Context pressure: {self.pressure_ratio:.1%}")

    @property
    def input_tokens(self) -> int:
        """The input tokens of the context."""
        return self.usage.input_tokens

    @property
    def output_tokens(self) -> int:
        """The output tokens of the context."""
        return self.usage.output_tokens

    @property
    def cache_read_tokens(self) -> int:
        """The tokens that were read from a cache."""
        return self.usage.cache_read_tokens


def checkpoint_request() -> str:
    """Returns the prompt that asks a full session for a checkpoint."""
    return _native.checkpoint_request()


def extract_checkpoint(text: str) -> str:
    """Returns the text between the checkpoint tags, or the whole text if there are none."""
    return _native.extract_checkpoint(text) or text.strip()


def build_continuation_prompt(checkpoint: str) -> str:
    """Returns the first prompt of a session that continues from a checkpoint."""
    return _native.continuation_prompt(checkpoint)


@dataclass
class SessionRun:
    """The outcome of a task."""

    result: str | None
    continuation_count: int
    #: The first prompt of each new session: the task, the checkpoint, and what that left out.
    prompts: list[str] = field(default_factory=list)
    #: The origin of each checkpoint: ``tagged``, ``raw``, or ``built`` if the agent gave none.
    sources: list[str] = field(default_factory=list)
    usage: ContextUsage = field(default_factory=ContextUsage)


class SessionRunner:
    """Runs a task in as many sessions as it takes.

    ``client`` makes a client like ``ClaudeSDKClient``: an async context manager with ``query``,
    ``receive_response`` and ``interrupt``. ``on_message`` is called with every message of the task, except
    those of checkpoints. ``context_restart_threshold`` is a share of ``context_limit`` tokens; above 1 a session is
    never restarted.
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
        """Runs until a session ends below the threshold, or ``max_restarts`` is reached."""
        run = SessionRun(None, 0)
        task = _native.CarriedTask(prompt, self.context_limit)
        session = _SessionLog([{"role": "user", "content": prompt}])
        while True:
            async with self.client() as client:
                try:
                    await self._run_session(client, prompt, session, run)
                    return run
                except ContextPressureError as pressure:
                    if run.continuation_count == self.max_restarts:
                        return run
                    task.add_messages(dumps(session.messages))
                    prompt, source = task.continuation(await self._get_checkpoint(client))
                    run.continuation_count += 1
                    run.prompts.append(prompt)
                    run.sources.append(source)
                    logger.info(
                        "Session %s: context restart #%d at %.1f%%",
                        pressure.session_id,
                        run.continuation_count,
                        100 * pressure.pressure_ratio,
                    )
            # Our own prompts are left out, or the next checkpoint would quote them as the user's words.
            session = _SessionLog([])

    async def _run_session(
        self, client: Any, prompt: str, session: _SessionLog, run: SessionRun
    ) -> None:
        """Sends one query and reads its answer to the end; interrupts it once the context is full."""
        run.usage = session.usage
        await client.query(prompt)
        async for message in _responses(client):
            if self.on_message is not None:
                self.on_message(message)
            if session.add_message(message) and self._is_full(session.usage) and not session.cut:
                session.cut = True
                await client.interrupt()
        run.result = session.result
        if session.usage == ContextUsage():
            logger.warning(
                "Session %s: SDK did not provide token usage, context tracking disabled", session.id
            )
            session.usage.disable_tracking()
        if self._is_full(session.usage):
            raise ContextPressureError(session.id, session.usage, self.context_limit)

    def _is_full(self, usage: ContextUsage) -> bool:
        threshold = self.context_restart_threshold
        return threshold <= 1 and usage.pressure_ratio(self.context_limit) >= threshold

    async def _get_checkpoint(self, client: Any) -> str | None:
        """Asks the full session for a checkpoint; ``None`` if it fails or takes too long."""
        try:
            return await asyncio.wait_for(_request_checkpoint(client), self.checkpoint_seconds)
        except Exception as error:
            logger.warning("no checkpoint: %s", error or type(error).__name__)
            return None


@dataclass
class _SessionLog:
    """The messages of a session in Anthropic's format, and its usage."""

    messages: list[dict[str, Any]]
    usage: ContextUsage = field(default_factory=ContextUsage)
    id: str = "unknown"
    result: str | None = None
    cut: bool = False
    _open_calls: set[str] = field(default_factory=set)

    def add_message(self, message: Any) -> bool:
        """Adds a message; true if the session may be interrupted now: a tool has answered and none is running."""
        if hasattr(message, "total_cost_usd"):
            self.id, self.result = str(message.session_id), message.result
        if getattr(message, "parent_tool_use_id", None):
            return False
        _update_usage(self.usage, message)
        blocks = [data for block in _blocks(message) if (data := _dump_block(block))]
        if not blocks:
            return False
        is_answer = hasattr(message, "model")
        self.messages.append({"role": "assistant" if is_answer else "user", "content": blocks})
        self._open_calls |= {block["id"] for block in blocks if block["type"] == "tool_use"}
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        self._open_calls -= results
        return bool(results) and not self._open_calls


async def _request_checkpoint(client: Any) -> str:
    await client.query(checkpoint_request())
    words = [
        block["text"]
        async for message in _responses(client)
        if hasattr(message, "model")
        for block in map(_dump_block, _blocks(message))
        if block and block["type"] == "text"
    ]
    return "".join(words)


async def _responses(client: Any) -> AsyncIterator[Any]:
    async for message in client.receive_response():
        yield message


def _blocks(message: Any) -> list[Any]:
    content = getattr(message, "content", None)
    return content if isinstance(content, list) else []


def _dump_block(block: Any) -> dict[str, Any] | None:
    """Returns an SDK block in Anthropic's format; ``None`` for reasoning."""
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


def _update_usage(usage: ContextUsage, message: Any) -> None:
    """Updates the usage from a report about one request; sums over requests are not a context size."""
    report = getattr(message, "usage", None)
    if not report or not hasattr(message, "model"):
        return
    read = _native.read_usage("claude-agent-message", json.dumps({"usage": report}))
    if read is not None:
        counts = json.loads(read)
        usage.input_tokens = counts["prompt_tokens"]
        usage.output_tokens = counts["output_tokens"]
        usage.cache_read_tokens = counts["cache_read_tokens"]
