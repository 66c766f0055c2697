"""Claude Code itself, with the plugin that gives it our view in place of its own summary."""

import json
import pathlib

import pytest
from agent import RULE
from scripted import Answer
from test_claude import FROM_PYPI, Claude

#: In the middle of a file that the agent reads: too long for the view, and no name that a summary would keep.
FILLER = "the quick brown fox jumps over the lazy dog and goes on to the next field "


@pytest.fixture
def claude(tmp_path, api, program) -> Claude:
    claude = Claude(tmp_path, api, program, FROM_PYPI)
    claude.compactctl("hook", "install", "--agent", "claude-code", "--replace-summary")
    return claude


def plugin(claude: Claude) -> pathlib.Path:
    return claude.home / ".claude" / "skills" / "compact-view" / "hooks" / "view.ts"


def talk(claude: Claude, api) -> None:
    """A session with thinking, parallel calls and long results."""
    for n in range(6):
        (claude.work / f"rows_{n}.py").write_text(f"# file {n}\n" + f"{FILLER}{n}\n" * 150)
    read = lambda n: ("Read", {"file_path": str(claude.work / f"rows_{n}.py")})  # noqa: E731
    api.answers = [Answer("I look.", [read(0), read(1)], "First the rows."), Answer("Rows 0 and 1 are read.")]
    claude.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    api.answers = [Answer("On.", [read(2), read(3)]), Answer("More.", [read(4)]), Answer("Rows 2 to 4 are read.")]
    claude.go_on("Then look at src/ledger/totals.py.")
    claude.go_on("And at the tests.")


def check_view(api, before: int) -> None:
    """What was asked since, and what the last request holds."""
    assert not [request for request in api.requests[before:] if request["summary"]], "no model wrote a summary"
    last = api.turns()[-1]
    assert RULE in last, "our view keeps the rule"
    for n in range(5):
        assert f"{FILLER}{n}" in json.dumps([request["body"] for request in api.requests[:before]])
        assert last.count(f"{FILLER}{n}") < 150, f"the result of file {n} is cut or left out"
    assert "Tool result missing" not in last
    assert last.count("Rows 0 and 1 are read.") <= 1, "nothing is there twice"
    messages = api.requests[-1]["body"]["messages"]
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert sorted(calls) == sorted(results), "every call has its result"


def test_a_compaction_by_hand_takes_our_view_and_asks_no_model(claude, api):
    talk(claude, api)
    before = len(api.requests)
    answer = claude.go_on("/compact keep the rows")
    assert not answer["is_error"]
    assert len(api.requests) == before, "no request of any kind"
    claude.go_on("Go on.")
    check_view(api, before)
    assert "SessionStart hook additional context" not in api.turns()[-1], "nothing is told beside the view"
    assert RULE in claude.compactctl("recall", "amount_legacy", "column", "--json")
    # The second compaction goes on from the first.
    talk(claude, api)
    claude.go_on("/compact")
    claude.go_on("And on.")
    check_view(api, before)


def test_an_automatic_compaction_takes_our_view_and_asks_no_model(claude, api):
    talk(claude, api)
    before = len(api.requests)
    api.longest = 1
    answer = claude.go_on("One more thing.")
    assert not answer["is_error"]
    check_view(api, before)


def test_a_tool_loop_that_overflows_goes_on_with_its_thinking(claude, api):
    talk(claude, api)
    before = len(api.requests)
    read = ("Read", {"file_path": str(claude.work / "rows_5.py")})
    api.answers = [Answer("One more.", [read], "The last of the rows.")]
    api.longest = len(api.requests[-1]["body"]["messages"]) + 3
    answer = claude.go_on("Look at the last file.")
    assert not answer["is_error"]
    assert api.longest is None, "a request was refused"
    check_view(api, before)
    last = api.requests[-1]["body"]["messages"]
    [looped] = [m for m in last if "One more." in json.dumps(m["content"])]
    assert [block["type"] for block in looped["content"]] == ["thinking", "text", "tool_use"]


@pytest.mark.parametrize("trouble", ["missing", "fails", "hangs", "talks nonsense"])
def test_a_plugin_that_fails_leaves_the_summary_to_the_agent(claude, api, trouble):
    scripts = {"fails": "exit 1", "hangs": "sleep 60", "talks nonsense": "echo '{\"messages\": [{\"kept\": 999}]}'"}
    other = claude.home / "compactctl"
    if trouble != "missing":
        other.write_text(f"#!/bin/sh\n{scripts[trouble]}\n")
        other.chmod(0o755)
    code = plugin(claude).read_text()
    assert claude.program in code and "timeoutMs: 30000" in code
    plugin(claude).write_text(code.replace(claude.program, str(other)).replace("timeoutMs: 30000", "timeoutMs: 1000"))
    talk(claude, api)
    api.summary = "The ledger moves to the new API."
    answer = claude.go_on("/compact")
    assert not answer["is_error"]
    assert len(api.summaries()) == 1
    claude.go_on("Go on.")
    assert api.summary in api.turns()[-1]


def test_a_version_that_loads_no_such_plugin_writes_its_own_summary(tmp_path, api, program, claude_from_npm):
    claude = Claude(tmp_path, api, program, claude_from_npm)
    claude.compactctl("hook", "install", "--agent", "claude-code", "--replace-summary")
    talk(claude, api)
    api.summary = "The ledger moves to the new API."
    claude.go_on("/compact")
    assert len(api.summaries()) == 1
    claude.go_on("Go on.")
    assert api.summary in api.turns()[-1]


def test_an_agent_without_the_plugin_is_as_before(claude, api):
    claude.compactctl("hook", "uninstall", "--agent", "claude-code")
    assert not (claude.home / ".claude" / "skills").exists()
    assert not claude.settings.exists()
    talk(claude, api)
    claude.go_on("/compact")
    assert len(api.summaries()) == 1
