"""Integration with the OpenAI client through its transport: ``OpenAI(http_client=compact_client(manager))``.

Requests for chat completions and Responses are kept inside the window. One that the provider still refuses as
too long is made smaller and sent once more. A conversation without a ``session_id`` is recognised by its
history; ``user`` and ``prompt_cache_key`` are shared by many conversations. A request whose history is on
the server (``previous_response_id``, ``conversation``) is sent unchanged. The usage of a response that is not
streamed is reported to the manager.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from ..manager import CompactManager, Prepared
from ..wire import Codec, dumps
from .usage import observe_body

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

    def prepare_request(
        self, request: httpx2.Request, content: bytes
    ) -> tuple[httpx2.Request, Prepared | None]:
        """Returns the request to send, and what was prepared for it; ``None`` if it is sent as it is."""
        found = self.conversation_body(request, content)
        if found is None:
            return _rebuild_request(request, content), None
        body, member, codec = found
        made = self.manager.try_prepare(self.session_name(body), body[member], **_request_options(body, codec))
        if made is None:
            return _rebuild_request(request, content), None
        return _with_prepared(request, body, member, made), made

    def shrink_request(
        self, request: httpx2.Request, content: bytes, status: int, answer: str
    ) -> tuple[httpx2.Request, Prepared] | None:
        """Returns a smaller request after a refusal, or ``None`` if there is none."""
        found = self.conversation_body(request, content)
        if found is None:
            return None
        body, member, codec = found
        how = _request_options(body, codec)
        made = self.manager.shrink(self.session_name(body), body[member], status, answer, **how)
        return None if made is None else (_with_prepared(request, body, member, made), made)

    def observe_answer(
        self, request: httpx2.Request, content: bytes, prepared: Prepared | None, answer: str
    ) -> None:
        """Reports the usage in a response to the manager."""
        found = self.conversation_body(request, content)
        if found is not None:
            observe_body(self.manager, prepared, answer, str(found[2].format))


def _with_prepared(
    request: httpx2.Request, body: Mapping[str, Any], member: str, prepared: Prepared
) -> httpx2.Request:
    changed = {**body, member: prepared.messages}
    if prepared.system is not None:
        changed["instructions"] = prepared.system
    return _rebuild_request(request, dumps(changed).encode())


def _has_whole_usage(response: httpx2.Response, prepared: Prepared | None) -> bool:
    """Returns whether the usage can be read without delaying a stream."""
    is_json = response.headers.get("content-type", "").startswith("application/json")
    return prepared is not None and response.status_code == 200 and is_json


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
        first, prepared = self._rewriter.prepare_request(request, content)
        response = self._inner.handle_request(first)
        if response.status_code in (400, 413):
            answer = response.read().decode(errors="replace")
            again = self._rewriter.shrink_request(request, content, response.status_code, answer)
            if again is not None:
                response.close()
                prepared = again[1]
                response = self._inner.handle_request(again[0])
        if _has_whole_usage(response, prepared):
            answer = response.read().decode(errors="replace")
            self._rewriter.observe_answer(request, content, prepared, answer)
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
        rewriter = self._rewriter
        first, prepared = await asyncio.to_thread(rewriter.prepare_request, request, content)
        response = await self._inner.handle_async_request(first)
        if response.status_code in (400, 413):
            answer = (await response.aread()).decode(errors="replace")
            again = await asyncio.to_thread(
                rewriter.shrink_request, request, content, response.status_code, answer
            )
            if again is not None:
                await response.aclose()
                prepared = again[1]
                response = await self._inner.handle_async_request(again[0])
        if _has_whole_usage(response, prepared):
            answer = (await response.aread()).decode(errors="replace")
            await asyncio.to_thread(rewriter.observe_answer, request, content, prepared, answer)
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
