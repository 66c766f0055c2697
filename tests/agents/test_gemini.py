"""Gemini CLI itself, with the hooks as `compactctl hook install` writes them."""

import json
import pathlib

import pytest
from agent import RULE, Agent

SUMMARY = "The ledger moves to the new API."


class Gemini(Agent):
    name = "gemini-cli"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        self.environment |= {
            "GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": api.url, "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        self.settings = self.home / ".gemini" / "settings.json"
        self.settings.parent.mkdir()
        self.own_settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "model": {"compressionThreshold": 0.002},
        }
        self.settings.write_text(json.dumps(self.own_settings))

    def say(self, prompt: str, *more: str) -> dict:
        return json.loads(self.start(*more, "-p", prompt, "-m", "gemini-2.5-flash", "--output-format", "json"))

    def go_on(self, prompt: str) -> dict:
        return self.say(prompt, "--resume", "latest")

    def transcript(self) -> bytes:
        return max(self.home.glob(".gemini/tmp/*/chats/*.jsonl"), key=lambda file: file.stat().st_mtime).read_bytes()


@pytest.fixture
def gemini(tmp_path, gemini_api, program, gemini_program) -> Gemini:
    gemini = Gemini(tmp_path, gemini_api, program, gemini_program)
    gemini.install()
    return gemini


def test_a_compression_by_hand_is_archived_and_what_it_lost_is_told_at_the_next_prompt(gemini, gemini_api):
    settings = json.loads(gemini.settings.read_text())
    settings["model"]["compressionThreshold"] = 0.9
    gemini.settings.write_text(json.dumps(settings))
    gemini.say(f"We move src/ledger/rows.py to the new API. {RULE}\n" + "row 17 of the ledger was posted twice\n" * 300)
    assert gemini_api.summaries() == []
    gemini_api.summary = SUMMARY
    before = len(gemini_api.turns())
    # It compresses, and then sends the word to the model as well.
    gemini.go_on("/compress")
    assert gemini_api.summaries()
    assert "PreCompress: archived transcript (trigger=manual)" in gemini.log()
    assert any(RULE.encode() in archive and b"<state_snapshot>" not in archive for archive in gemini.archives())
    gemini.go_on("Go on.")
    # It may send the word before or after it compresses, and end before it has saved the outcome.
    after = gemini_api.turns()[before:]
    assert any(RULE in turn for turn in after), "the rule that the summary lost reaches the model"
    assert gemini.is_untroubled(), gemini.log()


def test_compressions_are_archived_and_what_they_lost_is_told_at_the_next_prompt(gemini, gemini_api):
    gemini.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    gemini.go_on("Then look at src/ledger/totals.py.\n" + "row 17 of the ledger was posted twice\n" * 300)
    gemini_api.summary = SUMMARY
    gemini.go_on("And at the tests.")
    assert gemini_api.summaries(), "it compresses by itself"
    # Attempts that compress nothing leave no archives of their own.
    [archive] = gemini.archives()
    assert RULE.encode() in archive and b"<state_snapshot>" not in archive
    gemini.go_on("Go on.")
    last = gemini_api.turns()[-1]
    assert SUMMARY in last, "the agent goes on from its own summary"
    assert RULE in last.split("hook_context")[-2], "the rule that the summary lost stands in the next request"
    assert gemini.is_untroubled(), gemini.log()
    # It writes its settings anew; ours can be taken out of them all the same.
    gemini.compactctl("hook", "uninstall", "--agent", "gemini-cli")
    assert json.loads(gemini.settings.read_text()) == gemini.own_settings
