"""Agents through `compactctl launch`: a task of several windows, against a model that enforces its own."""

import json
import os
import pathlib
import signal
import subprocess

import pytest
from agent import RULE, Agent
from limited import CHARACTERS, DONE, Limited
from test_claude import FROM_PYPI, Claude
from test_codex import Codex, Server
from test_gemini import Gemini
from test_opencode import OpenCode

WINDOW = 60_000
#: Steps that together print more than five windows.
STEPS = 42
TASK = f"Work through all steps of the migration, one command at a time. {RULE}"
#: Words of refusals: an agent that was refused wrote them down.
REFUSALS = ["prompt is too long", "context_length_exceeded", "exceeds the context window", "exceeds the maximum number"]


class LaunchedClaude(Claude):
    remembers = True
    transcripts = ".claude/projects/**/*.jsonl"

    def work_on(self, prompt: str, *more: str) -> str:
        return self.say(prompt, "--allowedTools", "Bash,Task,Agent", *more)["result"]

    def resume(self, prompt: str) -> str:
        return self.work_on(prompt, "--continue")

    def provider(self) -> str:
        return "anthropic"


class LaunchedNewClaude(LaunchedClaude):
    #: A model that binds what it thinks to all that was said before.
    model = "claude-sonnet-5-5"


class LaunchedCodex(Codex):
    remembers = True
    transcripts = ".codex/sessions/**/*.jsonl"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        config = self.settings / "config.toml"
        limit = "model_auto_compact_token_limit = 50000\n"
        # It would show no more than the ends of what a step prints.
        free = 'approval_policy = "never"\nsandbox_mode = "danger-full-access"\ntool_output_token_limit = 20000\n'
        config.write_text(config.read_text().replace(limit, free))

    def work_on(self, prompt: str, *more: str) -> str:
        said = [event["item"] for event in self.say(prompt, *more) if event["type"] == "item.completed"]
        return [item["text"] for item in said if item["type"] == "agent_message"][-1]

    def resume(self, prompt: str) -> str:
        return self.work_on(prompt, "resume", "--last")

    def provider(self) -> str:
        return "openai-responses"


class LaunchedGemini(Gemini):
    #: A session that it resumes may lack the first request: its opening takes that place.
    remembers = False
    transcripts = ".gemini/tmp/**/*.json*"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        # It would ask the model now and then whether the work goes in circles.
        self.own_settings["model"] = {"compressionThreshold": 0.9, "disableLoopDetection": True}
        self.settings.write_text(json.dumps(self.own_settings))

    def work_on(self, prompt: str, *more: str) -> str:
        # Its answer is all that was said on the way.
        return self.say(prompt, "--approval-mode", "yolo", *more)["response"].rsplit(".", 2)[-2] + "."

    def resume(self, prompt: str) -> str:
        return self.work_on(prompt, "--resume", "latest")

    def provider(self) -> str:
        return "gemini"


class LaunchedOpenCode(OpenCode):
    remembers = True
    transcripts = ".local/share/opencode/*.db"

    def work_on(self, prompt: str, *more: str) -> str:
        lines = self.start("run", "--format", "json", *more, prompt).splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event["part"]["text"] for event in events if event.get("type") == "text"][-1]

    def resume(self, prompt: str) -> str:
        return self.work_on(prompt, "--continue")

    def provider(self) -> str:
        return "openai-chat"


@pytest.fixture
def model():
    model = Limited(STEPS, WINDOW)
    yield model
    model.free.set()
    model.server.shutdown()
    assert not model.faults, "every prompt is one that its provider accepts"
    assert not model.thawed, "a view stays as it is until the next one is made"


@pytest.fixture
def gemini_command(tmp_path, gemini_program) -> list[str]:
    """Gemini CLI under its own name, as npm would install it."""
    script = tmp_path / "bin" / "gemini"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {" ".join(gemini_program)} "$@"\n')
    script.chmod(0o755)
    return [str(script)]


AGENTS = {
    "claude-pypi": (LaunchedClaude, lambda request: FROM_PYPI),
    "claude-npm": (LaunchedNewClaude, lambda request: request.getfixturevalue("claude_from_npm")),
    "codex": (LaunchedCodex, lambda request: request.getfixturevalue("codex_program")),
    "gemini": (LaunchedGemini, lambda request: request.getfixturevalue("gemini_command")),
    "opencode": (LaunchedOpenCode, lambda request: request.getfixturevalue("opencode_program")),
}


def launched(name: str, request, folder, model, program, **more: str) -> Agent:
    kind, command = AGENTS[name]
    agent = kind(folder, model, program, [program, "launch", *command(request)])
    agent.patience = 900
    agent.environment |= {"COMPACT_MAX_CONTEXT_TOKENS": str(WINDOW)} | more
    return agent


@pytest.fixture(params=AGENTS)
def agent(request, tmp_path, model, program):
    return launched(request.param, request, tmp_path, model, program)


def steps_of(agent) -> list[str]:
    file = agent.work / "steps.txt"
    return file.read_text().split() if file.exists() else []


def check_no_refusal(agent) -> None:
    """No refusal reached the agent: what it wrote down has none."""
    files = list(agent.home.glob(agent.transcripts))
    assert files, agent.transcripts
    for file in files:
        text = file.read_bytes().decode(errors="replace")
        assert not any(words in text for words in REFUSALS), file


def check_views(agent, model, tmp_path) -> None:
    """Views are what their provider accepts, and hold the rule."""
    views = model.views()
    assert views
    for body in [views[0], views[-1]]:
        assert RULE in json.dumps(body, ensure_ascii=False)
        file = tmp_path / "view.json"
        file.write_text(json.dumps(body))
        agent.compactctl("validate", str(file), "--provider", agent.provider())


def test_a_task_of_five_windows_ends_and_is_resumed(agent, model, tmp_path):
    assert agent.work_on(TASK) == DONE
    assert steps_of(agent) == [f"step-{step}" for step in range(1, STEPS + 1)]
    assert not model.summaries, "no model was asked for a summary"
    assert not model.refused, "the window was known, so nothing was refused"
    check_no_refusal(agent)
    written = sum(file.stat().st_size for file in agent.home.glob(agent.transcripts))
    assert written > 5 * WINDOW * CHARACTERS, "the agent's own history is five windows long"
    check_views(agent, model, tmp_path)
    model.words = DONE
    for number in range(3):
        before = len(model.accepted)
        assert agent.resume(f"Is everything done? ({number})") == DONE
        assert len(model.accepted) > before
        assert not agent.remembers or RULE in json.dumps(model.accepted[-1], ensure_ascii=False)
    assert not model.refused
    check_no_refusal(agent)


@pytest.mark.parametrize("name", ["claude-pypi", "codex"])
def test_a_window_that_nobody_knows_is_learned_before_the_agent_hears_of_it(name, request, tmp_path, model, program):
    agent = launched(name, request, tmp_path, model, program)
    del agent.environment["COMPACT_MAX_CONTEXT_TOKENS"]
    model.steps = 12
    assert agent.work_on(TASK) == DONE
    assert steps_of(agent) == [f"step-{step}" for step in range(1, 13)]
    assert model.refused, "more than the window was sent"
    assert not model.summaries
    check_no_refusal(agent)
    check_views(agent, model, tmp_path)


def talk(agent, model) -> None:
    """A few turns without work, so that there is something to summarize."""
    model.words = "Understood."
    agent.work_on(f"We move src/ledger/rows.py to the new API. {RULE}")
    for file in ["totals", "views"]:
        agent.resume(f"Then look at src/ledger/{file}.py and say what is there. " + f"It is about {file}. " * 1_000)


def check_summary_is_ours(model) -> None:
    assert not model.summaries, "no model was asked"
    held = json.dumps(model.accepted[-1], ensure_ascii=False)
    assert "COMPACT-SUMMARY" in held and RULE in held


@pytest.mark.parametrize("name", ["claude-pypi", "claude-npm"])
def test_a_compaction_by_hand_is_answered_by_us(name, request, tmp_path, model, program):
    agent = launched(name, request, tmp_path, model, program)
    if name == "claude-npm":
        # It keeps what it thought last behind its new summary; a provider's refusal would make it ask again without.
        model.excused = "The block is bound to a different conversation."
    talk(agent, model)
    agent.resume("/compact keep it short")
    agent.resume("Go on.")
    check_summary_is_ours(model)


def test_gemini_compresses_by_hand_and_is_answered_by_us(request, tmp_path, model, program):
    gemini = launched("gemini", request, tmp_path, model, program)
    talk(gemini, model)
    assert not sessions_of(gemini)
    # It also sends the word to the model, and may end before it has saved what it was answered.
    gemini.resume("/compress")
    assert not model.summaries, "no model was asked"
    assert sessions_of(gemini), "we were"


#: What makes Codex ask for a message, for an item that only a provider can read, and at a path of its own.
CODEX_WAYS = {
    "local": lambda config: config,
    "remote": lambda config: config.replace('name = "local"', 'name = "OpenAI"'),
    "endpoint": lambda config: config.replace('name = "local"', 'name = "OpenAI"').replace(
        "[features]", "[features]\nremote_compaction_v2 = false"
    ),
}


@pytest.mark.parametrize("way", CODEX_WAYS)
def test_codex_compacts_by_hand_and_is_answered_by_us(way, request, tmp_path, model, program):
    codex = launched("codex", request, tmp_path, model, program)
    config = codex.settings / "config.toml"
    config.write_text(CODEX_WAYS[way](config.read_text()))
    model.words = "Understood."
    with Server(codex) as server:
        thread = server.ask("thread/start", cwd=str(codex.work))["thread"]["id"]

        def say(text: str) -> None:
            server.turn("turn/start", threadId=thread, input=[{"type": "text", "text": text}])

        say(f"We move src/ledger/rows.py to the new API. {RULE}")
        say("Then look at src/ledger/totals.py. " + "It is about totals. " * 100)
        server.turn("thread/compact/start", threadId=thread)
        say("Go on.")
    check_summary_is_ours(model)


#: What makes each agent compact by itself.
EAGER = {
    "claude-pypi": {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, "codex": {}, "gemini": {}, "opencode": {},
}


@pytest.mark.parametrize("name", EAGER)
def test_a_compaction_of_its_own_accord_is_answered_by_us(name, request, tmp_path, model, program):
    agent = launched(name, request, tmp_path, model, program, **EAGER[name])
    del agent.environment["COMPACT_MAX_CONTEXT_TOKENS"]
    talk(agent, model)
    if name == "codex":
        config = agent.settings / "config.toml"
        config.write_text("model_auto_compact_token_limit = 50000\n" + config.read_text())
    if name == "gemini":
        agent.own_settings["model"]["compressionThreshold"] = 0.002
        agent.settings.write_text(json.dumps(agent.own_settings))
    model.reported = 95_000
    agent.resume("And at the tests.")
    agent.resume("Go on.")
    check_summary_is_ours(model)


def test_a_nudged_agent_compacts_of_its_own_accord_and_is_answered_by_us(request, tmp_path, model, program):
    agent = launched("codex", request, tmp_path, model, program, COMPACT_GATEWAY_NUDGE_CLIENTS="true")
    config = agent.settings / "config.toml"
    config.write_text(f"model_auto_compact_token_limit = {2 * WINDOW}\n" + config.read_text())
    model.steps = 30
    assert agent.work_on(TASK) == DONE
    assert steps_of(agent) == [f"step-{step}" for step in range(1, 31)]
    assert not model.refused and not model.summaries, "views were enough, and no model was asked for a summary"
    check_no_refusal(agent)
    [transcript] = agent.home.glob(agent.transcripts)
    kinds = [json.loads(line)["type"] for line in transcript.read_text().splitlines()]
    assert "compacted" in kinds, "what the model used alone would not have made it compact"


def sessions_of(agent) -> set[str]:
    listed = json.loads(agent.compactctl("archive", "list", "--json"))
    return {session["session_id"] for session in listed["sessions"]}


@pytest.mark.parametrize("name", ["claude-pypi", "claude-npm", "codex", "gemini", "opencode"])
def test_a_sub_agent_is_compacted_apart_from_its_parent(name, request, tmp_path, model, program):
    agent = launched(name, request, tmp_path, model, program)
    model.steps, model.subtask = 12, "Work through the steps of this part."
    assert agent.work_on(TASK) == DONE
    assert steps_of(agent) == [f"step-{step}" for step in range(1, 13)]
    assert not model.refused and not model.summaries
    check_no_refusal(agent)
    [session] = sessions_of(agent)
    assert "/" in session or "claude" not in name, "the sub-agent has a session of its own, and its parent needed none"
    views = model.views()
    assert views and all(model.subtask in json.dumps(view) for view in views)


@pytest.mark.parametrize("name", ["claude-pypi", "codex", "gemini", "opencode"])
def test_ctrl_c_in_the_middle_of_an_answer_ends_the_agent_and_the_request(name, request, tmp_path, model, program):
    agent = launched(name, request, tmp_path, model, program)
    model.steps, model.silent_step = 4, 3
    # An agent that was interrupted may go on from a call that nobody answered, and views are not made here.
    model.excused = ""
    arguments = {
        "claude-pypi": ["-p", TASK, "--model", LaunchedClaude.model, "--allowedTools", "Bash"],
        "codex": ["exec", "--skip-git-repo-check", "--json", TASK],
        "gemini": ["-p", TASK, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"],
        "opencode": ["run", "--format", "json", TASK],
    }[name]
    started = subprocess.Popen(
        [*agent.command, *arguments], cwd=agent.work, env=agent.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    assert model.is_silent.wait(240)
    started.send_signal(signal.SIGINT)
    started.wait(120)
    assert model.was_left.wait(60), "the upstream heard of it"
    model.silent_step = None
    assert agent.resume("Go on.") == DONE
    assert set(steps_of(agent)) == {f"step-{step}" for step in range(1, 5)}


TWICE = """
import signal, sys
signals = {signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
assert signal.sigtimedwait(signals, 60), "no signal came"
print("twice" if signal.sigtimedwait(signals, 1) else "once", flush=True)
sys.exit(3)
"""


def test_keys_of_a_terminal_are_heard_once(tmp_path, program):
    import pty

    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "COMPACT_STORAGE_PATH": str(tmp_path / "store")}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execve(program, [program, "launch", "--", "python3", "-c", TWICE], environment)
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    while b"once" not in said and b"twice" not in said:
        said += os.read(terminal, 1024)
    assert b"once" in said
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
