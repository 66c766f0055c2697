"""The packages that are measured side by side, each called as its documentation shows.

A class has the same five methods: `load` makes the package's own messages of OpenAI's chat format, `preflight` is what it counts
or decides before a call, `compact` makes a history of at most `budget` tokens, `dump` writes that in OpenAI's chat format,
and `version`. Nothing asks a model: what a summarizing package would write is not measured, so only what works without one is here.
Each imports its package when it is made, because no interpreter has all of them.
"""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any


class Package:
    """What most of them share: messages as they are."""

    #: The name on the registry.
    distribution = ""

    def __init__(self, budget: int):
        pass

    def version(self) -> str:
        return f"{self.distribution} {importlib.metadata.version(self.distribution)}"

    def load(self, messages: list[dict]) -> Any:
        return messages

    def dump(self, made: Any) -> list[dict]:
        return made


class Compact(Package):
    """This project, with an archive in memory; a session is kept between two pre-flights, as an agent's loop keeps it."""

    distribution = "compact-context"

    def __init__(self, budget: int):
        from compact import CompactConfig, CompactManager, CompactPolicy, MemoryStorage

        settings = {"model": "gpt-5", "storage": MemoryStorage(), "format": "openai-chat"}
        self.roomy = CompactManager(CompactConfig(max_context_tokens=20_000_000, **settings))
        policy = CompactPolicy(target_tokens=budget)
        self.full = CompactManager(CompactConfig(max_context_tokens=20_000_000, policy=policy, **settings))

    def preflight(self, messages: Any) -> Any:
        return self.roomy.preflight("kept", messages)

    def compact(self, messages: Any, budget: int) -> Any:
        return self.full.manual_compact("other", messages)


class LangChain(Package):
    """`trim_messages`, with the counter that its documentation recommends for speed."""

    distribution = "langchain-core"

    def load(self, messages: list[dict]) -> Any:
        from langchain_core.messages import convert_to_messages

        return convert_to_messages(messages)

    def preflight(self, messages: Any) -> Any:
        from langchain_core.messages.utils import count_tokens_approximately

        return count_tokens_approximately(messages)

    def compact(self, messages: Any, budget: int) -> Any:
        from langchain_core.messages import trim_messages

        return trim_messages(messages, max_tokens=budget, token_counter="approximate", include_system=True, start_on="human")

    def dump(self, made: Any) -> list[dict]:
        from langchain_core.messages import convert_to_openai_messages

        return convert_to_openai_messages(made)


class LangChainClearing(LangChain):
    """The middleware that empties old tool results."""

    distribution = "langchain"

    def compact(self, messages: Any, budget: int) -> Any:
        from langchain.agents.middleware import ClearToolUsesEdit
        from langchain_core.messages.utils import count_tokens_approximately

        kept = list(messages)
        needed = count_tokens_approximately(kept) - budget
        ClearToolUsesEdit(trigger=budget, clear_at_least=needed).apply(kept, count_tokens=count_tokens_approximately)
        return kept


class LiteLLM(Package):
    distribution = "litellm"

    def preflight(self, messages: Any) -> Any:
        import litellm

        return litellm.token_counter(model="gpt-4o", messages=messages)

    def compact(self, messages: Any, budget: int) -> Any:
        import litellm

        return litellm.utils.trim_messages(messages, max_tokens=budget, model="gpt-4o", trim_ratio=1.0)


class Headroom(Package):
    """Its rules alone: its model would have to be fetched."""

    distribution = "headroom-ai"

    def preflight(self, messages: Any) -> Any:
        from headroom.tokenizers import get_tokenizer

        return get_tokenizer("gpt-4o").count_messages(messages)

    def compact(self, messages: Any, budget: int) -> Any:
        from headroom import compress

        return compress(messages, model="gpt-4o", model_limit=budget).messages


class PydanticAi(Package):
    """The sliding window of the harness, in an agent whose model only notes what it is sent."""

    distribution = "pydantic-ai-harness"

    def load(self, messages: list[dict]) -> Any:
        from pydantic_ai.messages import (
            ModelRequest, ModelResponse, SystemPromptPart, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart,
        )

        made: list[Any] = []
        for message in messages:
            text = message["content"]
            if message["role"] == "assistant":
                calls = [ToolCallPart(c["function"]["name"], c["function"]["arguments"], c["id"]) for c in message.get("tool_calls", [])]
                made.append(ModelResponse([*([TextPart(text)] if text else []), *calls]))
                continue
            part = {
                "system": lambda: SystemPromptPart(text),
                "user": lambda: UserPromptPart(text),
                "tool": lambda: ToolReturnPart("read_file", text, message["tool_call_id"]),
            }[message["role"]]()
            made.append(ModelRequest([part]))
        return made

    def preflight(self, messages: Any) -> Any:
        from pydantic_ai_harness.compaction import estimate_token_count

        return estimate_token_count(messages)

    def compact(self, messages: Any, budget: int) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel
        from pydantic_ai_harness.compaction import SlidingWindowCompaction

        sent: list[Any] = []

        def note(received: list[Any], _: Any) -> ModelResponse:
            sent.extend(received)
            return ModelResponse([TextPart("Noted.")])

        window = SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget)
        Agent(FunctionModel(note), capabilities=[window]).run_sync("Go on.", message_history=messages)
        return sent

    def dump(self, made: Any) -> list[dict]:
        return [message for one in made for message in dump_parts(one)]


def dump_parts(message: Any) -> list[dict]:
    """A message of Pydantic AI in OpenAI's chat format."""
    roles = {"system-prompt": "system", "user-prompt": "user"}
    if message.kind == "request":
        return [
            {"role": "tool", "tool_call_id": part.tool_call_id, "content": str(part.content)}
            if part.part_kind == "tool-return"
            else {"role": roles.get(part.part_kind, "user"), "content": str(part.content)}
            for part in message.parts
        ]
    calls = [
        {"id": part.tool_call_id, "type": "function", "function": {"name": part.tool_name, "arguments": as_text(part.args)}}
        for part in message.parts
        if part.part_kind == "tool-call"
    ]
    text = "".join(part.content for part in message.parts if part.part_kind == "text")
    return [{"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}]


def as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


#: By the name in the table.
PACKAGES = {
    "compact": Compact,
    "langchain trim_messages": LangChain,
    "langchain ClearToolUsesEdit": LangChainClearing,
    "litellm trim_messages": LiteLLM,
    "headroom compress": Headroom,
    "pydantic-ai-harness SlidingWindow": PydanticAi,
}
