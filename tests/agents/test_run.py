"""`compactctl run` with Claude Code and Codex themselves: one task, as many sessions as it takes."""

import json
import os
import pathlib
import signal
import subprocess
import time

import claude_agent_sdk
import pytest

from stepwise import DONE, Stepwise

RULE = "Never drop the column ledger_rows.amount_legacy before the September close."
TASK = f"Work through all steps of the migration, one command at a time. {RULE}"
KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
CLAUDE = pathlib.Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
WINDOW = 100_000


class Place:
    """An agent in a folder of its own, and `compactctl` beside it."""

    def __init__(self, folder: pathlib.Path, program: str, model: Stepwise):
        self.home, self.store, self.work = folder / "home", folder / "store", folder / "work"
        self.program, self.model = program, model
        self.agent = ""
        self.arguments: list[str] = []
        (self.work / ".git").mkdir(parents=True)
        self.home.mkdir()
        (self.work / "task.md").write_text(TASK)
        self.environment = {
            "HOME": str(self.home), "PATH": "/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8",
            "COMPACT_STORAGE_PATH": str(self.store),
        }

    def start(self, *more: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.program, "run", "--json", *more], cwd=self.work, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def begin(self, *more: str) -> subprocess.Popen:
        task = ["--session", "r1", "--agent", self.agent, "--prompt", "task.md", "--window", str(WINDOW)]
        bounds = [] if "--max-restarts" in more else ["--max-restarts", "9"]
        return self.start(*task, *bounds, *more, "--", *self.arguments)

    def resume(self, *more: str) -> subprocess.Popen:
        return self.start("--resume", "r1", *more)

    def steps(self) -> list[list[str]]:
        file = self.work / "steps.txt"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def use_claude(place: Place, program: str) -> None:
    place.agent = program
    place.arguments = ["--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]
    place.environment |= {
        "ANTHROPIC_BASE_URL": place.model.url, "ANTHROPIC_API_KEY": "sk-test-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
    }


def use_codex(place: Place, program: str) -> None:
    place.agent = program
    place.arguments = ["--skip-git-repo-check", "-c", "analytics.enabled=false", "-c", "features.plugins=false"]
    place.environment |= {"LOCAL_KEY": "dummy"}
    settings = place.home / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(
        'model = "gpt-5-codex"\nmodel_provider = "local"\napproval_policy = "never"\n'
        'sandbox_mode = "danger-full-access"\n[model_providers.local]\nname = "local"\n'
        f'base_url = "{place.model.url}/v1"\nenv_key = "LOCAL_KEY"\nwire_api = "responses"\n'
    )


@pytest.fixture
def model():
    model = Stepwise(steps=12)
    yield model
    model.free.set()
    model.server.shutdown()


@pytest.fixture(params=["claude", "codex"])
def place(request, tmp_path, program, model) -> Place:
    place = Place(tmp_path, program, model)
    if request.param == "claude":
        use_claude(place, str(CLAUDE))
    elif request.param == "claude from npm":
        use_claude(place, request.getfixturevalue("claude_from_npm")[0])
    else:
        use_codex(place, request.getfixturevalue("codex_program")[0])
    return place


class Ended:
    """A command that ended, with the events that it printed."""

    def __init__(self, process: subprocess.Popen, code: int):
        self.stdout, self.stderr = process.communicate(timeout=120)
        assert process.returncode == code, self.stdout[-3000:] + self.stderr
        self.events = [json.loads(line) for line in self.stdout.splitlines()]

    def of(self, kind: str) -> list[dict]:
        return [event for event in self.events if event.get("event") == kind]

    def error(self) -> dict:
        return self.events[-1]["error"]


def check_steps(place: Place) -> None:
    """Every step was done, once, by the same run, in the same folder."""
    expected = [[f"step-{n + 1}", "r1", str(place.work)] for n in range(place.model.steps)]
    assert place.steps() == expected


def check_sessions(place: Place, restarts: int) -> None:
    """Fresh sessions, each told the user's words and where the work stands."""
    openings = place.model.openings()
    assert len(openings) == restarts + 1
    assert all(RULE in opening for opening in openings)
    assert all("CONTINUING FROM PREVIOUS SESSION" in opening for opening in openings[1:])


@pytest.mark.parametrize("place", ["claude", "claude from npm", "codex"], indirect=True)
def test_a_task_is_carried_across_restarts(place):
    place.model.steps = 16
    ended = Ended(place.begin(), 0)
    check_steps(place)
    restarts = ended.of("context_restart")
    assert [restart["continuation_count"] for restart in restarts] == list(range(1, len(restarts) + 1))
    assert len(restarts) >= 3
    assert all(0.9 <= restart["pressure_ratio"] < 1 for restart in restarts)
    check_sessions(place, len(restarts))
    assert {event["source"] for event in ended.of("checkpoint")} == {"tagged"}
    [finished] = ended.of("run_finished")
    assert finished["text"] == DONE
    assert finished["counters"]["sessions"] == len(restarts) + 1
    kept = place.store / "runs" / "r1"
    lines = "".join(file.read_text() for file in sorted(kept.glob("session-*.jsonl")))
    assert all(f"step-{n + 1}" in lines for n in range(place.model.steps)), "every session is kept"


@pytest.mark.parametrize(
    ("answer", "source"),
    [("unclosed", "tagged"), ("untagged", "raw"), ("silent", "built"), ("refusing", "built"), ("too long", "built")],
)
def test_no_answer_stops_a_restart(place, answer, source):
    place.model.steps, place.model.checkpoint = 5, answer
    ended = Ended(place.begin(), 0)
    check_steps(place)
    restarts = len(ended.of("context_restart"))
    assert restarts >= 1
    check_sessions(place, restarts)
    assert {event["source"] for event in ended.of("checkpoint")} == {source}


def test_a_key_that_a_tool_printed_goes_into_no_other_session(place):
    place.model.steps, place.model.checkpoint = 5, "silent"
    place.model.command += f"; echo ' {KEY}'"
    Ended(place.begin(), 0)
    check_steps(place)
    openings = place.model.openings()
    assert len(openings) > 1
    assert all(KEY not in opening for opening in openings)
    kept = (place.store / "runs" / "r1").iterdir()
    with_key = [file.name for file in kept if KEY in file.read_text()]
    assert with_key and all(name.startswith("session-") for name in with_key), "the sessions are the original"


def test_a_prompt_that_is_refused_ends_a_session_and_not_the_work(place):
    place.model.steps, place.model.base, place.model.each = 5, 100, 100
    place.model.most_results = 3
    ended = Ended(place.begin(), 0)
    check_steps(place)
    assert ended.of("prompt_too_long") and ended.of("context_restart")
    assert ended.of("checkpoint_requested") == [], "a session that is over its limit is not asked"


def test_the_depth_limit_holds_and_the_run_can_be_resumed(place):
    ended = Ended(place.begin("--max-restarts", "1"), 5)
    assert len(ended.of("context_restart")) == 1
    assert "compactctl run --resume r1" in ended.error()["help"]
    assert 0 < len(place.steps()) < place.model.steps
    Ended(place.resume("--max-restarts", "9"), 0)
    check_steps(place)


def test_the_deadline_holds_across_restarts(place):
    place.model.slow_step = 6
    begun = time.monotonic()
    ended = Ended(place.begin("--timeout", "12s"), 5)
    assert 11 < time.monotonic() - begun < 25
    assert ended.of("context_restart"), "the time is that of all sessions"
    assert ended.error()["message"] == "the task took all of its 12 s and is not finished"
    place.model.free.set()
    place.model.slow_step = None
    Ended(place.resume("--timeout", "100s"), 0)
    check_steps(place)


def test_ctrl_c_leaves_a_run_that_can_be_resumed(place):
    place.model.slow_step = 6
    process = place.begin()
    for _ in range(1_000):
        if any("done:5" in request["text"] for request in place.model.requests):
            break
        time.sleep(0.05)
    time.sleep(0.5)
    agents = programs(place.agent)
    assert agents
    process.send_signal(signal.SIGINT)
    ended = Ended(process, 130)
    assert programs(place.agent) == [], "the agent ended with the run"
    assert ended.events[-1]["resume"] == "compactctl run --resume r1"
    assert "compactctl run --resume r1" in ended.stderr
    assert len(place.steps()) == 5
    place.model.slow_step = None
    place.model.free.set()
    again = Ended(place.resume(), 0)
    assert again.of("session_started")[0]["resumed"], "the session that was cut off goes on"
    check_steps(place)


def programs(agent: str) -> list[str]:
    """The processes of an agent that belong to this test's run."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(agent) == command[0] and b"COMPACT_RUN_ID=r1" in environment:
            found.append(process.name)
    return found
