"""The examples, each with the fake or scripted model of its own framework."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTED = ["adk_app", "anthropic_client", "langchain_agent", "openai_client", "pydantic_ai_agent"]


@pytest.mark.parametrize("name", SCRIPTED)
def test_it_runs_without_a_key(name, tmp_path):
    script = Path(f"examples/{name}.py").absolute()
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "the last call sent " in done.stdout and "<Receipt " in done.stdout
