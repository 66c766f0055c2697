"""Integration with the OpenAI client through its transport: ``OpenAI(http_client=compact_client(manager))``.

Requests for chat completions and Responses are kept inside the window. One that the provider still refuses as
too long is made smaller and sent once more. A conversation without a ``session_id`` is recognised by its
history; ``user`` and ``prompt_cache_key`` are shared by many conversations. A request whose history is on
the server (``previous_response_id``, ``conversation``) is sent unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from ..manager import CompactManager
from ..wire import Codec, dumps

__all__ = [
    "CompactAsyncTransport",
    "CompactTransport",
    "compact_async_client",
    "compact_client",
]

_PATHS = {
    "/chat/completions": ("messages", Codec("openai-chat")),
    "/responses": ("input", Codec("openai-responses")),
}

SessionName = str | Callable[[Mapping[str, Any]], str | None] | None


class _Rewriter:
    """Finds the requests that carry a conversation and rewrites them, for both transports."""

    def __init__(self, manager: CompactManager, session_id: SessionName) -> None:
        self.manager = manager
        self.session_id = session_id

    def conversation_body(self, request: httpx2.Request, content: bytes) -> tuple[Any, str, Codec] | None:
        for path, (member, codec) in _PATHS.items():
            if request.method == "POST" and request.url.path.endswith(path):
                body = json.loads(content)
                kept = body.get("previous_response_id") or body.get("conversation")
                if isinstance(body.get(member), list) and not kept:
                    return body, member, codec
        return None

    def session_name(self, body: Mapping[str, Any]) -> str | None:
        return self.session_id(body) if callable(self.session_id) else self.session_id

    def prepare_request(self, request: httpx2.Request, content: bytes) -> httpx2.Request:
        found = self.conversation_body(request, content)
        if found is None:
            return _rebuild_request(request, content)
        body, member, codec = found
        made = self.manager.try_prepare(self.session_name(body), body[member], **_request_options(body, codec))
        if made is None:
            return _rebuild_request(request, content)
        changed = {**body, member: made.messages}
        if made.system is not None:
            changed["instructions"] = made.system
        return _rebuild_request(request, dumps(changed).encode())

    def shrink_request(
        self, request: httpx2.Request, content: bytes, status: int, answer: str
    ) -> httpx2.Request | None:
        found = self.conversation_body(request, content)
        if found is None:
            return None
        body, member, codec = found
        how = {key: value for key, value in _request_options(body, codec).items() if key != "more"}
        messages = self.manager.overflowed(self.session_name(body), body[member], status, answer, **how)
        if messages is None:
            return None
        return _rebuild_request(request, dumps({**body, member: messages}).encode())


def _request_options(body: Mapping[str, Any], codec: Codec) -> dict[str, Any]:
    return {
        "system": body.get("instructions"),
        "tools": body.get("tools"),
        "codec": codec,
        "more": {key: body[key] for key in ("store", "include") if key in body},
    }


def _rebuild_request(request: httpx2.Request, content: bytes) -> httpx2.Request:
    """Returns a copy of the request with this content and without the old length."""
    headers = [(k, v) for k, v in request.headers.multi_items() if k.lower() != "content-length"]
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=content,
        extensions=request.extensions,
    )


class CompactTransport(httpx2.BaseTransport):
    """A transport that rewrites requests for ``inner``, which is HTTP by default."""

    def __init__(
        self,
        manager: CompactManager,
        session_id: SessionName = None,
        inner: httpx2.BaseTransport | None = None,
    ) -> None:
        self._rewriter = _Rewriter(manager, session_id)
        self._inner = inner or httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request, rewritten if it must be."""
        content = request.read()
        response = self._inner.handle_request(self._rewriter.prepare_request(request, content))
        if response.status_code in (400, 413):
            answer = response.read().decode(errors="replace")
            again = self._rewriter.shrink_request(request, content, response.status_code, answer)
            if again is not None:
                response.close()
                return self._inner.handle_request(again)
        return response

    def close(self) -> None:
        """Closes the inner transport."""
        self._inner.close()


class CompactAsyncTransport(httpx2.AsyncBaseTransport):
    """A transport like :class:`CompactTransport` for the asynchronous client."""

    def __init__(
        self,
        manager: CompactManager,
        session_id: SessionName = None,
        inner: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._rewriter = _Rewriter(manager, session_id)
        self._inner = inner or httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request, rewritten if it must be."""
        import asyncio

        content = await request.aread()
        prepared = await asyncio.to_thread(self._rewriter.prepare_request, request, content)
        response = await self._inner.handle_async_request(prepared)
        if response.status_code in (400, 413):
            answer = (await response.aread()).decode(errors="replace")
            again = await asyncio.to_thread(
                self._rewriter.shrink_request, request, content, response.status_code, answer
            )
            if again is not None:
                await response.aclose()
                return await self._inner.handle_async_request(again)
        return response

    async def aclose(self) -> None:
        """Closes the inner transport."""
        await self._inner.aclose()


def compact_client(manager: CompactManager, session_id: SessionName = None) -> httpx2.Client:
    """Returns a client for ``OpenAI(http_client=…)``."""
    return httpx2.Client(transport=CompactTransport(manager, session_id), timeout=600)


def compact_async_client(
    manager: CompactManager, session_id: SessionName = None
) -> httpx2.AsyncClient:
    """Returns a client for ``AsyncOpenAI(http_client=…)``."""
    return httpx2.AsyncClient(transport=CompactAsyncTransport(manager, session_id), timeout=600)
