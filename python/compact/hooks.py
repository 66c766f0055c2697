"""Hooks for agents: ``middleware`` for runners of any kind, and those for the OpenAI Agents SDK.

``compact_filter``, ``CompactRunHooks`` and ``CompactTracing`` need the SDK, which is imported when one of them is
asked for. ``CompactSession`` (of ``compact.session``) compacts the record of one of its sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .manager import CompactManager
from .session import CompactSession

if TYPE_CHECKING:
    from .integrations.agents import CompactRunHooks, CompactTracing, compact_filter

__all__ = [
    "CompactRunHooks",
    "CompactSession",
    "CompactTracing",
    "compact_filter",
    "middleware",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .integrations import agents
    except ModuleNotFoundError as error:
        if error.name != "agents":
            raise
        raise ImportError(
            f"{name} needs the OpenAI Agents SDK: pip install 'compact-context[agents]'"
        ) from error
    return getattr(agents, name)


def middleware(manager: CompactManager) -> dict[str, Callable[[Any], None]]:
    """Returns hooks for runners of any kind: ``before_run``, ``before_model_call``, ``after_model_call``.

    The context that a hook is called with must have ``messages``; ``session_id``, ``system``, ``tools`` and
    ``usage`` are used if it has them. ``messages``, and ``system`` if the summary is in it, are replaced.
    """

    def name(ctx: Any) -> str | None:
        return getattr(ctx, "session_id", None)

    def before_model_call(ctx: Any) -> None:
        tools = getattr(ctx, "tools", None)
        if not hasattr(ctx, "system"):
            ctx.messages = manager.preflight(name(ctx), ctx.messages, tools=tools)
            return
        prepared = manager.prepare(name(ctx), ctx.messages, system=ctx.system, tools=tools)
        ctx.messages = prepared.messages
        if prepared.system is not None:
            ctx.system = prepared.system

    def after_model_call(ctx: Any) -> None:
        session_id, usage = name(ctx), getattr(ctx, "usage", None)
        if usage and session_id:
            manager.observe(session_id, usage, getattr(ctx, "usage_source", "openai-chat"))

    return {
        "before_run": before_model_call,
        "before_model_call": before_model_call,
        "after_model_call": after_model_call,
    }
