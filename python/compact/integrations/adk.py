"""Compact in Google's ADK: ``App(..., plugins=[CompactPlugin(manager)])``.

The session's events stay as they are; what goes to the model is smaller. What an agent sees of a session
is a conversation of its own, named by app, user, session and agent: ``shop/ann/7/clerk``.
An event whose ``custom_metadata`` says ``{"protected": True}`` stays before the model, word for word.
"""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin

from ..identity import scoped
from ..manager import CompactManager
from ..wire import Codec, flags

__all__ = ["CompactPlugin"]

CONTENTS = Codec("gemini")


class CompactPlugin(BasePlugin):
    """Keeps every model request of an app inside the window."""

    def __init__(self, manager: CompactManager, name: str = "compact") -> None:
        super().__init__(name=name)
        self.manager = manager

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Replaces the contents of the request by the smaller view."""
        config = llm_request.config
        name = _name(callback_context)
        if protected := self._protected(callback_context.session.events):
            await asyncio.to_thread(self.manager.protect, name, protected, codec=CONTENTS)
        prepared = await self.manager.atry_prepare(
            name,
            llm_request.contents,
            system=_system(config),
            tools=(config.tools or None) if config else None,
            codec=CONTENTS,
        )
        if prepared is not None:
            llm_request.contents = prepared.messages
        return None

    def _protected(self, events: Any) -> list[Any]:
        """What the session protects: a content has no room for the flag, its event has."""
        flag = self.manager.config.policy.protected_flag
        said = (event for event in events or [] if flags(event.custom_metadata).get(flag))
        return [event.content for event in said if event.content]


def _name(context: Any) -> str:
    session = context.session
    return scoped(session.app_name, session.user_id, session.id, context.agent_name)


def _system(config: Any) -> Any:
    """Instructions as the provider's body has them."""
    instruction = getattr(config, "system_instruction", None)
    if isinstance(instruction, str):
        return {"parts": [{"text": instruction}]}
    return instruction
