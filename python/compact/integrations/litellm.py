"""Integration with LiteLLM: ``litellm.callbacks = [CompactLogger(manager)]``, in a program or a proxy.

LiteLLM calls such hooks on its asynchronous paths only (``acompletion``, ``Router``, the proxy); for
``completion`` call ``manager.preflight`` yourself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from ..identity import join_session_name
from ..manager import CompactManager
from ..wire import Codec

__all__ = ["CompactLogger"]

CHAT = Codec("openai-chat")

#: The metadata key of a request that was compacted already.
_DONE = "compact_done"


class CompactLogger(CustomLogger):
    """Rewrites ``messages`` before each deployment is called.

    A session is named by ``metadata.session_id`` or ``litellm_session_id``; in the proxy with the hash of the
    caller's key before it: ``KEY/SESSION``. Without a name it is recognised by its history; ``user`` names a
    user, who may have many.
    """

    def __init__(self, manager: CompactManager) -> None:
        super().__init__()
        self.manager = manager

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Compacts the request of a program, unless the proxy did."""
        is_done = (kwargs.get("metadata") or {}).get(_DONE)
        return kwargs if is_done else await self._compact_request(kwargs)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Compacts a request to the proxy and marks it, since the proxy calls the other hook as well."""
        compacted = await self._compact_request(data)
        if compacted is not data:
            compacted["metadata"] = {**(data.get("metadata") or {}), _DONE: True}
        return compacted

    async def _compact_request(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = request.get("messages")
        if not isinstance(messages, list) or not messages:
            return request
        prepared = await self.manager.atry_prepare(
            _session_name(request), messages, tools=request.get("tools"), codec=CHAT
        )
        return request if prepared is None else {**request, "messages": prepared.messages}


def _session_name(request: Mapping[str, Any]) -> str | None:
    metadata = {**(request.get("litellm_metadata") or {}), **(request.get("metadata") or {})}
    given = metadata.get("session_id") or request.get("litellm_session_id")
    if not given:
        return None
    # Two customers of a proxy may use the same session name.
    key = metadata.get("user_api_key_hash") or metadata.get("user_api_key")
    return join_session_name(key, given) if key else str(given)
