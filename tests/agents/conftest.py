"""Agents as their makers ship them, with a home of their own, against an API that a test scripts."""

import os
import pathlib

import pytest
import scripted

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def api():
    yield from served(scripted.Anthropic())


@pytest.fixture
def responses():
    yield from served(scripted.Responses())


@pytest.fixture
def gemini_api():
    yield from served(scripted.Gemini())


@pytest.fixture
def chat():
    yield from served(scripted.Chat())


def served(api):
    yield api
    api.server.shutdown()


@pytest.fixture
def program() -> str:
    return os.environ.get("COMPACTCTL", str(ROOT / "target/debug/compactctl"))


def from_npm(pattern: str) -> pathlib.Path:
    """A program among the packages that `cargo xtask test` fetched."""
    folder = os.environ.get("COMPACT_AGENTS")
    found = sorted(pathlib.Path(folder).glob(f"node_modules/{pattern}")) if folder else []
    if found:
        return found[0]
    reason = f"{pattern} is not there: `cargo xtask test` fetches it and says why it could not"
    if os.environ.get("CI", "") not in ("", "0", "false"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def claude_from_npm() -> list[str]:
    return [str(from_npm("@anthropic-ai/claude-code-*/claude"))]


@pytest.fixture
def codex_program() -> list[str]:
    return [str(from_npm("@openai/codex-*/vendor/*/bin/codex"))]


@pytest.fixture
def gemini_program() -> list[str]:
    return ["node", str(from_npm("@google/gemini-cli/bundle/gemini.js"))]


@pytest.fixture
def opencode_program() -> list[str]:
    return [str(from_npm("opencode-*/bin/opencode"))]
