"""An agent of the OpenAI Agents SDK that never outgrows its window. Needs no key: the model is scripted.

The lines between the two marks are all that an agent needs.
"""

import asyncio

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.tracing import set_tracing_disabled

# --- added ---
from compact import CompactConfig, CompactManager, FileStorage
from compact.hooks import compact_filter

cfg = CompactConfig(model="gpt-5", max_context_tokens=8_000, storage=FileStorage("./.compact/archive"))
manager = CompactManager(cfg)
run_config = RunConfig(call_model_input_filter=compact_filter(manager, "demo"))
# --- added ---


@function_tool
def read_file(path: str) -> str:
    """Reads a file."""
    return f"# {path}\n" + "value = compute(value)\n" * 80


def scripted(calls: int) -> ScriptedModel:
    steps = [function_call("read_file", {"path": f"src/part_{n}.py"}, call_id=f"c{n}") for n in range(calls)]
    return ScriptedModel([*(ModelStep(output=[step]) for step in steps), ModelStep(output=[assistant_message("All 60 parts are read.")])])


async def main() -> None:
    set_tracing_disabled(True)
    model = scripted(60)
    agent = Agent(name="reader", instructions="Read every part.", model=model, tools=[read_file])
    result = await Runner.run(agent, "Read src/part_0.py to src/part_59.py.", max_turns=99, run_config=run_config)
    print(result.final_output)
    print(f"The history has {len(result.to_input_list())} items; the last call sent {len(model.calls[-1].input)}.")
    for receipt in manager.receipts("demo")[-2:]:
        print(receipt)


if __name__ == "__main__":
    asyncio.run(main())
