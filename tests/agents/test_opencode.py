"""opencode itself, with the plugin as `compactctl hook install` writes it."""

import json
import pathlib

import pytest
from agent import RULE, Agent

SUMMARY = "The ledger moves to the new API."


class OpenCode(Agent):
    name = "opencode"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        self.environment |= {
            "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
        provider = {
            "npm": "@ai-sdk/openai-compatible", "name": "local",
            "options": {"baseURL": f"{api.url}/v1", "apiKey": "dummy"},
            "models": {"m1": {"name": "m1", "limit": {"context": 60_000, "output": 2_000}}},
        }
        settings = {
            "model": "local/m1", "small_model": "local/m1", "autoupdate": False, "share": "disabled",
            "provider": {"local": provider},
        }
        (self.work / "opencode.json").write_text(json.dumps(settings))
        # It looks for a package beside any plugin; ours needs none, and is not to wait for it.
        (self.home / ".npmrc").write_text(f"registry={api.url}\nfetch-retries=0\n")

    def say(self, prompt: str, *more: str) -> None:
        self.start("run", "--format", "json", *more, prompt)


@pytest.fixture
def opencode(tmp_path, chat, program, opencode_program) -> OpenCode:
    opencode = OpenCode(tmp_path, chat, program, opencode_program)
    opencode.install()
    return opencode


def test_a_compaction_is_archived_and_the_rule_it_lost_is_told(opencode, chat):
    opencode.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    chat.summary = SUMMARY
    chat.tokens = 70_000
    opencode.say("Then look at src/ledger/totals.py.", "--continue")
    [asked] = chat.summaries()
    assert RULE in asked.split("Write the summary as you always do.")[-1]
    [archive] = opencode.archives()
    said = [part.get("text") for message in json.loads(archive)["messages"] for part in message["parts"]]
    assert any(RULE in text for text in said if text)
    last = chat.turns()[-1]
    assert SUMMARY in last, "the agent goes on from its own summary"
    assert RULE in last, "the rule that the summary lost stands in the next request"
    assert opencode.is_untroubled(), opencode.log()
    # Another process goes on with the session: it is told again.
    opencode.say("Go on.", "--continue")
    assert RULE in chat.turns()[-1]
    opencode.compactctl("hook", "uninstall", "--agent", "opencode")
    assert not list(opencode.home.glob(".config/opencode/plugin/*"))
