"""The Claude Agent SDK: its hooks as the SDK calls them, its stores, and what its numbers mean."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    HookMatcher,
    ResultMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from compact import CompactManager
from compact.integrations.claude import (
    CompactSessionStore,
    context_tokens,
    get_repo_runs_dir,
    make_precompact_hook,
    make_session_start_hook,
)
from compact.runner import (
    ContextPressureError,
    ContextUsage,
    SessionRunner,
    build_continuation_prompt,
    checkpoint_request,
    extract_checkpoint,
)

from .conftest import chat, config


@pytest.fixture
def repo(tmp_path, monkeypatch):
    monkeypatch.delenv("COMPACT_STORAGE_PATH", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "repo"


def payload(path: Any, **more: Any) -> dict[str, Any]:
    return {"session_id": "s-1", "transcript_path": str(path), "trigger": "auto", **more}


def archives(repo: Path) -> list[Path]:
    return sorted((get_repo_runs_dir(repo) / "archives").iterdir())


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_text('{"type":"user"}\n', encoding="utf-8")
    return path


async def fire(repo: Path, hook_input: dict[str, Any]) -> Any:
    """As the SDK calls it: input, tool use id, context."""
    return await make_precompact_hook(repo)(hook_input, None, {"signal": None})


async def test_precompact_hook_archives_transcript(repo, transcript, caplog):
    caplog.set_level(logging.INFO)
    assert await fire(repo, payload(transcript)) == {}
    (copy,) = archives(repo)
    assert copy.read_bytes() == transcript.read_bytes()
    assert copy.name.startswith("s-1_") and copy.name.endswith("_transcript.jsonl")
    assert f"PreCompact: archived transcript (trigger='auto') to {copy} (0.0 KB)" in caplog.text


async def test_precompact_hook_creates_archive_dir(repo, transcript):
    folder = get_repo_runs_dir(repo) / "archives"
    assert not folder.exists()
    await fire(repo, payload(transcript))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_precompact_hook_handles_missing_transcript(repo, tmp_path, caplog):
    missing = tmp_path / "gone.jsonl"
    assert await fire(repo, payload(missing)) == {}
    assert f"PreCompact: transcript not found at {missing}" in caplog.text


async def test_precompact_hook_handles_missing_path(repo, caplog):
    assert await fire(repo, {}) == {}
    assert await fire(repo, {"session_id": "s-2", "transcript_path": ""}) == {}
    assert "no transcript_path provided for unknown" in caplog.text
    assert "no transcript_path provided for s-2" in caplog.text


async def test_precompact_hook_handles_io_error(repo, transcript, caplog):
    data = Path(os.environ["XDG_DATA_HOME"])
    data.parent.mkdir(exist_ok=True)
    data.write_text("a file where a folder should be")
    assert await fire(repo, payload(transcript)) == {}
    assert "PreCompact: failed to archive transcript:" in caplog.text


async def test_precompact_hook_redacts_as_the_archive_does(repo, transcript, tmp_path, monkeypatch):
    transcript.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": f"key {SECRET}"}}) + "\n")
    raw, redacted = (CompactManager(config(settings={"redaction": {"sinks": {"archive": on}}})) for on in (False, True))
    for manager, kept in ((None, True), (raw, True), (redacted, False)):
        await make_precompact_hook(repo, manager)(payload(transcript), None, None)
        assert (SECRET in archives(repo)[-1].read_text()) is kept
    assert archives(repo)[-1].name.endswith("_transcript-redacted.jsonl")
    # Without a manager the user's own configuration says so; one that is broken does as well.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "compact" / "config.yaml"
    file.parent.mkdir(parents=True)
    for settings in ("redaction: {sinks: {archive: true}}", "redaction: {sinks: {archve: 1}}"):
        file.write_text(settings)
        await fire(repo, payload(transcript))
        assert SECRET not in archives(repo)[-1].read_text()


async def test_precompact_hook_tells_repositories_apart(repo, transcript, tmp_path):
    folders = [get_repo_runs_dir(tmp_path / path) for path in ("a-b", "a/b", "a b")]
    assert len(set(folders)) == 3
    await make_precompact_hook(tmp_path / "a-b")(payload(transcript), None, None)
    assert [folder.exists() for folder in folders] == [True, False, False]


async def test_precompact_hook_leaves_no_half_of_a_transcript(repo, transcript):
    """On a disk that is full: a limit on how large a file may grow looks the same to who writes it."""
    transcript.write_text('{"type":"user"}\n' * 10_000)
    script = """
import asyncio, resource, sys
from compact.integrations.claude import make_precompact_hook
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
hook = make_precompact_hook(sys.argv[1])
sys.exit(0 if asyncio.run(hook({"session_id": "s", "transcript_path": sys.argv[2]}, None, None)) == {} else 1)
"""
    done = subprocess.run([sys.executable, "-c", script, str(repo), str(transcript)], timeout=60)
    assert done.returncode == 0
    assert [path for path in get_repo_runs_dir(repo).rglob("*") if path.is_file()] == []
    await fire(repo, payload(transcript))
    assert [copy.read_bytes() for copy in archives(repo)] == [transcript.read_bytes()]


async def test_precompact_hook_timestamp_uniqueness(repo, transcript):
    for _ in range(20):
        await fire(repo, payload(transcript))
    assert len(archives(repo)) == 20


async def test_precompact_hook_file_permissions(repo, transcript):
    transcript.chmod(0o644)
    before = os.umask(0)
    try:
        await fire(repo, payload(transcript))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(copy.stat().st_mode) for copy in archives(repo)] == [0o600]


async def test_precompact_hook_preserves_extension(repo, tmp_path):
    for name, expected in (("a.md", ".md"), ("b.jsonl", ".jsonl"), ("c", ".txt")):
        (tmp_path / name).write_text("x")
        await fire(repo, payload(tmp_path / name, session_id=f"../{name[0]}"))
    assert [copy.suffix for copy in archives(repo)] == [".md", ".jsonl", ".txt"]
    assert all(copy.parent == get_repo_runs_dir(repo) / "archives" for copy in archives(repo))


def test_a_repository_has_a_folder_of_its_own(repo, monkeypatch):
    assert get_repo_runs_dir("/home/cyou/mala").name == "-home-cyou-mala"
    assert get_repo_runs_dir("/a/b") != get_repo_runs_dir("/a/c")
    monkeypatch.setenv("COMPACT_STORAGE_PATH", "/elsewhere")
    assert get_repo_runs_dir("/a") == Path("/elsewhere/hooks/-a")


def test_the_hook_is_registered_like_any_other(repo):
    options = ClaudeAgentOptions(hooks={"PreCompact": [HookMatcher(hooks=[make_precompact_hook(repo)])]})
    assert len(options.hooks["PreCompact"][0].hooks) == 1


async def test_after_a_compaction_what_is_remembered_goes_before_the_model():
    manager = CompactManager(config())
    manager.preflight("known", chat(60))
    hook = make_session_start_hook(manager)
    assert await hook({"source": "startup", "session_id": "known"}) == {}
    assert await hook({"source": "compact", "session_id": "unheard-of"}) == {}
    answer = await hook({"source": "compact", "session_id": "known"}, None, {})
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert output["additionalContext"].startswith("What I remember now")


async def test_the_hooks_of_a_manager_work_together(repo, tmp_path, caplog):
    manager = CompactManager(config(window=30_000))
    lines = open("examples/coding-session.jsonl", encoding="utf-8").read()
    (tmp_path / "session.jsonl").write_text(lines, encoding="utf-8")
    hook = make_precompact_hook(repo, manager)
    assert await hook(payload(tmp_path / "session.jsonl"), None, {}) == {}
    answer = await make_session_start_hook(manager)({"source": "compact", "session_id": "s-1"}, None, {})
    assert "What I remember now" in answer["hookSpecificOutput"]["additionalContext"]
    (tmp_path / "odd.jsonl").write_bytes(b"\xff\xfe")
    assert await hook(payload(tmp_path / "odd.jsonl", session_id="odd"), None, {}) == {}
    assert "PreCompact: failed to read transcript" in caplog.text and len(archives(repo)) == 2


async def test_a_session_is_resumed_from_a_smaller_history():
    manager = CompactManager(config(window=30_000))
    store = CompactSessionStore(manager)
    lines = [json.loads(line) for line in open("examples/coding-session.jsonl", encoding="utf-8")]
    key = {"project_key": "p", "session_id": "resumed"}
    assert await store.load(key) is None
    await store.append(key, lines[:100])
    await store.append(key, lines[100:])
    loaded = await store.load(key)
    assert loaded[: len(lines)] == lines
    assert loaded[len(lines)]["subtype"] == "compact_boundary"
    assert any(line.get("isCompactSummary") for line in loaded[len(lines) :])
    over = CompactSessionStore(manager, underlying=store)
    await over.append({**key, "subpath": "sub"}, lines[:3])
    assert await over.load({**key, "subpath": "sub"}) == lines[:3]
    small = {"project_key": "p", "session_id": "small"}
    await store.append(small, lines[:3])
    assert await store.load(small) == lines[:3]
    await store.append({"session_id": "odd"}, [{"type": "user", "uuid": 1, "message": 7, "parentUuid": None}])
    assert len(await store.load({"session_id": "odd"})) == 1


def said(text: str, usage: dict[str, int] | None) -> AssistantMessage:
    return AssistantMessage(content=[TextBlock(text)], model="m", usage=usage)


def result(usage: dict[str, int] | None = None, text: str = "done") -> ResultMessage:
    return ResultMessage("success", 1, 1, False, 1, "session-1", usage=usage, result=text, total_cost_usd=0.0)


def counted(n: int) -> dict[str, int]:
    return {"input_tokens": n, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 7, "output_tokens": 3}


def test_only_one_of_three_numbers_is_the_size_of_a_context():
    messages = [said("a", counted(100)), said("b", counted(200)), result({"input_tokens": 300, "output_tokens": 9})]
    assert context_tokens(messages) == 217
    assert context_tokens([said("a", None), result(counted(5))]) is None


def test_usage_adds_up_and_can_be_switched_off():
    usage = ContextUsage()
    usage.add_turn(input_tokens=100, output_tokens=200, cache_read_tokens=1_000)
    usage.add_turn(input_tokens=50, output_tokens=75, cache_read_tokens=500)
    assert usage == ContextUsage(150, 275, 1_500)
    usage.add_turn(input_tokens=-5, output_tokens=-7)
    assert usage == ContextUsage(150, 275, 1_500)
    assert ContextUsage(1_000, 2_000, 1_000_000).pressure_ratio(10_000) == 0.3
    assert ContextUsage(1_000, 2_000).pressure_ratio(0) == 0.0 and ContextUsage(9, 9).pressure_ratio(6) == 3.0
    error = ContextPressureError("s", usage, 850)
    assert (error.input_tokens, error.output_tokens, error.cache_read_tokens, error.pressure_ratio) == (150, 275, 1_500, 0.5)
    usage.reset()
    assert usage == ContextUsage() and usage.is_tracking_enabled()
    usage.add_turn(input_tokens=7, output_tokens=7)
    usage.disable_tracking()
    usage.add_turn(input_tokens=7, output_tokens=7)
    assert (usage.is_tracking_enabled(), usage.output_tokens, usage.pressure_ratio(10)) == (False, 7, 0.0)
    usage.reset()
    assert (usage.is_tracking_enabled(), usage.output_tokens, usage.pressure_ratio(10)) == (False, 0, 0.0)


async def test_a_threshold_above_one_never_restarts():
    client = Client([[[said("a", {"input_tokens": 9_000, "output_tokens": 1}), result()]]])
    run = await SessionRunner(client, context_restart_threshold=1.1, context_limit=100).run("go")
    assert (run.continuation_count, client.opened, client.interrupts) == (0, 1, 0)


class Client:
    """A scripted ClaudeSDKClient: each session is a list of answers, each a list of messages."""

    def __init__(self, sessions: list[list[list[Any]]]) -> None:
        self.sessions, self.prompts, self.opened, self.interrupts = sessions, [], 0, 0
        self.answers: list[list[Any]] = []

    def __call__(self) -> Client:
        return self

    async def __aenter__(self) -> Client:
        self.answers = list(self.sessions[self.opened])
        self.opened += 1
        return self

    async def __aexit__(self, *_: Any) -> None:
        pass

    async def query(self, prompt: str) -> None:
        self.prompts.append(prompt)

    async def interrupt(self) -> None:
        self.interrupts += 1

    async def receive_response(self) -> Any:
        for message in self.answers.pop(0):
            if isinstance(message, Exception):
                raise message
            yield message


TASK = "Mend src/ledger.py. Never drop the column amount_legacy."
CHECKPOINT = "Sure.\n<checkpoint>\n## Goal\nMend {it}\n</checkpoint>"


def working(n: int) -> list[Any]:
    """A tool is called and answers while the window fills; then another is begun."""
    edit = ToolUseBlock(f"t{n}", "Edit", {"file_path": "src/ledger.py", "new_string": "def add_rows(): ..."})
    calls = [ThinkingBlock("Hm.", "sig"), TextBlock("I edit."), edit]
    answered = UserMessage([ToolResultBlock(f"t{n}", "edited", None)])
    return [AssistantMessage(calls, "m", usage=counted(190_000)), answered]


async def test_a_full_context_ends_the_session_and_not_the_task(caplog):
    caplog.set_level(logging.INFO)
    full = [[*working(1), result(counted(999_999))], [said(CHECKPOINT, counted(1)), result()]]
    client = Client([full, full, [[said("…", counted(500)), result(text="mended")]]])
    seen: list[Any] = []
    run = await SessionRunner(client, on_message=seen.append).run(TASK)
    assert (run.result, run.continuation_count, client.opened) == ("mended", 2, 3)
    assert client.prompts == [TASK, checkpoint_request(), run.prompts[0], checkpoint_request(), run.prompts[1]]
    first = run.prompts[0]
    assert first.startswith("CONTINUING FROM PREVIOUS SESSION") and first.endswith("Do not repeat completed work.")
    assert TASK in first and "Mend {it}" in first
    assert "def add_rows" in first.split("quoted from the session")[1], "what the checkpoint left out is put back"
    assert run.sources == ["tagged", "tagged"]
    assert "context restart #2 at 95.0%" in caplog.text
    assert len(seen) == 8 and run.usage.pressure_ratio() < 0.01


async def test_a_turn_that_fills_the_window_is_cut_once_between_tools():
    calls = [ToolUseBlock("a", "Read", {}), ToolUseBlock("b", "Read", {})]
    answer = [
        AssistantMessage(calls, "m", usage=counted(190_000)),
        UserMessage([ToolResultBlock("a", [{"type": "text", "text": "x"}], False)]),
        AssistantMessage([TextBlock("of a subagent")], "m", usage=counted(1), parent_tool_use_id="a"),
    ]
    rest = [UserMessage([ToolResultBlock("b", None, True)]), UserMessage("interrupted"), *working(3), result()]
    client = Client([[[*answer, *rest], [said("none", None)]], [[said("…", counted(5)), result(text="mended")]]])
    interrupted_after: list[int] = []
    seen: list[Any] = []
    runner = SessionRunner(client, on_message=lambda m: (seen.append(m), interrupted_after.append(client.interrupts)))
    assert (await runner.run(TASK)).result == "mended"
    assert client.interrupts == 1 and interrupted_after[:5] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("answer", [RuntimeError("prompt is too long"), said("I'm sorry, I cannot do that.", None)])
async def test_a_restart_depends_on_nobodys_answer(answer, caplog):
    client = Client([[[*working(1), result()], [answer]], [[said("…", counted(5)), result(text="mended")]]])
    run = await SessionRunner(client).run(TASK)
    assert (run.result, run.sources) == ("mended", ["built"])
    assert TASK in run.prompts[0] and "src/ledger.py edited: add_rows" in run.prompts[0]
    assert ("no checkpoint: prompt is too long" in caplog.text) == isinstance(answer, Exception)


SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.mark.parametrize("answer", [f"<checkpoint>\nPush with {SECRET}\n</checkpoint>", "I'm sorry, I cannot do that."])
async def test_secrets_are_not_carried_into_the_next_session(answer):
    printed = UserMessage([ToolResultBlock("t1", f"remote src/ledger.py token {SECRET}", None)])
    client = Client(
        [[[*working(1)[:1], printed, result()], [said(answer, None)]], [[said("…", counted(5)), result(text="mended")]]]
    )
    run = await SessionRunner(client).run(TASK)
    assert run.result == "mended" and "src/ledger.py" in run.prompts[0]
    assert not any(SECRET in prompt for prompt in client.prompts)


async def test_missing_usage_is_told_and_restarts_are_bounded(caplog):
    run = await SessionRunner(Client([[[said("…", None), result()]]])).run("Mend it.")
    assert run.result == "done" and "context tracking disabled" in caplog.text
    full = [[said("…", counted(199_000)), result()]]
    run = await SessionRunner(Client([full]), max_restarts=0).run("Mend it.")
    assert run.continuation_count == 0


def test_checkpoints_are_found_however_they_are_wrapped():
    assert extract_checkpoint("a <checkpoint>b</checkpoint> c") == "b"
    assert extract_checkpoint("```xml\n<checkpoint>b</checkpoint>\n```") == "b"
    assert extract_checkpoint("<checkpoint>\n```\nb\n```\n</checkpoint>") == "b"
    assert extract_checkpoint("```\nno tags\n```") == "no tags"
    assert extract_checkpoint("no tags") == "no tags"
    assert extract_checkpoint("<checkpoint>old</checkpoint><checkpoint>new</checkpoint>") == "new"
    assert extract_checkpoint(" I'm sorry, but I cannot do that. ") == "I'm sorry, but I cannot do that."
    assert "a {checkpoint} in braces {}" in build_continuation_prompt("a {checkpoint} in braces {}")


def test_pressure_is_a_share_of_the_window():
    usage = ContextUsage(input_tokens=90_000, output_tokens=10_000)
    assert (usage.pressure_ratio(), usage.pressure_ratio(0), ContextUsage(-1).pressure_ratio()) == (0.5, 0.0, 0.0)
    assert str(ContextPressureError("s", usage)) == "Context pressure: 50.0%"
