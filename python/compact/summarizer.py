"""The protocol for a model of your own that writes summaries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from .events import logger
from .message import Message

__all__ = ["MessagesToSummarize", "Summarizer"]


class MessagesToSummarize(list[Message]):
    """The messages that leave the view, redacted and in order, and our own prompt for them.

    ``meta["ordinal"]`` is the number by which a summary refers to a message. To ask a model in our words, send it
    ``system`` and ``prompt``, which contains the messages, and allow it ``max_tokens``.
    """

    def __init__(self, messages: Iterable[Message], *, system: str, prompt: str, max_tokens: int) -> None:
        super().__init__(messages)
        self.system = system
        self.prompt = prompt
        self.max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"<{len(self)} messages to summarize in {self.max_tokens:,} tokens>"


@runtime_checkable
class Summarizer(Protocol):
    """Writes a summary of messages.

    The summary is checked like our own: names, numbers and decisions that it lost are added again. An answer that
    is empty, refuses or is longer than what it summarizes is asked for once more, with the style ``brief``. If
    ``summarize`` raises, the reason is logged and the policy's ``on_summary_failure`` decides; by default the
    deterministic summary is used, and an event reports it.
    """

    def summarize(
        self, messages: MessagesToSummarize, style: str, keep_keys: Sequence[str]
    ) -> Message | str | Awaitable[Message | str]:
        """Returns a summary of ``messages``; it may be a coroutine function.

        A long conversation is summarized in several calls, a stretch each. Messages flagged with one of
        ``keep_keys`` are kept in any case and not among ``messages``.
        """
        ...


#: A message as the engine passes it: its ordinal, role, tool and text.
SourceMessage = tuple[int, str, "str | None", str]


def summarizer_callback(
    summarizer: Summarizer, keep_keys: Sequence[str]
) -> Callable[[list[SourceMessage], str, str, str, int], str]:
    """Wraps a summarizer as the engine calls it: ``(messages, style, system, prompt, max_tokens) -> text``."""
    name = type(summarizer).__name__

    def summarize(
        messages: list[SourceMessage], style: str, system: str, prompt: str, limit: int
    ) -> str:
        given = MessagesToSummarize(
            map(_to_message, messages), system=system, prompt=prompt, max_tokens=limit
        )
        try:
            answer: Any = summarizer.summarize(given, style, keep_keys)
            if hasattr(answer, "__await__"):
                answer = _run_to_end(answer)
            return _summary_text(answer)
        except Exception as error:
            # The engine only learns the class: the words may repeat the conversation.
            logger.warning("%s.summarize failed: %r", name, error, exc_info=True)
            raise

    return summarize


def _to_message(source: SourceMessage) -> Message:
    ordinal, role, tool, text = source
    meta: dict[str, Any] = {"ordinal": ordinal}
    if tool is not None:
        meta["tool_name"] = tool
    return Message(role, text, meta)  # type: ignore[arg-type]


def _summary_text(answer: Any) -> str:
    text = answer if isinstance(answer, str) else getattr(answer, "content", None)
    if not isinstance(text, str):
        raise TypeError(f"it must return a Message with a text, found {type(answer).__name__}")
    return text


def _run_to_end(answer: Awaitable[Any]) -> Any:
    """Awaits an answer in an event loop of its own, in another thread if this one has a running loop."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with ThreadPoolExecutor(1, "compact-summarizer") as pool:
        return pool.submit(asyncio.run, wait()).result()
