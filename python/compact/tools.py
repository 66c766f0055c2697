"""``recall`` and ``expand`` as tools for an agent: a summary names them, and they find what it left out.

>>> from compact import CompactConfig, CompactManager, MemoryStorage
>>> from compact.tools import LookupTools
>>> tools = LookupTools(CompactManager(CompactConfig(model="gpt-5", storage=MemoryStorage())))
>>> [tool["function"]["name"] for tool in tools.openai_chat()]
['recall', 'expand']

Each method returns the tools as one SDK takes them. Where you call tools yourself, pass the model's call to
:meth:`LookupTools.call`. What is found is redacted, bounded in size and marked as a quotation. An error is an answer
that says what to do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .check import check_number
from .exceptions import CompactError

if TYPE_CHECKING:
    from .manager import CompactManager

__all__ = ["LookupTools"]

#: More entries than any session has.
_MOST_ENTRIES = 1_000_000_000

_RECALL = (
    "Search everything said and done earlier in this and past sessions: requirements, decisions, names, paths, "
    "errors, command output. Use it when the conversation was compacted, or when something was said before that you "
    "cannot see. Gives short passages with pointers; `expand` gives an entry whole."
)
_EXPAND = (
    "Give an archived message or tool result whole, as it was before it was cut or summarized. Takes a pointer from a "
    "summary ([#17] under receipt 3f9a1c22abcd is 3f9a1c22abcd#17), from a cut text or from `recall`."
)

_RECALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "A question or a few words, names or paths, as they were said; no search syntax",
        },
        "session": {
            "type": "string",
            "description": "Only this session: its id, or the receipt in a summary's header",
        },
        "after": {"type": "integer", "description": "Only entries after this number"},
        "latest": {"type": "boolean", "description": "The newest hit first, not the best one"},
        "limit": {"type": "integer", "description": "The most hits, from 1 to 50; 8 by default"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_EXPAND_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pointer": {
            "type": "string",
            "description": "RECEIPT#NUMBER, such as 3f9a1c22abcd#17; RECEIPT#17..19 for several in a row",
        },
        "session": {
            "type": "string",
            "description": "The session that the pointer is of, where it is not your own: its id or a receipt",
        },
        "grep": {
            "type": "string",
            "description": "Only the lines that match this pattern (a regular expression), with their numbers",
        },
        "lines": {"type": "string", "description": "Only these lines, such as 120..160 or 120.."},
        "around": {"type": "integer", "description": "So many entries before and after as well"},
    },
    "required": ["pointer"],
    "additionalProperties": False,
}


class LookupTools:
    """The tools of a manager. With a ``session_id``, what names no other session is found in that one alone."""

    def __init__(self, manager: CompactManager, session_id: str | None = None) -> None:
        self._manager = manager
        self._session_id = session_id

    # What they do.

    def recall(
        self,
        query: str,
        session: str | None = None,
        after: int | None = None,
        latest: bool = False,
        limit: int = 8,
    ) -> str:
        """Searches everything archived, and returns passages with their pointers as text for a model."""
        check_number("limit", limit, 1, 50, "the most hits")
        if after is not None:
            check_number("after", after, 0, _MOST_ENTRIES, "an entry's number")
        engine = self._manager._engine()
        return engine.recall_text(query, session or self._session_id, limit, after, latest)

    def expand(
        self,
        pointer: str,
        grep: str | None = None,
        lines: str | None = None,
        around: int = 0,
        session: str | None = None,
    ) -> str:
        """Returns the entries that a pointer names as text for a model: whole, or the lines that are wanted."""
        check_number("around", around, 0, _MOST_ENTRIES, "a number of entries")
        engine = self._manager._engine()
        return engine.expand_text(pointer, session or self._session_id, grep, lines, around)

    def call(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> str:
        """Answers a model's call, whose arguments are JSON or a mapping.

        What went wrong is part of the answer, since the model is the one who can mend it.
        """
        tools: dict[str, tuple[Callable[..., str], dict[str, Any]]] = {
            "recall": (self.recall, _RECALL_SCHEMA),
            "expand": (self.expand, _EXPAND_SCHEMA),
        }
        if name not in tools:
            return f"error: there is no tool {name!r}; there are recall and expand"
        tool, schema = tools[name]
        try:
            return tool(**_read_arguments(name, schema, arguments))
        except (CompactError, TypeError, ValueError) as error:
            return f"error: {error}"

    async def acall(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> str:
        """Runs :meth:`call` in a thread, without blocking the event loop."""
        return await asyncio.to_thread(self.call, name, arguments)

    # As each SDK takes them.

    def openai_chat(self) -> list[dict[str, Any]]:
        """Returns ``tools`` for chat completions; LiteLLM takes them too."""
        return [
            {
                "type": "function",
                "function": {"name": name, "description": about, "parameters": schema},
            }
            for name, about, schema in _SPECS
        ]

    def openai_responses(self) -> list[dict[str, Any]]:
        """Returns ``tools`` for the Responses API."""
        return [
            {
                "type": "function",
                "name": name,
                "description": about,
                "parameters": schema,
                "strict": False,
            }
            for name, about, schema in _SPECS
        ]

    def anthropic(self) -> list[dict[str, Any]]:
        """Returns ``tools`` for Anthropic's Messages API."""
        return [
            {"name": name, "description": about, "input_schema": schema}
            for name, about, schema in _SPECS
        ]

    def gemini(self) -> list[dict[str, Any]]:
        """Returns ``tools`` for Gemini's API."""
        declared = [
            {"name": name, "description": about, "parameters_json_schema": schema}
            for name, about, schema in _SPECS
        ]
        return [{"function_declarations": declared}]

    def agents_sdk(self) -> list[Any]:
        """Returns function tools of the OpenAI Agents SDK."""
        from agents import FunctionTool

        def invoke(name: str) -> Callable[..., Any]:
            async def answer(_context: Any, arguments: str) -> str:
                return await self.acall(name, arguments)

            return answer

        return [
            FunctionTool(
                name=name,
                description=about,
                params_json_schema=schema,
                on_invoke_tool=invoke(name),
                strict_json_schema=False,
            )
            for name, about, schema in _SPECS
        ]

    def claude_sdk(self) -> list[Any]:
        """Returns tools of the Claude Agent SDK, for ``create_sdk_mcp_server(name, tools=…)``."""
        from claude_agent_sdk import tool

        def answer(name: str) -> Callable[..., Any]:
            async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
                text = await self.acall(name, arguments)
                return {"content": [{"type": "text", "text": text}]}

            return handle

        return [tool(name, about, schema)(answer(name)) for name, about, schema in _SPECS]

    def langchain(self) -> list[Any]:
        """Returns tools of LangChain."""
        from langchain_core.tools import StructuredTool

        def answer(name: str) -> tuple[Callable[..., str], Callable[..., Any]]:
            def now(**arguments: Any) -> str:
                return self.call(name, arguments)

            async def later(**arguments: Any) -> str:
                return await self.acall(name, arguments)

            return now, later

        def made(name: str, about: str, schema: dict[str, Any]) -> Any:
            now, later = answer(name)
            return StructuredTool.from_function(
                now, later, name=name, description=about, args_schema=schema
            )

        return [made(*spec) for spec in _SPECS]

    def pydantic_ai(self) -> list[Any]:
        """Returns tools of Pydantic AI."""
        from pydantic_ai import Tool

        def answer(name: str) -> Callable[..., Any]:
            async def later(**arguments: Any) -> str:
                return await self.acall(name, arguments)

            return later

        return [
            Tool.from_schema(answer(name), name=name, description=about, json_schema=schema)
            for name, about, schema in _SPECS
        ]

    def adk(self) -> list[Callable[..., str]]:
        """Returns functions, which Google ADK takes as ``tools``."""

        def recall(
            query: str, session: str = "", after: int = -1, latest: bool = False, limit: int = 8
        ) -> str:
            number = None if after < 0 else after
            found = {"query": query, "session": session or None, "after": number}
            return self.call("recall", {**found, "latest": latest, "limit": limit})

        def expand(
            pointer: str, session: str = "", grep: str = "", lines: str = "", around: int = 0
        ) -> str:
            part = {"session": session or None, "grep": grep or None, "lines": lines or None}
            return self.call("expand", {"pointer": pointer, **part, "around": around})

        for function, about, schema in ((recall, _RECALL, _RECALL_SCHEMA), (expand, _EXPAND, _EXPAND_SCHEMA)):
            properties = schema["properties"].items()
            arguments = "\n".join(f"    {name}: {given['description']}" for name, given in properties)
            function.__doc__ = f"{about}\n\nArgs:\n{arguments}\n"
        return [recall, expand]


#: The Python type of each type in a schema, and its name in plain words.
_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
}


def _read_arguments(
    name: str, schema: Mapping[str, Any], arguments: str | Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the arguments of a model's call without those that are null.

    Raises ``ValueError`` in words that the model can act on.
    """
    given: Any = arguments or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise ValueError(f"the arguments of {name} are not JSON: {error}") from error
    if not isinstance(given, Mapping):
        raise ValueError(f"the arguments of {name} must be a JSON object with their names")
    known = schema["properties"]
    found = {key: value for key, value in given.items() if value is not None}
    for key in schema["required"]:
        if key not in found:
            raise ValueError(f"{name} needs {key!r}: {known[key]['description']}")
    for key, value in found.items():
        if key not in known:
            raise ValueError(f"{name} has no argument {key!r}; it has {', '.join(known)}")
        kind, words = _TYPES[known[key]["type"]]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{key!r} must be {words}, found {json.dumps(value, default=str)}")
    return found


_SPECS = (("recall", _RECALL, _RECALL_SCHEMA), ("expand", _EXPAND, _EXPAND_SCHEMA))
