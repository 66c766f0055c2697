"""Integration with LangChain: ``create_agent(model, tools, middleware=[CompactMiddleware(manager)])``.

By default the agent's state keeps everything, and only what is sent to the model is smaller. With
``persist=True`` the state itself is compacted, as LangChain's own summarization does; the original is in the
manager's storage. A session is the thread (``thread_id``) that the agent runs in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from ..manager import CompactManager
from ..wire import Codec, dumps, read_flags

__all__ = ["CompactMiddleware", "LangChainCodec"]

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}

#: Blocks whose signature covers everything before them.
_REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")


class LangChainCodec(Codec):
    """Translates between LangChain's messages and those of chat completions."""

    format = "openai-chat"

    def dump(self, item: Any) -> Any:
        """Returns a message as JSON values."""
        if not isinstance(item, BaseMessage):
            return super().dump(item)
        data: dict[str, Any] = {"role": _ROLES.get(item.type, "user"), "content": item.content}
        if isinstance(item, AIMessage) and item.tool_calls:
            data["tool_calls"] = [_dump_call(call) for call in item.tool_calls]
        if isinstance(item, ToolMessage):
            data["tool_call_id"] = item.tool_call_id
        meta = read_flags(item.additional_kwargs, item.response_metadata, item.model_extra)
        return {**data, "meta": meta} if meta else data

    def bare(self, item: Any) -> Any:
        """Returns LangChain messages unchanged, since its models never send their flags."""
        return item if isinstance(item, BaseMessage) else super().bare(item)

    def load(self, data: dict[str, Any], items: Sequence[Any]) -> Any:
        """Returns a LangChain message for one that the engine made or changed."""
        content = data.get("content") or ""
        if data["role"] == "tool":
            return _load_tool_result(items, data["tool_call_id"], content)
        if data["role"] == "assistant":
            return _load_answer(items, data, content)
        return (SystemMessage if data["role"] == "system" else HumanMessage)(content=content)


def _dump_call(call: Any) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": dumps(call["args"])}
    return {"id": call["id"], "type": "function", "function": function}


def _load_tool_result(items: Sequence[Any], call_id: str, content: Any) -> ToolMessage:
    for item in items:
        if isinstance(item, ToolMessage) and item.tool_call_id == call_id:
            return item.model_copy(update={"content": content})
    return ToolMessage(content=content, tool_call_id=call_id)


def _load_answer(items: Sequence[Any], data: dict[str, Any], content: Any) -> AIMessage:
    calls = [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "args": json.loads(call["function"]["arguments"] or "{}"),
            "type": "tool_call",
        }
        for call in data.get("tool_calls") or []
    ]
    ids = [call["id"] for call in calls]
    for item in items:
        if ids and isinstance(item, AIMessage) and [c["id"] for c in item.tool_calls] == ids:
            return item.model_copy(update={"content": content, "tool_calls": calls})
    return AIMessage(content=content, tool_calls=calls)


class CompactMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps every model call of an agent inside the window.

    ``session_id`` names the conversation; the default is the thread's id. An agent nested in another's graph
    shares the thread but not the conversation, so it is recognised by its history, like one without a thread.
    """

    def __init__(
        self, manager: CompactManager, session_id: str | None = None, *, persist: bool = False
    ) -> None:
        super().__init__()
        self.manager = manager
        self.session_id = session_id
        self.persist = persist
        self.codec = LangChainCodec()

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Compacts the state itself if ``persist`` is set."""
        if not self.persist:
            return None
        messages = state["messages"]
        prepared = self.manager.try_prepare(self._session_name(runtime), messages, codec=self.codec)
        if prepared is None or prepared.receipt is None:
            return None
        kept = _without_stale_reasoning(messages, prepared.messages)
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Runs :meth:`before_model` in a thread, without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.before_model, state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        """Calls the model with the view to send."""
        if self.persist:
            return handler(request)
        prepared = self.manager.try_prepare(
            self._session_name(request.runtime), request.messages, **self._request_options(request)
        )
        return handler(request if prepared is None else _with_messages(request, prepared.messages))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        """Does what :meth:`wrap_model_call` does, without blocking the event loop."""
        if self.persist:
            return await handler(request)
        prepared = await self.manager.atry_prepare(
            self._session_name(request.runtime), request.messages, **self._request_options(request)
        )
        return await handler(request if prepared is None else _with_messages(request, prepared.messages))

    def _request_options(self, request: ModelRequest[Any]) -> dict[str, Any]:
        tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
        message = request.system_message
        system = None if message is None else message.content
        return {"system": system, "tools": tools, "codec": self.codec}

    def _session_name(self, runtime: Any) -> str | None:
        if self.session_id:
            return self.session_id
        execution = getattr(runtime, "execution_info", None)
        is_nested = "|" in (getattr(execution, "checkpoint_ns", None) or "")
        thread = getattr(execution, "thread_id", None)
        return str(thread) if thread and not is_nested else None


def _with_messages(request: ModelRequest[Any], messages: list[Any]) -> ModelRequest[Any]:
    return request.override(messages=_without_stale_reasoning(request.messages, messages))


def _without_stale_reasoning(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """Removes reasoning after the first change, since its signature covers what was there before."""
    same = 0
    while same < min(len(before), len(after)) and before[same] is after[same]:
        same += 1
    return [*after[:same], *(_without_reasoning(message) for message in after[same:])]


def _without_reasoning(message: Any) -> Any:
    content = getattr(message, "content", None)
    if not isinstance(message, AIMessage) or not isinstance(content, list):
        return message
    kept = [block for block in content if _block_type(block) not in _REASONING_TYPES]
    if len(kept) == len(content):
        return message
    return message.model_copy(update={"content": kept})


def _block_type(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None
