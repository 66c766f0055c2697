"""The OpenAI Agents SDK, the real package, with models that enforce their window and every rule."""

from __future__ import annotations

import json
import random
import runpy
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from agents import Agent, FunctionTool, RunConfig, Runner, SQLiteSession, function_tool, handoff
from agents.memory import Session
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.tracing import set_trace_processors, set_tracing_disabled
from agents.usage import Usage
from openai.types.responses import ResponseReasoningItem
from pydantic import BaseModel, Field

import compact
from compact import CallbackExporter, CompactManager, CompactPolicy, InsufficientBudget
from compact.hooks import (
    CompactRunHooks,
    CompactSession,
    CompactTracing,
    compact_filter,
    middleware,
)
from compact.session import RESPONSES

from .conftest import chat, config

WINDOW = 6_000


class ContextLimit(Exception):
    """What a provider answers to a prompt that is too long or against its rules."""


class StrictModel(ScriptedModel):
    """Refuses what is larger than its window or breaks a rule; keeps what it was sent."""

    def __init__(self, steps: list[Any]) -> None:
        super().__init__(steps)
        self.sent: list[list[Any]] = []

    def _check(self, system: Any, items: Any) -> None:
        items = [{"role": "user", "content": items}] if isinstance(items, str) else items
        self.sent.append(json.loads(json.dumps(items)))
        broken = compact.validate({"instructions": system or "", "input": items}, "openai-responses")
        if broken:
            raise ContextLimit(str(broken[0]))
        tokens = compact.account(items, system=system, model="gpt-5", codec=RESPONSES).total
        if tokens > WINDOW:
            raise ContextLimit(f"{tokens} tokens > {WINDOW}")

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self._check(system_instructions, input)
        return await super().get_response(system_instructions, input, *args, **kwargs)

    def stream_response(self, system_instructions, input, *args, **kwargs):
        self._check(system_instructions, input)
        return super().stream_response(system_instructions, input, *args, **kwargs)


@function_tool
def read_file(path: str) -> str:
    """Reads a file."""
    return f"# {path}\n" + "total = price * count\n" * (20 + len(path) % 7 * 10)


def thought(n: str) -> ResponseReasoningItem:
    return ResponseReasoningItem(
        id=f"rs_{n}", type="reasoning", summary=[], encrypted_content="gAAAA" + "k" * 120
    )


def steps(count: int, *, seed: int = 1, handoffs: int = 0) -> list[ModelStep]:
    """Reasoning, parallel calls, and now and then a handoff to the other agent."""
    rng = random.Random(seed)
    made = []
    for n in range(count):
        calls = [
            function_call(
                "read_file", {"path": f"src/part_{n}_{k}.py"}, call_id=f"c{seed}_{n}_{k}", item_id=f"fc_{seed}_{n}_{k}"
            )
            for k in range(rng.choice((1, 1, 2, 3)))
        ]
        made.append(ModelStep(output=[thought(f"{seed}_{n}"), *calls], response_id=f"resp_{n}"))
        if handoffs and n % (count // handoffs) == count // handoffs - 1:
            name = ("transfer_to_second", "transfer_to_first")[len([s for s in made if s.response_id[0] == "h"]) % 2]
            made.append(ModelStep(output=[function_call(name, {}, call_id=f"h{n}", item_id=f"fc_h{n}")], response_id=f"h{n}"))
    return [*made, ModelStep(output=[assistant_message("All is read.", item_id=f"msg_{seed}")], response_id="resp_end")]


def pair(model: StrictModel) -> Agent[Any]:
    second = Agent(name="second", instructions="Go on reading.", model=model, tools=[read_file])
    first = Agent(name="first", instructions="Read every part.", model=model, tools=[read_file], handoffs=[second])
    second.handoffs = [first]
    return first


def history_tokens(items: list[Any]) -> int:
    return compact.account(items, model="gpt-5", codec=RESPONSES).total


def check_kinds(items: list[Any], handoffs: int) -> None:
    """The run had everything in it: reasoning, calls, several at once, and handoffs."""
    kinds = [item.get("type") for item in items]
    names = [item["name"] for item in items if item.get("type") == "function_call"]
    assert kinds.count("reasoning") >= 60 and kinds.count("function_call") == kinds.count("function_call_output")
    assert any(pair == ("function_call", "function_call") for pair in zip(kinds, kinds[1:]))
    assert sum(name.startswith("transfer_to_") for name in names) == handoffs


def prefixes_are_stable(sent: list[list[Any]]) -> int:
    """How often the prefix changed; between changes, every call begins with what the last one sent."""
    changes = 0
    for before, after in zip(sent, sent[1:]):
        if json.dumps(after[: len(before)]) != json.dumps(before):
            changes += 1
    return changes


@pytest.fixture(autouse=True)
def untraced():
    set_tracing_disabled(True)


async def test_whatever_is_sent_with_a_history_is_counted():
    class Answer(BaseModel):
        amount: int = Field(description="The amount in cents. " * 40)

    class Server:
        name, asked = "shelf", 0

    async def mcp_tools(self, context):
        Server.asked += 1
        return [FunctionTool("look_up", "Looks up a part. " * 40, {"type": "object"}, lambda *_: None)]

    async def counted(**more: Any) -> int:
        events: list[dict[str, Any]] = []
        manager = CompactManager(config(window=60_000, exporter=CallbackExporter(events.append)))
        said = assistant_message('{"amount": 1}', item_id="m")
        agent = Agent(name="a", model=StrictModel([ModelStep(output=[said], response_id="r")] * 2), **more)
        how = RunConfig(call_model_input_filter=compact_filter(manager, "s"))
        with patch.object(Agent, "get_mcp_tools", mcp_tools), patch.object(Agent, "get_all_tools", no_tools):
            for _ in range(2):
                await Runner.run(agent, "hi", run_config=how)
        manager.flush()
        return events[0]["t_est"]

    async def no_tools(self, context):
        return []

    plain = await counted()
    others = [Agent(name=f"b{n}", handoff_description="Mends carts. " * 40) for n in range(3)]
    assert await counted(handoffs=[*others[:2], handoff(others[2])]) > plain + 300
    assert await counted(output_type=Answer) > plain + 150
    assert await counted(mcp_servers=[Server()]) > plain + 150 and Server.asked == 1


async def test_a_run_of_three_windows_never_overflows():
    model = StrictModel(steps(60, handoffs=4))
    manager = CompactManager(config(WINDOW))
    run_config = RunConfig(call_model_input_filter=compact_filter(manager, "run"))
    result = await Runner.run(pair(model), "Read all parts.", max_turns=200, run_config=run_config)
    assert result.final_output == "All is read."
    assert history_tokens(result.to_input_list()) > 3 * WINDOW
    check_kinds(result.to_input_list(), handoffs=4)
    receipts = manager.receipts("run")
    assert len(receipts) >= 3
    assert prefixes_are_stable(model.sent) == len(receipts)


async def test_a_streamed_run_never_overflows():
    model = StrictModel(steps(60, handoffs=4))
    manager = CompactManager(config(WINDOW))
    run_config = RunConfig(call_model_input_filter=compact_filter(manager, "stream"))
    result = Runner.run_streamed(pair(model), "Read all parts.", max_turns=200, run_config=run_config)
    async for _ in result.stream_events():
        pass
    assert result.final_output == "All is read."
    assert history_tokens(result.to_input_list()) > 3 * WINDOW
    check_kinds(result.to_input_list(), handoffs=4)
    assert prefixes_are_stable(model.sent) == len(manager.receipts("stream")) >= 3


async def test_without_it_the_same_run_fails():
    with pytest.raises(ContextLimit):
        await Runner.run(pair(StrictModel(steps(60))), "Read all parts.", max_turns=200)


async def test_the_record_of_a_session_stays_whole():
    model = StrictModel(steps(40))
    manager = CompactManager(config(WINDOW))
    session = SQLiteSession("kept")
    run_config = RunConfig(call_model_input_filter=compact_filter(manager))
    await Runner.run(pair(model), "Read all parts.", session=session, max_turns=99, run_config=run_config)
    items = await session.get_items()
    assert history_tokens(items) > 2 * WINDOW
    assert not any("COMPACT-SUMMARY" in json.dumps(item) for item in items)


async def test_a_session_may_be_compacted_in_place():
    # Within a turn nothing is compacted in place, so there must be room for one.
    manager = CompactManager(config(WINDOW, policy=CompactPolicy(trigger_pct=0.5)))
    session = CompactSession("in-place", manager, SQLiteSession("in-place"))
    assert isinstance(session, Session)
    for turn in range(12):
        model = StrictModel(steps(4, seed=turn))
        await Runner.run(pair(model), f"Read batch {turn}.", session=session, max_turns=30)
    items = await session.get_items()
    assert len(manager.receipts("in-place")) >= 2
    assert history_tokens(items) < WINDOW
    assert sum("COMPACT-SUMMARY v" in json.dumps(item) for item in items) == 1
    assert compact.validate(items, "openai-responses") == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_sessions_filter_keeps_a_long_run_inside_the_window(streamed):
    manager = CompactManager(config(WINDOW))
    session = CompactSession("long", manager, SQLiteSession("long"))
    how = RunConfig(call_model_input_filter=session.input_filter)
    sent = []
    for turn in range(3):
        model = StrictModel(steps(30, seed=turn))
        if streamed:
            result = Runner.run_streamed(pair(model), f"Read batch {turn}.", session=session, max_turns=99, run_config=how)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(pair(model), f"Read batch {turn}.", session=session, max_turns=99, run_config=how)
        assert result.final_output == "All is read."
        sent += model.sent
    # Within a run only compactions change the prefix; between two, the record becomes the view.
    receipts = manager.receipts("long")
    assert 3 <= prefixes_are_stable(sent) <= len(receipts) + 2
    assert [r["summary_version"] for r in receipts] == list(range(1, len(receipts) + 1))
    kept = await session.get_items()
    assert sum("COMPACT-SUMMARY v" in json.dumps(item) for item in kept) <= 1
    assert compact.validate(kept, "openai-responses") == []
    whole = json.dumps(manager.restore("long"))
    assert all(f"src/part_{n}_0.py" in whole and f"c{turn}_{n}_0" in whole for turn in range(2) for n in range(30))


async def test_without_its_filter_a_long_run_of_a_session_fails():
    session = CompactSession("long", CompactManager(config(WINDOW)))
    with pytest.raises(ContextLimit):
        await Runner.run(pair(StrictModel(steps(30))), "Read all parts.", session=session, max_turns=99)


async def test_a_session_of_its_own_keeps_its_contract(monkeypatch):
    manager = CompactManager(config(WINDOW))
    session = CompactSession("mem", manager)
    assert await session.pop_item() is None
    roles = ("user", "assistant")
    items = [{"role": roles[n % 2], "content": f"Line {n}. " + "word " * 80} for n in range(30)]
    await session.add_items(items)
    assert await session.get_items(2) == items[-2:] and await session.get_items(0) == []
    assert await session.pop_item() == items[-1]
    await session.run_compaction({"force": True})
    forced = await session.get_items()
    assert len(forced) < len(items) and len(manager.receipts("mem")) == 1
    await session.run_compaction()
    assert await session.get_items() == forced

    async def broken(new):
        if any("v2" in json.dumps(item) for item in new):
            raise OSError("disk full")
        session._record.items.extend(new)

    monkeypatch.setattr(session._record, "add_items", broken)
    with pytest.raises(OSError):
        await session.run_compaction({"force": True})
    assert await session.get_items() == forced
    await session.clear_session()
    assert await session.get_items() == []
    monkeypatch.undo()
    await session.add_items([{"nonsense": True}])
    await session.run_compaction({"force": True})
    assert await session.get_items() == [{"nonsense": True}]


async def test_the_providers_count_leads():
    usage = Usage(requests=1, input_tokens=WINDOW, output_tokens=1, total_tokens=WINDOW + 1)
    script = [
        ModelStep(output=[function_call("read_file", {"path": f"p{n}"}, call_id=f"c{n}")], usage=usage if n == 5 else Usage())
        for n in range(8)
    ]
    model = StrictModel([*script, ModelStep(output=[assistant_message("done")])])
    manager = CompactManager(config(WINDOW))
    run_config = RunConfig(call_model_input_filter=compact_filter(manager, "usage"))
    hooks = CompactRunHooks(manager, "usage")
    await Runner.run(pair(model), "Read.", hooks=hooks, max_turns=30, run_config=run_config)
    assert len(manager.receipts("usage")) == 1


async def test_decisions_are_part_of_the_trace():
    seen: list[dict[str, Any]] = []
    set_tracing_disabled(False)
    set_trace_processors([CompactTracing(CallbackExporter(seen.append))])
    try:
        manager = CompactManager(config(WINDOW))
        run_config = RunConfig(call_model_input_filter=compact_filter(manager, "traced"))
        await Runner.run(pair(StrictModel(steps(20))), "Read.", max_turns=60, run_config=run_config)
    finally:
        set_trace_processors([])
        set_tracing_disabled(True)
    assert {event["event"] for event in seen} == {"compact.preflight"}
    assert all(event["trace_id"].startswith("trace_") and event["max"] == WINDOW for event in seen)
    assert [e["receipt_id"] for e in seen if "receipt_id" in e] == [r.id for r in manager.receipts("traced")]


@dataclass
class Context:
    session_id: str = "from-context"


async def test_a_failing_engine_lets_the_history_out_as_it_is(caplog):
    class Broken:
        def estimate(self, messages, model):
            raise RuntimeError("no table")

    manager = CompactManager(config(WINDOW, token_estimator=Broken()))
    named: list[str] = []
    run_config = RunConfig(call_model_input_filter=compact_filter(manager, lambda data: named.append("n") or "fn"))
    model = StrictModel(steps(2))
    await Runner.run(pair(model), "Read.", run_config=run_config)
    assert "is sent unchanged" in caplog.text and named
    manager = CompactManager(config(WINDOW))
    run_config = RunConfig(call_model_input_filter=compact_filter(manager))
    await Runner.run(pair(StrictModel(steps(20))), "Read.", context=Context(), max_turns=60, run_config=run_config)
    assert manager.receipts("from-context")


async def test_what_cannot_fit_ends_the_run():
    manager = CompactManager(config(2_000))
    run_config = RunConfig(call_model_input_filter=compact_filter(manager))
    agent = Agent(name="a", instructions="rule " * 4_000, model=StrictModel(steps(2)))
    with pytest.raises(InsufficientBudget):
        await Runner.run(agent, "word " * 3_000, run_config=run_config)


def test_hooks_by_name_for_any_runner():
    @dataclass
    class Ctx:
        session_id: str
        messages: list[Any]
        usage: Any = None

    manager = CompactManager(config())
    hooks = middleware(manager)
    ctx = Ctx("named", chat(60))
    hooks["before_run"](ctx)
    hooks["before_model_call"](ctx)
    assert len(ctx.messages) < 100
    ctx.usage = {"prompt_tokens": 50, "completion_tokens": 1}
    hooks["after_model_call"](ctx)
    hooks["after_model_call"](Ctx("other", []))


def test_the_minimal_example_runs_without_a_key(tmp_path, monkeypatch, capsys):
    from pathlib import Path

    path = Path("examples/agents_sdk_minimal.py").absolute()
    added = path.read_text().split("# --- added ---")[1].strip().splitlines()
    assert len([line for line in added if line.strip()]) < 10
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    assert "All 60 parts are read." in out and "Receipt" in out
