"""Claude Code itself through `compactctl serve`: it changes its base URL and nothing else."""

import json
import os
import pathlib
import re
import subprocess
import urllib.request

import pytest
from agent import RULE
from test_claude import FROM_PYPI, Claude


class Gateway:
    """`compactctl serve` before a scripted API."""

    def __init__(self, program: str, folder: pathlib.Path, api):
        environment = {
            "HOME": str(folder), "PATH": os.environ["PATH"], "COMPACT_STORAGE_PATH": str(folder / "store"),
            "COMPACT_GATEWAY_ANTHROPIC_URL": api.url,
        }
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0"], env=environment, cwd=folder, stderr=subprocess.PIPE, text=True
        )
        self.url = self.process.stderr.readline().removeprefix("listening on ").strip()

    def metrics(self) -> str:
        return urllib.request.urlopen(f"{self.url}/metrics").read().decode()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0


@pytest.fixture
def gateway(program, tmp_path, api):
    gateway = Gateway(program, tmp_path, api)
    yield gateway
    gateway.stop()


@pytest.fixture(params=["pypi", "npm"])
def claude(request, tmp_path, api, program, gateway) -> Claude:
    command = FROM_PYPI if request.param == "pypi" else request.getfixturevalue("claude_from_npm")
    claude = Claude(tmp_path, api, program, command)
    claude.environment["ANTHROPIC_BASE_URL"] = gateway.url
    return claude


def talk(claude: Claude) -> None:
    claude.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    for file in ["totals", "views", "rules", "dates", "names"]:
        claude.go_on(f"Then look at src/ledger/{file}.py and say what is there. " + f"It is about {file}. " * 200)


def test_a_request_is_what_claude_sends(claude, api, gateway):
    claude.say("Hello.")
    assert api.requests, "it arrived"
    body = api.requests[-1]["body"]
    assert body["model"] == "claude-sonnet-4-5" and body["messages"][-1]["role"] == "user"
    metrics = gateway.metrics()
    assert "failed_open_total{" not in metrics, metrics


def test_a_compaction_by_hand_is_answered_by_us(claude, api, gateway):
    talk(claude)
    before = len(api.requests)
    claude.go_on("/compact keep it short")
    assert not api.summaries(), "no model was asked"
    assert 'compactions_total{cause="agent"} 1' in gateway.metrics()
    claude.go_on("Go on.")
    assert len(api.requests) > before
    held = api.turns()[-1]
    assert "COMPACT-SUMMARY v1" in held and RULE in held
    assert "It is about totals. It is about totals." not in held.split("Said last")[0]
    receipt = re.search(r"receipt: (\w+)", held)[1]
    found = json.loads(claude.compactctl("recall", "amount_legacy", "column", "--json"))
    assert any(RULE in json.dumps(hit) for hit in found["hits"])
    assert claude.compactctl("restore", receipt)


def test_a_prompt_that_is_too_long_never_reaches_the_agent(claude, api, gateway):
    talk(claude)
    # The next request is refused once, as Anthropic does.
    api.longest = 3
    answer = claude.go_on("And now?")
    assert not answer["is_error"], answer
    assert not api.summaries(), "the agent did not have to compact"
    assert 'outcome="retried"} 1' in gateway.metrics()
    assert "COMPACT-SUMMARY" in api.turns()[-1] and RULE in api.turns()[-1]
