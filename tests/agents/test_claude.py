"""Claude Code itself, with the hooks as `compactctl hook install` writes them."""

import json
import pathlib
import subprocess

import claude_agent_sdk
import pytest

RULE = "Never drop the column ledger_rows.amount_legacy before the September close."
CLAUDE = pathlib.Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


class Claude:
    """The agent in a repository of its own."""

    def __init__(self, folder: pathlib.Path, api, program: str):
        self.home, self.store, self.work = folder / "home", folder / "store", folder / "work"
        (self.work / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.program = program
        self.environment = {
            "HOME": str(self.home), "PATH": "/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-test-dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
            "COMPACT_STORAGE_PATH": str(self.store),
        }
        self.settings = self.home / ".claude" / "settings.json"

    def compactctl(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments], cwd=self.work, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def say(self, prompt: str, *more: str) -> dict:
        arguments = [CLAUDE, "-p", prompt, "--output-format", "json", "--model", "claude-sonnet-4-5", *more]
        done = subprocess.run(
            arguments, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def go_on(self, prompt: str) -> dict:
        return self.say(prompt, "--continue")

    def transcript(self) -> bytes:
        [file] = self.home.glob(".claude/projects/*/*.jsonl")
        return file.read_bytes()

    def archives(self) -> list[bytes]:
        return [file.read_bytes() for file in sorted(self.store.glob("hooks/*/archives/*"))]

    def log(self) -> str:
        return (self.store / "hooks" / "hook.log").read_text()


@pytest.fixture
def claude(tmp_path, api, program) -> Claude:
    claude = Claude(tmp_path, api, program)
    claude.compactctl("hook", "install", "--agent", "claude-code")
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


def test_s0_125_a_compaction_by_hand_is_archived_and_what_it_lost_is_told(claude, api):
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
    claude.go_on("And on.")
    assert "ERROR" not in claude.log() and "WARNING" not in claude.log()


def test_s0_141_an_automatic_compaction_is_archived_and_the_session_goes_on(claude, api):
    talk(claude)
    api.summary = "The ledger moves to the new API."
    api.longest = 1
    answer = claude.go_on("One more thing.")
    assert not answer["is_error"]
    check_archive(claude, "auto")
    assert RULE in api.turns()[-1]


def test_a_summary_that_kept_everything_is_not_told_again_at_the_next_prompt(claude, api):
    talk(claude)
    api.summary = f"src/ledger/rows.py and src/ledger/totals.py move to the new API. {RULE}"
    claude.go_on("/compact")
    claude.go_on("Go on.")
    assert "UserPromptSubmit hook additional context" not in api.turns()[-1]


def test_the_agent_leaves_settings_that_can_be_taken_back(tmp_path, api, program):
    claude = Claude(tmp_path, api, program)
    claude.settings.parent.mkdir()
    before = '{\n    "permissions": {"deny": ["Bash(rm:*)"]}\n}\n'
    claude.settings.write_text(before)
    claude.compactctl("hook", "install", "--agent", "claude-code")
    assert claude.settings.read_text() != before
    claude.say("Hello.")
    claude.compactctl("hook", "uninstall", "--agent", "claude-code")
    assert claude.settings.read_text() == before


def test_a_hook_that_is_gone_does_not_stop_the_agent(claude, api):
    settings = claude.settings.read_text()
    claude.settings.write_text(settings.replace(claude.program, "/nowhere/compactctl"))
    talk(claude)
    claude.go_on("/compact")
    assert api.summaries()
    assert claude.archives() == []
