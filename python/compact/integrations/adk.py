"""Integration with Google's ADK: ``App(..., plugins=[CompactPlugin(manager)])``.

The session's events are not changed; only what is sent to the model is smaller. Each agent of a session has
its own conversation, named by app, user, session and agent: ``shop/ann/7/clerk``. An event with
``custom_metadata={"protected": True}`` stays in the context word for word.
"""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content

from ..identity import join_session_name
from ..manager import CompactManager
from ..wire import Codec, read_flags

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
        """Replaces the contents of the request with the view to send."""
        config = llm_request.config
        name = _session_name(callback_context)
        if protected := self._protected_contents(callback_context.session.events):
            await asyncio.to_thread(self.manager.protect, name, protected, codec=CONTENTS)
        prepared = await self.manager.atry_prepare(
            name,
            llm_request.contents,
            system=_instructions(config),
            tools=(config.tools or None) if config else None,
            codec=CONTENTS,
        )
        if prepared is not None:
            llm_request.contents = prepared.messages
            if prepared.system is not None:
                config.system_instruction = _to_instruction(config.system_instruction, prepared.system)
        return None

    def _protected_contents(self, events: Any) -> list[Any]:
        """Returns the contents whose events are flagged; a content itself cannot carry the flag."""
        flag = self.manager.config.policy.protected_flag
        flagged = (event for event in events or [] if read_flags(event.custom_metadata).get(flag))
        return [event.content for event in flagged if event.content]


def _session_name(context: Any) -> str:
    session = context.session
    return join_session_name(session.app_name, session.user_id, session.id, context.agent_name)


def _to_instruction(before: Any, system: Any) -> Any:
    """Returns a system prompt of the engine's as the kind that the request had: a text, or a content."""
    if before is None or isinstance(before, str):
        return "\n\n".join(part["text"] for part in system["parts"] if part.get("text"))
    return Content.model_validate(system)


def _instructions(config: Any) -> Any:
    """Returns the instructions as they stand in the provider's request body."""
    instruction = getattr(config, "system_instruction", None)
    if isinstance(instruction, str):
        return {"parts": [{"text": instruction}]}
    return instruction
