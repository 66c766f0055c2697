"""Who writes the summary: a model of yours, asked through one method."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from .message import Message

__all__ = ["Summarizer"]


@runtime_checkable
class Summarizer(Protocol):
    """Asked with the instructions and the (redacted) part that is to be summarized.

    It is held to the same check as our own summary: what its words lose of names, numbers and
    decisions is put back. It may be a coroutine function. When it raises, the policy's
    ``on_summary_failure`` decides, by default for the deterministic summary, with an event.
    """

    def summarize(
        self, messages: Sequence[Message], style: str, keep_keys: Sequence[str]
    ) -> Message | Awaitable[Message]:
        """A summary of ``messages``; what is marked by ``keep_keys`` is kept beside it anyway."""
        ...


def asking(
    summarizer: Summarizer, style: str, keep_keys: Sequence[str]
) -> Callable[[str, str, int], str]:
    """The summarizer as the engine calls it: ``(system, prompt, limit) -> text``."""

    def ask(system: str, prompt: str, limit: int) -> str:
        instructions = Message("system", system, {"max_tokens": limit})
        question = Message("user", prompt)
        answer: Any = summarizer.summarize([instructions, question], style, keep_keys)
        if hasattr(answer, "__await__"):
            import asyncio

            answer = asyncio.run(_awaited(answer))
        return cast(Message, answer).content

    return ask


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer
