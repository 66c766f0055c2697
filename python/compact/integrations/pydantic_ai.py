"""Integration with Pydantic AI: ``Agent(model, capabilities=[CompactCapability(manager)])``.

The run's own history is not changed; only what is sent to the model is smaller. One message of Pydantic AI
holds several of a provider's, so it is split for the engine and joined again if nothing in it changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from ..manager import CompactManager
from ..wire import Codec, read_flags

__all__ = ["CompactCapability", "PydanticAiCodec"]


@dataclass(frozen=True)
class _Piece:
    """One part of a request, or a whole response."""

    message: ModelMessage
    part: Any | None


class PydanticAiCodec(Codec):
    """Translates between pieces of messages and the messages of chat completions."""

    format = "openai-chat"

    def dump(self, item: Any) -> Any:
        """Returns a piece as JSON values."""
        data = _dump_response(item.message) if item.part is None else _dump_part(item.part)
        meta = read_flags(item.message.metadata, getattr(item.part, "metadata", None))
        return {**data, "meta": meta} if meta else data

    def load(self, data: dict[str, Any], items: Sequence[Any]) -> Any:
        """Returns a piece for a message that the engine made or changed."""
        content = data.get("content") or ""
        if data["role"] == "tool":
            return _load_result(items, data["tool_call_id"], content)
        if data["role"] == "assistant":
            return _Piece(ModelResponse(parts=_load_parts(data, content)), None)
        part = SystemPromptPart(content) if data["role"] == "system" else UserPromptPart(content)
        return _Piece(ModelRequest(parts=[part]), part)


def _dump_part(part: Any) -> dict[str, Any]:
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, ToolReturnPart):
        text = part.model_response_str()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
    if isinstance(part, RetryPromptPart) and part.tool_name is not None:
        text = part.model_response()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
    if isinstance(part, RetryPromptPart):
        return {"role": "user", "content": part.model_response()}
    content = getattr(part, "content", "")
    if isinstance(content, str):
        return {"role": "user", "content": content}
    return {"role": "user", "content": [_dump_user_content(piece) for piece in content]}


def _dump_user_content(piece: Any) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    return {"type": str(getattr(piece, "kind", "media")), "value": repr(piece)}


def _dump_response(message: Any) -> dict[str, Any]:
    words = [part.content for part in message.parts if isinstance(part, TextPart)]
    data: dict[str, Any] = {"role": "assistant", "content": "\n".join(words)}
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    if calls:
        data["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": call.args_as_json_str()},
            }
            for call in calls
        ]
    return data


def _load_result(items: Sequence[Any], call_id: str, content: str) -> _Piece:
    for item in items:
        if getattr(item.part, "tool_call_id", None) == call_id:
            part = ToolReturnPart(item.part.tool_name, content, call_id)
            return _Piece(ModelRequest(parts=[part]), part)
    part = ToolReturnPart("unknown", content, call_id)
    return _Piece(ModelRequest(parts=[part]), part)


def _load_parts(data: dict[str, Any], content: str) -> list[Any]:
    parts: list[Any] = [TextPart(content)] if content else []
    for call in data.get("tool_calls") or []:
        function = call["function"]
        arguments = json.loads(function["arguments"] or "{}")
        parts.append(ToolCallPart(function["name"], arguments, call["id"]))
    return parts or [TextPart("…")]


def _split_messages(messages: Sequence[ModelMessage]) -> list[_Piece]:
    pieces = []
    for message in messages:
        if isinstance(message, ModelResponse):
            pieces.append(_Piece(message, None))
        else:
            pieces.extend(_Piece(message, part) for part in message.parts)
    return pieces


def _join_pieces(pieces: Sequence[_Piece], before: Sequence[_Piece]) -> list[ModelMessage]:
    """Joins pieces to messages; responses after the first change lose their reasoning."""
    same = 0
    while same < min(len(pieces), len(before)) and pieces[same] is before[same]:
        same += 1
    messages: list[ModelMessage] = []
    at = 0
    while at < len(pieces):
        message = pieces[at].message
        if isinstance(message, ModelResponse):
            messages.append(message if at < same else _without_reasoning(message))
            at += 1
            continue
        run = [piece for piece in pieces[at : at + len(message.parts)] if piece.message is message]
        whole = len(run) == len(message.parts)
        part = pieces[at].part
        messages.append(message if whole else replace(message, parts=[part]))  # type: ignore[list-item]
        at += len(message.parts) if whole else 1
    return messages


def _without_reasoning(message: ModelResponse) -> ModelResponse:
    """Removes reasoning, and the ids by which a provider would look it up."""
    parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
    if len(parts) == len(message.parts):
        return message
    named = (TextPart, ToolCallPart)
    bare: list[Any] = [replace(p, id=None) if isinstance(p, named) else p for p in parts]
    return replace(message, parts=bare or [TextPart("…")])


@dataclass
class CompactCapability(AbstractCapability[Any]):
    """Keeps every model request of an agent inside the window.

    ``session_id`` names the conversation; the default is the run's ``conversation_id``.
    """

    manager: CompactManager
    session_id: str | None = None

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replaces the request's messages with the view to send."""
        pieces = _split_messages(request_context.messages)
        codec = PydanticAiCodec()
        prepared = await self.manager.atry_prepare(
            self.session_id or ctx.conversation_id,
            pieces,
            system=_instructions(request_context),
            tools=_tool_schemas(request_context),
            codec=codec,
        )
        if prepared is None or _is_same(prepared.messages, pieces):
            return request_context
        return replace(request_context, messages=_join_pieces(prepared.messages, pieces))


def _is_same(after: Sequence[Any], before: Sequence[Any]) -> bool:
    return len(after) == len(before) and all(a is b for a, b in zip(after, before, strict=True))


def _tool_schemas(request_context: ModelRequestContext) -> list[dict[str, Any]]:
    """Returns the tools, which are sent with the history and counted."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
        for tool in request_context.model_request_parameters.function_tools
    ]


def _instructions(request_context: ModelRequestContext) -> list[str]:
    """Returns the instructions, which are sent beside the history and never changed."""
    parts = request_context.model_request_parameters.instruction_parts or []
    return [part.content for part in parts]


