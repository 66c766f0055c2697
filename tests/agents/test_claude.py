"""Claude Code itself, with the hooks as `compactctl hook install` writes them."""

import json
import pathlib
import re

import claude_agent_sdk
import pytest
from agent import RULE, Agent

FROM_PYPI = [str(pathlib.Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude")]


class Claude(Agent):
    name = "claude-code"
    model = "claude-sonnet-4-5"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        self.environment |= {
            "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-test-dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
        }
        self.settings = self.home / ".claude" / "settings.json"

    def say(self, prompt: str, *more: str) -> dict:
        return json.loads(self.start("-p", prompt, "--output-format", "json", "--model", self.model, *more))

    def go_on(self, prompt: str) -> dict:
        return self.say(prompt, "--continue")

    def transcript(self) -> bytes:
        [file] = self.home.glob(".claude/projects/*/*.jsonl")
        return file.read_bytes()


@pytest.fixture(params=["pypi", "npm"])
def claude(request, tmp_path, api, program) -> Claude:
    command = FROM_PYPI if request.param == "pypi" else request.getfixturevalue("claude_from_npm")
    claude = Claude(tmp_path, api, program, command)
    claude.install()
    return claude


def talk(claude: Claude) -> None:
    claude.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    claude.go_on("Then look at src/ledger/totals.py.")
    claude.go_on("And at the tests.")


def check_archive(claude: Claude, trigger: str) -> None:
    """One archive, and it is what the transcript was: its beginning, up to the compaction."""
    [archive] = claude.archives()
    transcript = claude.transcript()
    assert transcript.startswith(archive)
    assert RULE.encode() in archive
    assert b"compact_boundary" not in archive
    assert b"compact_boundary" in transcript[len(archive):]
    assert f"PreCompact: archived transcript (trigger={trigger})" in claude.log()


def test_a_compaction_by_hand_is_archived_and_what_it_lost_is_told(claude, api):
    talk(claude)
    api.summary = "The ledger moves to the new API."
    claude.go_on("/compact keep it short")
    check_archive(claude, "manual")
    [asked] = api.summaries()
    assert "keep it short" in asked and RULE in asked.split("Additional Instructions")[-1]
    claude.go_on("Go on.")
    last = api.turns()[-1]
    assert api.summary in last, "the agent goes on from its own summary"
    told = last.split("SessionStart hook additional context")[-1]
    assert RULE in told, "the rule that the summary lost stands in the next request"
    receipt = re.search(r"expand (\w+)#N", told)[1]
    number = re.search(r'\[#(\d+)\] \\"[^\\]*Never drop', told)[1]
    assert f"to the new API. {RULE}" in claude.compactctl("expand", f"{receipt}#{number}")
    assert RULE in claude.compactctl("recall", "amount_legacy", "column", "--json")
    claude.go_on("And on.")
    assert claude.is_untroubled(), claude.log()


def test_an_automatic_compaction_is_archived_and_the_session_goes_on(claude, api):
    talk(claude)
    api.summary = "The ledger moves to the new API."
    api.longest = 1
    answer = claude.go_on("One more thing.")
    assert not answer["is_error"]
    check_archive(claude, "auto")
    assert RULE in api.turns()[-1]


@pytest.mark.parametrize("claude", ["pypi"], indirect=True)
def test_a_summary_that_kept_everything_is_not_told_again_at_the_next_prompt(claude, api):
    talk(claude)
    api.summary = f"src/ledger/rows.py and src/ledger/totals.py move to the new API. {RULE}"
    claude.go_on("/compact")
    claude.go_on("Go on.")
    assert "UserPromptSubmit hook additional context" not in api.turns()[-1]


def test_the_agent_leaves_settings_that_can_be_taken_back(tmp_path, api, program):
    claude = Claude(tmp_path, api, program, FROM_PYPI)
    claude.settings.parent.mkdir()
    before = '{\n    "permissions": {"deny": ["Bash(rm:*)"]}\n}\n'
    claude.settings.write_text(before)
    claude.install()
    assert claude.settings.read_text() != before
    claude.say("Hello.")
    claude.compactctl("hook", "uninstall", "--agent", "claude-code")
    assert claude.settings.read_text() == before


@pytest.mark.parametrize("claude", ["pypi"], indirect=True)
def test_a_hook_that_is_gone_does_not_stop_the_agent(claude, api):
    settings = claude.settings.read_text()
    claude.settings.write_text(settings.replace(claude.program, "/nowhere/compactctl"))
    talk(claude)
    claude.go_on("/compact")
    assert api.summaries()
    assert claude.archives() == []
