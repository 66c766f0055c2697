"""The official SDKs' own request types accept what is converted and what is compacted."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic.types import MessageParam
from anthropic.types.beta import BetaMessageParam
from google.genai.types import Content
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter, ValidationError

from conftest import SESSIONS
from rich import BODIES

TYPES = {
    "openai-chat": [("messages", list[ChatCompletionMessageParam])],
    "openai-responses": [("input", ResponseInputParam)],
    "anthropic": [("messages", list[MessageParam]), ("messages", list[BetaMessageParam])],
    "gemini": [("contents", list[Content])],
}


def exhaust(value: Any) -> None:
    """Iterables are validated as they are read, so every one is read to its end."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple, Iterator)):
        if not hasattr(value, "__next__"):
            return
    for element in value:
        exhaust(element)


def accept(body: dict, format: str) -> None:
    for field, type in TYPES[format]:
        # What is read lazily needs the adapter to outlive the reading.
        adapter = TypeAdapter(type)
        exhaust(adapter.validate_python(body[field]))


@pytest.mark.parametrize("format", TYPES)
@pytest.mark.parametrize("session", SESSIONS)
def test_a_converted_session_is_accepted(maker, session, format):
    accept(maker.converted(session, format), format)


@pytest.mark.parametrize("budget", [1500, 12000])
@pytest.mark.parametrize("format", TYPES)
@pytest.mark.parametrize("session", SESSIONS)
def test_a_compacted_body_is_accepted(maker, session, format, budget):
    accept(maker.compacted(session, format, budget), format)


@pytest.mark.parametrize("budget", [700, 3000])
@pytest.mark.parametrize("format", BODIES)
def test_the_view_of_a_rich_body_is_accepted(maker, format, budget):
    body = BODIES[format]()
    accept(body, format)
    source = maker.folder / f"rich.{format}.json"
    source.write_text(json.dumps(body))
    view = maker.view(source, budget)
    assert len(json.dumps(view)) < len(json.dumps(body))
    accept(view, format)
    maker.run("validate", str(source.with_suffix(f".{budget}.json")), "--provider", format)


WRONG = {
    "openai-chat": {"messages": [{"role": "assistant", "tool_calls": [{"id": 7}]}]},
    "openai-responses": {"input": [{"type": "function_call", "call_id": "c", "name": "f"}]},
    "anthropic": {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"functionCall": {"args": "{}"}}]}]},
}


@pytest.mark.parametrize("format", TYPES)
def test_a_wrong_body_is_refused(format):
    """The judges can say no."""
    with pytest.raises(ValidationError):
        accept(WRONG[format], format)
