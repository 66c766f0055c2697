"""`compactctl compact --append` between two runs of an agent: what it is resumed with is the view, and what
came after it, each thing once.

What a request must hold is taken from the view that `compact -o` writes of the same transcript, which is another
way through the program; what an agent adds by itself at every start (its surroundings, its reminders) is left out.
"""

import json
import pathlib
import shutil
import subprocess

import pytest
from agent import RULE
from scripted import Answer
from test_claude import FROM_PYPI, Claude
from test_codex import Codex, Server
from test_gemini import Gemini

LISTING = "seq -s ' ' 1 1500"


def compact(agent, *more: str) -> None:
    agent.compactctl("compact", str(agent.file()), "--budget", agent.budget, *more)


def view_of(agent, folder: pathlib.Path) -> list[dict]:
    """The lines of the view that `--append` is about to add, made with a copy of the store."""
    if agent.store.exists():
        shutil.copytree(agent.store, folder / "store")
    agent.environment["COMPACT_STORAGE_PATH"] = str(folder / "store")
    compact(agent, "-o", str(folder / "view.jsonl"))
    agent.environment["COMPACT_STORAGE_PATH"] = str(agent.store)
    return [json.loads(line) for line in (folder / "view.jsonl").read_text().splitlines()]


def check_three_resumes(agent, api, folder: pathlib.Path) -> None:
    """Appends the view and resumes three times; each request holds the view and what was said since."""
    folder.mkdir()
    original = agent.file().read_bytes()
    expected = [*agent.said_in(view_of(agent, folder))]
    assert any("COMPACT-SUMMARY" in str(said) for said in expected), "it was compacted"
    compact(agent, "--append")
    assert agent.file().read_bytes().startswith(original), "what the agent wrote stays as it is"
    assert not list(agent.file().parent.glob(".*")), "nothing else is left in the agent's folder"
    for number in range(1, 4):
        prompt, answer = f"Resume number {number} of {folder.name}.", f"Answer {number} of {folder.name}."
        api.answers = [Answer(answer)]
        agent.go_on(prompt)
        expected.append(("user", prompt))
        assert agent.said_to(api) == expected, f"resume {number}"
        expected.append(("assistant", answer))


def work(agent, api, tool) -> None:
    """A session with parallel calls, thoughts and long results."""
    api.answers = [
        Answer("I look around.", [tool("echo one; " + LISTING), tool("echo two")], thinking="Two things at once."),
        Answer("Both are there.", thinking="That was easy."),
    ]
    agent.say(f"We move src/ledger/rows.py to the new API. {RULE}")
    api.answers = [Answer("", [tool("echo three; " + LISTING), tool("echo four; exit 3")]), Answer("Four failed.")]
    agent.go_on("Look at src/ledger/totals.py.")


def more_work(agent, api, tool) -> None:
    api.answers = [
        Answer("I count.", [tool("echo five; " + LISTING)]),
        Answer("And again.", [tool("echo six"), tool("echo seven"), tool("echo eight")], thinking="Three now."),
        Answer("Counted."),
    ]
    agent.go_on("Count the rows.")
    api.answers = [Answer("The port is 9187.")]
    agent.go_on("Which port serves the metrics?")


class ClaudeSession(Claude):
    budget = "2500"

    def say(self, prompt: str, *more: str) -> dict:
        return super().say(prompt, "--allowedTools", "Bash,Agent", *more)

    def file(self) -> pathlib.Path:
        [file] = self.home.glob(".claude/projects/*/*.jsonl")
        return file

    @staticmethod
    def tool(command: str) -> tuple[str, dict]:
        return "Bash", {"command": command, "description": "runs it"}

    @staticmethod
    def said_in(lines: list[dict]):
        for line in lines:
            if line["type"] in ("user", "assistant"):
                yield from blocks(line["message"])

    @staticmethod
    def said_to(api) -> list:
        return [said for message in json.loads(api.turns()[-1]) for said in blocks(message)]


def blocks(message: dict):
    """What a message of Anthropic's says, without the client's reminders."""
    role, content = message["role"], message["content"]
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match block["type"]:
            case "text":
                if not block["text"].startswith("<system-reminder>"):
                    yield role, block["text"].strip()
            case "thinking":
                yield "thinking", block["thinking"]
            case "tool_use":
                yield "call", block["id"], block["name"], block["input"]
            case "tool_result":
                yield "result", block["tool_use_id"], plain(block["content"])
            case kind:
                raise AssertionError(f"a block of type {kind}")


def plain(content) -> str:
    if isinstance(content, str):
        return content.strip()
    return "\n".join(part["text"] for part in content).strip()


@pytest.fixture(params=["pypi", "npm"])
def claude(request, tmp_path, api, program) -> ClaudeSession:
    command = FROM_PYPI if request.param == "pypi" else request.getfixturevalue("claude_from_npm")
    return ClaudeSession(tmp_path, api, program, command)


def test_claude_code_resumes_from_the_view_and_goes_on_from_it(claude, api, tmp_path):
    work(claude, api, claude.tool)
    helper = {"description": "looks", "prompt": "Look.", "subagent_type": "general-purpose", "run_in_background": False}
    api.answers = [
        Answer("Somebody else looks.", [("Agent", helper)]),
        Answer("I look.", [claude.tool("echo inner; " + LISTING)]), Answer("Inner words."), Answer("It was looked at."),
    ]
    claude.go_on("Let a sub-agent look.")
    more_work(claude, api, claude.tool)
    check_three_resumes(claude, api, tmp_path / "first")
    # An earlier boundary of the agent's own, and one of ours.
    api.summary = "The ledger moves."
    claude.go_on("/compact")
    more_work(claude, api, claude.tool)
    check_three_resumes(claude, api, tmp_path / "second")
    more_work(claude, api, claude.tool)
    check_three_resumes(claude, api, tmp_path / "third")


class CodexSession(Codex):
    budget = "2500"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        config = self.settings / "config.toml"
        config.write_text('approval_policy = "never"\nsandbox_mode = "danger-full-access"\n' + config.read_text())

    def file(self) -> pathlib.Path:
        [file] = self.settings.glob("sessions/**/*.jsonl")
        return file

    @staticmethod
    def tool(command: str) -> tuple[str, dict]:
        return "exec_command", {"cmd": command}

    @staticmethod
    def said_in(lines: list[dict]):
        for line in lines:
            if line["type"] == "response_item":
                yield from item(line["payload"])

    @staticmethod
    def said_to(api) -> list:
        return [said for one in json.loads(api.turns()[-1]) for said in item(one)]


#: What Codex tells of itself and its surroundings.
SURROUNDINGS = ("You are a coding agent", "<environment_context>", "<permissions instructions>", "<skills_instructions>")


def item(item: dict):
    """What an item of Responses says."""
    match item["type"]:
        case "message":
            for part in item["content"]:
                if not part["text"].startswith(SURROUNDINGS):
                    yield item["role"], part["text"].strip()
        case "reasoning":
            yield "thinking", item["summary"][0]["text"]
        case "function_call":
            yield "call", item["call_id"], item["name"], json.loads(item["arguments"])
        case "function_call_output":
            yield "result", item["call_id"], item["output"].strip()
        case kind:
            raise AssertionError(f"an item of type {kind}")


@pytest.fixture
def codex(tmp_path, responses, program, codex_program) -> CodexSession:
    return CodexSession(tmp_path, responses, program, codex_program)


def test_codex_resumes_from_the_view_and_goes_on_from_it(codex, responses, tmp_path):
    work(codex, responses, codex.tool)
    more_work(codex, responses, codex.tool)
    check_three_resumes(codex, responses, tmp_path / "first")
    # An earlier boundary of the agent's own, and one of ours.
    responses.tokens, responses.summary = 60_000, "The ledger moves."
    codex.go_on("Go on.")
    codex.go_on("Go on again.")
    assert responses.summaries()
    more_work(codex, responses, codex.tool)
    check_three_resumes(codex, responses, tmp_path / "second")


def test_a_session_that_codex_has_open_is_left_alone(codex, responses):
    with Server(codex) as server:
        thread = server.ask("thread/start", cwd=str(codex.work))["thread"]["id"]
        responses.answers = [Answer("Here.", [codex.tool(LISTING)])]
        server.turn("turn/start", threadId=thread, input=[{"type": "text", "text": RULE}])
        before = codex.file().read_bytes()
        command = [codex.program, "compact", str(codex.file()), "--budget", "300", "--append"]
        done = subprocess.run(command, env=codex.environment, capture_output=True, text=True)
        assert done.returncode == 7 and "Codex has the session open" in done.stderr, done.stderr
        assert codex.file().read_bytes() == before


class GeminiSession(Gemini):
    budget = "5000"

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        super().__init__(folder, api, program, command)
        self.own_settings["model"]["compressionThreshold"] = 0.9
        self.settings.write_text(json.dumps(self.own_settings))

    def say(self, prompt: str, *more: str) -> dict:
        return super().say(prompt, "--yolo", *more)

    def file(self) -> pathlib.Path:
        """It begins another file when a session is resumed in another minute."""
        return max(self.home.glob(".gemini/tmp/*/chats/*.jsonl"), key=lambda file: file.stat().st_mtime_ns)

    @staticmethod
    def tool(command: str) -> tuple[str, dict]:
        return "run_shell_command", {"command": command, "description": "runs it"}

    @staticmethod
    def said_in(lines: list[dict]):
        """Gemini CLI keeps a result beside its call, and at times in a message of its own as well."""
        return without_repeated_results([said for line in lines for said in gemini_message(line)])

    @staticmethod
    def said_to(api) -> list:
        """Gemini CLI sends the results of tools once more with every resume, with us or without."""
        contents = json.loads(api.turns()[-1])
        return without_repeated_results([said for content in contents for said in gemini_parts(content)])


def without_repeated_results(said: list) -> list:
    return [one for at, one in enumerate(said) if one[0] != "result" or one not in said[:at]]


def gemini_message(message: dict):
    """What a message of a chat's file says; thoughts are not sent again."""
    if message.get("type") == "user":
        content = message["content"]
        yield from gemini_parts({"role": "user", "parts": [{"text": content}] if isinstance(content, str) else content})
    elif message.get("type") == "gemini":
        content, calls = message["content"], message.get("toolCalls", [])
        if isinstance(content, list):
            yield from gemini_parts({"role": "model", "parts": content})
        else:
            yield from [("assistant", content.strip())] if content else []
            yield from (("call", call["name"], call["args"]) for call in calls)
        # Beside each of several calls stand the results of all of them.
        results = [result for call in calls for result in call["result"]]
        once = {result["functionResponse"]["id"]: result for result in results}
        yield from gemini_parts({"role": "user", "parts": list(once.values())})


def gemini_parts(content: dict):
    """What a content of a request says."""
    role = {"user": "user", "model": "assistant"}[content["role"]]
    for part in content["parts"]:
        if "functionCall" in part:
            yield "call", part["functionCall"]["name"], part["functionCall"]["args"]
        elif "functionResponse" in part:
            yield "result", part["functionResponse"]["response"]["output"].strip()
        elif not part.get("thought") and not part["text"].startswith("<session_context>"):
            yield role, part["text"].strip()


@pytest.fixture
def gemini(tmp_path, gemini_api, program, gemini_program) -> GeminiSession:
    return GeminiSession(tmp_path, gemini_api, program, gemini_program)


def test_gemini_cli_resumes_from_the_view_and_goes_on_from_it(gemini, gemini_api, tmp_path):
    work(gemini, gemini_api, gemini.tool)
    more_work(gemini, gemini_api, gemini.tool)
    check_three_resumes(gemini, gemini_api, tmp_path / "first")
    # An earlier boundary of ours.
    more_work(gemini, gemini_api, gemini.tool)
    check_three_resumes(gemini, gemini_api, tmp_path / "second")
