"""opencode itself, with the plugin as `compactctl hook install` writes it."""

import json
import pathlib
import re

import pytest
from agent import RULE, Agent
from limited import Limited

SUMMARY = "The ledger moves to the new API."
#: Steps that together print more than two windows.
STEPS = 18


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


@pytest.fixture
def model():
    model = Limited(STEPS, 60_000)
    yield model
    model.free.set()
    model.server.shutdown()


def allow_all(opencode: OpenCode) -> None:
    opencode.environment["OPENCODE_PERMISSION"] = json.dumps({"*": "allow"})
    opencode.patience = 900


def test_a_view_takes_the_place_of_a_session_that_fills_the_window(tmp_path, model, program, opencode_program):
    """No gateway and no model's summary: the plugin alone keeps a task of several windows going."""
    opencode = OpenCode(tmp_path, model, program, opencode_program)
    opencode.install()
    allow_all(opencode)
    opencode.say(f"Work through all steps of the migration, one command at a time. {RULE}")
    assert (opencode.work / "steps.txt").read_text().split()[-1] == f"step-{STEPS}"
    assert not model.summaries, "opencode never had to compact"
    assert not model.refused
    views = model.views()
    assert len(views) > STEPS // 3 and all(RULE in json.dumps(view) for view in views)
    # Between two compactions each request begins with the one before.
    sent = [[m for m in view["messages"] if m["role"] != "system"] for view in views]
    breaks = sum(after[: len(before)] != before for before, after in zip(sent, sent[1:]))
    assert breaks <= STEPS // 3, f"{breaks} of {len(sent)}"
    receipts = json.loads(opencode.compactctl("archive", "list", "--json"))
    assert "compactions" in json.dumps(receipts)
    assert opencode.compactctl("recall", "amount_legacy", "column")


def test_nothing_breaks_when_compactctl_is_gone(opencode, chat):
    plugin = next(opencode.home.glob(".config/opencode/plugin/*.js"))
    text, changed = re.subn(r'(?m)^const COMMAND = .*$', 'const COMMAND = "/nowhere/compactctl"', plugin.read_text())
    assert changed == 1
    plugin.write_text(text)
    chat.summary = SUMMARY
    opencode.say("We move src/ledger/rows.py to the new API.")
    chat.tokens = 70_000
    opencode.say("Then look at src/ledger/totals.py.", "--continue")
    assert SUMMARY in chat.turns()[-1], "opencode compacts by itself"
