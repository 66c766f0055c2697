"""`recall` and `expand` as an agent's tools, in the shape that each SDK takes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from compact import CompactError, CompactManager
from compact.tools import LookupTools

from .conftest import chat, config


@pytest.fixture(scope="module")
def tools() -> LookupTools:
    manager = CompactManager(config())
    manager.preflight("shop", chat(40))
    return LookupTools(manager)


def pointer_of(answer: str) -> str:
    return next(line.split(" ")[0] for line in answer.splitlines() if "#" in line)


def test_what_was_left_out_is_found_and_brought_back(tools: LookupTools) -> None:
    found = tools.call("recall", {"query": "src/part_3.py mended", "limit": 2})
    assert "not instructions" in found
    assert "src/part_3.py is mended." in found
    whole = tools.call("expand", json.dumps({"pointer": pointer_of(found)}))
    assert "src/part_3.py is mended." in whole
    assert " of 1" in whole  # its place in the session


def test_a_receipt_of_a_header_names_the_session(tools: LookupTools) -> None:
    view = tools._manager.preflight("shop", chat(40))
    header = next(line for line in json.dumps(view).split("\\n") if "receipt: " in line)
    receipt = header.split("`recall ")[1].split(" ")[0]
    assert "part_5.py" in tools.recall("part_5", session=receipt)
    later = tools.recall("mended", session=receipt, after=100, latest=True)
    assert all(int(number) > 100 for number in _numbers(later))


def _numbers(answer: str) -> list[str]:
    return [line.split("#")[1].split(" ")[0] for line in answer.splitlines() if " of 1" in line and "#" in line]


def test_a_number_is_of_the_session_that_is_named() -> None:
    manager = CompactManager(config())
    for name in ("alice", "bob"):
        manager.preflight(name, [{**message, "content": f"{name}: {message['content']}"} for message in chat(40)])
    own = LookupTools(manager, "alice")
    assert "alice: " in own.call("expand", {"pointer": "#3"})
    assert "bob: " not in own.call("expand", {"pointer": "#3"})
    assert "is no entry of session 'alice'" in own.call("expand", {"pointer": "bob#3"})
    assert "bob: " in own.call("expand", {"pointer": "bob#3", "session": "bob"})
    assert "alice: " in str(manager.expand("#3", "alice"))
    with pytest.raises(CompactError, match="is no entry of session 'alice'"):
        manager.expand("bob#3", "alice")


def test_lines_are_chosen(tools: LookupTools) -> None:
    found = tools.recall("x = 1 src/part_2.py")
    row = pointer_of(found).split("#")[0] + "#10..12"
    assert "matching line" in tools.expand(row, grep="^E[0-9]")
    assert "lines 1 to 1 of" in tools.expand(row, lines="1")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("nope", {}, "there is no tool 'nope'"),
        ("recall", {}, "query"),
        ("recall", "not json", "error: "),
        ("recall", {"query": "???"}, "no words to look for"),
        ("recall", {"query": "x", "limit": 99}, "from 1 to 50"),
        ("expand", {"pointer": "nonsense"}, "nonsense"),
        ("expand", {"pointer": "shop#1", "lines": "9..3"}, "names no lines"),
    ],
)
def test_a_mistake_is_an_answer(tools: LookupTools, name: str, arguments: Any, says: str) -> None:
    answer = tools.call(name, arguments)
    assert answer.startswith("error: ")
    assert says in answer


def test_clients_get_their_schemas(tools: LookupTools) -> None:
    names = ["recall", "expand"]
    assert [tool["function"]["name"] for tool in tools.openai_chat()] == names
    assert [tool["name"] for tool in tools.openai_responses()] == names
    assert [tool["input_schema"]["required"] for tool in tools.anthropic()] == [["query"], ["pointer"]]
    from google.genai.types import Tool

    declared = Tool.model_validate(tools.gemini()[0]).function_declarations
    assert [function.name for function in declared or []] == names


def test_frameworks_get_tools_that_answer(tools: LookupTools) -> None:
    query = {"query": "src/part_3.py mended"}
    want = tools.call("recall", query)

    langchain = tools.langchain()
    assert [tool.name for tool in langchain] == ["recall", "expand"]
    assert langchain[0].invoke(query) == want

    agents = tools.agents_sdk()
    assert asyncio.run(agents[0].on_invoke_tool(None, json.dumps(query))) == want

    pydantic_ai = tools.pydantic_ai()
    assert asyncio.run(pydantic_ai[0].function(**query)) == want

    claude = tools.claude_sdk()
    answer = asyncio.run(claude[0].handler(query))
    assert answer == {"content": [{"type": "text", "text": want}]}

    from google.adk.tools import FunctionTool

    adk = [FunctionTool(function) for function in tools.adk()]
    assert [tool.name for tool in adk] == ["recall", "expand"]
    assert adk[0].func(**query) == want
