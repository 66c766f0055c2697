"""The protocol for a model of your own that writes summaries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from .message import Message

__all__ = ["Summarizer"]


@runtime_checkable
class Summarizer(Protocol):
    """Writes a summary, given the instructions and the redacted messages that are to be summarized.

    The summary is checked like our own: names, numbers and decisions that it lost are added again. If
    ``summarize`` raises, the policy's ``on_summary_failure`` decides; by default the deterministic summary is
    used, and an event reports it.
    """

    def summarize(
        self, messages: Sequence[Message], style: str, keep_keys: Sequence[str]
    ) -> Message | Awaitable[Message]:
        """Returns a summary of ``messages``; it may be a coroutine function.

        Messages flagged with one of ``keep_keys`` are kept in any case.
        """
        ...


def summarizer_callback(
    summarizer: Summarizer, style: str, keep_keys: Sequence[str]
) -> Callable[[str, str, int], str]:
    """Wraps a summarizer as the engine calls it: ``(system, prompt, max_tokens) -> text``."""

    def summarize(system: str, prompt: str, limit: int) -> str:
        instructions = Message("system", system, {"max_tokens": limit})
        question = Message("user", prompt)
        answer: Any = summarizer.summarize([instructions, question], style, keep_keys)
        if hasattr(answer, "__await__"):
            import asyncio

            answer = asyncio.run(_await_answer(answer))
        return cast(Message, answer).content

    return summarize


async def _await_answer(answer: Awaitable[Any]) -> Any:
    return await answer
