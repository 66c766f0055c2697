"""Integration with the Anthropic client: ``Anthropic(middleware=[CompactMiddleware(manager)])``.

Every request is kept inside the window. One that the provider still refuses as too long is made smaller and
sent once more. The caller's own list of messages is never changed. The usage of a response that is not
streamed is reported to the manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from anthropic import Middleware

from ..manager import CompactManager, Prepared
from ..wire import Codec
from .usage import observe_body

if TYPE_CHECKING:
    from anthropic import APIRequest

__all__ = ["CompactMiddleware"]

MESSAGES = Codec("anthropic")

#: Members of a body that decide which of the provider's rules apply.
_RULE_MEMBERS = ("thinking", "max_tokens", "tool_choice")


class CompactMiddleware(Middleware):
    """Keeps what the client sends to ``/v1/messages`` inside the window.

    ``session_id`` is the name of the conversation, or a function that returns it for a request body. Without
    one the conversation is recognised by its history; ``metadata.user_id`` names a user, who may have many.
    """

    def __init__(
        self,
        manager: CompactManager,
        session_id: str | Callable[[Mapping[str, Any]], str | None] | None = None,
    ) -> None:
        self.manager = manager
        self.session_id = session_id

    def handle(self, request: APIRequest, call_next: Any) -> Any:
        """Handles a request of the synchronous client."""
        body = _conversation_body(request)
        if body is None:
            return call_next(request)
        name = self._session_name(body)
        prepared = self.manager.try_prepare(name, body["messages"], **_request_options(body))
        response = call_next(_with_prepared(request, body, prepared))
        if response.status_code in (400, 413):
            smaller = self._shrink(name, body, response.status_code, response.text())
            if smaller is None:
                return response
            prepared, response = smaller, call_next(_with_prepared(request, body, smaller))
        if _has_whole_usage(body, response):
            observe_body(self.manager, prepared, response.text(), "anthropic")
        return response

    async def handle_async(self, request: APIRequest, call_next: Any) -> Any:
        """Handles a request of the asynchronous client."""
        body = _conversation_body(request)
        if body is None:
            return await call_next(request)
        name = self._session_name(body)
        prepared = await self.manager.atry_prepare(name, body["messages"], **_request_options(body))
        response = await call_next(_with_prepared(request, body, prepared))
        if response.status_code in (400, 413):
            refusal = (response.status_code, await response.text())
            smaller = await asyncio.to_thread(self._shrink, name, body, *refusal)
            if smaller is None:
                return response
            prepared, response = smaller, await call_next(_with_prepared(request, body, smaller))
        if _has_whole_usage(body, response):
            text = await response.text()
            await asyncio.to_thread(observe_body, self.manager, prepared, text, "anthropic")
        return response

    def _shrink(
        self, name: str | None, body: dict[str, Any], status: int, text: str
    ) -> Prepared | None:
        return self.manager.shrink(name, body["messages"], status, text, **_request_options(body))

    def _session_name(self, body: Mapping[str, Any]) -> str | None:
        return self.session_id(body) if callable(self.session_id) else self.session_id


def _conversation_body(request: APIRequest) -> dict[str, Any] | None:
    """Returns the body of a request that carries a conversation; ``None`` for any other."""
    path = str(request.url).partition("?")[0]
    body = request.json
    is_conversation = request.method.upper() == "POST" and path.endswith("/v1/messages")
    if not is_conversation or not isinstance(body, Mapping) or not body.get("messages"):
        return None
    return {**body, "messages": list(body["messages"])}


def _has_whole_usage(body: Mapping[str, Any], response: Any) -> bool:
    """Returns whether the usage can be read without delaying a stream."""
    return response.status_code == 200 and not body.get("stream")


def _request_options(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "system": body.get("system"),
        "tools": body.get("tools"),
        "codec": MESSAGES,
        "more": {key: body[key] for key in _RULE_MEMBERS if key in body},
    }


def _with_prepared(request: APIRequest, body: dict[str, Any], prepared: Prepared | None) -> APIRequest:
    if prepared is None:
        return request
    changed = {**body, "messages": prepared.messages}
    if prepared.system is not None:
        changed["system"] = prepared.system
    return request.copy(body=changed)
