"""Codex itself, with the hooks as `compactctl hook install` writes them."""

import json
import pathlib
import subprocess

import pytest
from agent import RULE, Agent

#: Codex keeps what the user said, as far as 20,000 tokens go: this is what pushes the rule out.
LONG = "Read this listing.\n" + "row 17 of the ledger was posted twice\n" * 2_600
SUMMARY = "The ledger moves to the new API."


class Codex(Agent):
    name = "codex"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        self.settings = self.home / ".codex"
        self.settings.mkdir()
        self.environment |= {"CODEX_HOME": str(self.settings), "LOCAL_KEY": "dummy"}
        (self.settings / "config.toml").write_text(
            f"""model = "gpt-5-codex"
model_provider = "local"
model_auto_compact_token_limit = 50000
[analytics]
enabled = false
[features]
plugins = false
[model_providers.local]
name = "local"
base_url = "{api.url}/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
"""
        )

    def say(self, prompt: str, *more: str) -> list[dict]:
        flags = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--json"]
        return [json.loads(line) for line in self.start("exec", *more, *flags, "-", stdin=prompt).splitlines()]

    def go_on(self, prompt: str) -> list[dict]:
        return self.say(prompt, "resume", "--last")

    def transcript(self) -> bytes:
        [file] = self.settings.glob("sessions/**/*.jsonl")
        return file.read_bytes()


@pytest.fixture
def codex(tmp_path, responses, program, codex_program) -> Codex:
    codex = Codex(tmp_path, responses, program, codex_program)
    codex.install()
    return codex


def check_archive(codex: Codex, trigger: str) -> None:
    """One archive, and it is what the transcript was: its beginning, up to the compaction."""
    [archive] = codex.archives()
    transcript = codex.transcript()
    assert transcript.startswith(archive)
    assert RULE.encode() in archive
    assert b'"type":"compacted"' not in archive
    assert b'"type":"compacted"' in transcript[len(archive):]
    assert f"PreCompact: archived transcript (trigger={trigger})" in codex.log()


def test_an_automatic_compaction_is_archived_and_the_rule_it_lost_is_told(codex, responses):
    codex.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    responses.words = "I decided to keep the cursor in placed_at_id."
    responses.tokens = 60_000
    codex.go_on(LONG)
    responses.summary, responses.words = SUMMARY, "Understood."
    codex.go_on("Go on.")
    check_archive(codex, "auto")
    [asked] = responses.summaries()
    assert RULE in asked
    last = responses.turns()[-1]
    assert SUMMARY in last, "the agent goes on from its own summary"
    [told] = [item for item in json.loads(last) if "The conversation was compacted." in json.dumps(item)]
    assert told["role"] == "developer"
    assert RULE in json.dumps(told), "the rule that the summary lost stands in the next request"
    assert codex.is_untroubled(), codex.log()


def test_a_prompt_that_is_too_long_fails_its_turn_and_the_next_one_compacts_first(codex, responses):
    codex.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    codex.go_on(LONG)
    responses.is_full, responses.summary = True, SUMMARY
    with pytest.raises(AssertionError, match="ran out of room"):
        codex.go_on("Look at src/ledger/totals.py.")
    assert codex.archives() == [], "it does not compact by itself here"
    codex.go_on("Go on.")
    check_archive(codex, "auto")
    last = responses.turns()[-1]
    assert SUMMARY in last, "the agent goes on from its own summary"
    [told] = [item for item in json.loads(last) if "The conversation was compacted." in json.dumps(item)]
    assert json.dumps(told).count(RULE) == 1, "the rule that the summary lost stands in the next request"
    assert codex.is_untroubled(), codex.log()


def test_what_codex_keeps_is_not_told_again(codex, responses):
    codex.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    responses.tokens = 60_000
    codex.go_on("Then look at src/ledger/totals.py.")
    responses.summary = SUMMARY
    codex.go_on("Go on.")
    check_archive(codex, "auto")
    assert "The conversation was compacted." not in responses.turns()[-1]
    assert "nothing is repeated" in codex.log()


class Server:
    """Codex as its own interface drives it: the only way to compact by hand without a terminal."""

    def __init__(self, codex: Codex):
        self.process = subprocess.Popen(
            [*codex.command, "app-server"], cwd=codex.work, env=codex.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.asked = 0
        self.ask("initialize", clientInfo={"name": "tests", "version": "1"})
        self.write(method="initialized")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)

    def write(self, **message) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params) -> dict:
        self.asked += 1
        self.write(id=self.asked, method=method, params=params)
        return self.until(lambda message: message.get("id") == self.asked)["result"]

    def until(self, is_it) -> dict:
        return next(message for message in map(json.loads, self.process.stdout) if is_it(message))

    def turn(self, method: str, **params) -> None:
        self.ask(method, **params)
        self.until(lambda message: message.get("method") == "turn/completed")


def test_a_compaction_by_hand_is_archived_once_the_hooks_are_trusted(codex, responses):
    responses.summary = SUMMARY
    with Server(codex) as server:
        listed = server.ask("hooks/list", cwds=[str(codex.work)])["data"]
        hooks = [hook for entry in listed for hook in entry["hooks"]]
        assert sorted(hook["eventName"] for hook in hooks) == [
            "postCompact", "preCompact", "sessionStart", "userPromptSubmit",
        ]
        assert {hook["trustStatus"] for hook in hooks} == {"untrusted"}
        assert "not trusted" in codex.compactctl("hook", "status", "--agent", "codex")
        # This is what `/hooks` does.
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        server.ask("config/batchWrite", edits=[edit])
        assert "not trusted" not in codex.compactctl("hook", "status", "--agent", "codex")
        thread = server.ask("thread/start", cwd=str(codex.work))["thread"]["id"]

        def say(text: str) -> None:
            server.turn("turn/start", threadId=thread, input=[{"type": "text", "text": text}])

        say(f"We move src/ledger/rows.py to the new API. {RULE}")
        server.turn("thread/compact/start", threadId=thread)
        say("Go on.")
    check_archive(codex, "manual")
    assert SUMMARY in responses.turns()[-1]


def test_hooks_that_nobody_trusts_do_not_run_and_are_said_not_to(codex):
    codex.start("exec", "--skip-git-repo-check", "--json", "-", stdin="Hello.")
    assert not (codex.store / "hooks" / "hook.log").exists()
    assert "not trusted" in codex.compactctl("hook", "status", "--agent", "codex")


def test_the_agent_leaves_hooks_that_can_be_taken_back(codex):
    codex.say("Hello.")
    codex.compactctl("hook", "uninstall", "--agent", "codex")
    assert not (codex.settings / "hooks.json").exists()
