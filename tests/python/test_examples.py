"""The examples and the snippets of the documentation, each with the fake or scripted model of its own framework."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import chat

SCRIPTED = ["adk_app", "anthropic_client", "langchain_agent", "openai_client", "pydantic_ai_agent"]

SNIPPET = re.compile(r"```python\n(?P<code>.*?)```\n+(?P<prose>\w*)", re.DOTALL)


@pytest.mark.parametrize("name", SCRIPTED)
def test_it_runs_without_a_key(name, tmp_path):
    script = Path(f"examples/{name}.py").absolute()
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "the last call sent " in done.stdout and "<Receipt " in done.stdout


@pytest.mark.parametrize("page", sorted(str(page) for page in [Path("README.md"), Path("MIGRATION.md"), *Path("docs").glob("*.md")]))
def test_the_snippets_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    from agents import SQLiteSession

    text = Path(page).read_text()
    monkeypatch.chdir(tmp_path)
    known = {"messages": chat(4), "SQLiteSession": SQLiteSession}
    for found in SNIPPET.finditer(text):
        # What "becomes" something is another library's way.
        if found["prose"] != "becomes":
            exec(compile(found["code"], page, "exec"), known)
    if "messages_to_send = " in text:
        assert known["messages_to_send"] == known["messages"]
