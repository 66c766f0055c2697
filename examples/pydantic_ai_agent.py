"""A Pydantic AI agent that never outgrows its window. Needs no key: the model is a `FunctionModel`."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from compact import CompactConfig, CompactManager, MemoryStorage
from compact.integrations.pydantic_ai import CompactCapability

PARTS = 40
sent: list[int] = []


def scripted(messages, info) -> ModelResponse:
    """Asks for one part after the other."""
    sent.append(len(messages))
    if len(sent) > PARTS:
        return ModelResponse(parts=[TextPart("All parts are read.")])
    return ModelResponse(parts=[ToolCallPart("read_file", {"path": f"src/part_{len(sent)}.py"})])


manager = CompactManager(
    CompactConfig(model="gpt-5", max_context_tokens=6_000, storage=MemoryStorage())
)
agent = Agent(FunctionModel(scripted), capabilities=[CompactCapability(manager, "demo")])


@agent.tool_plain
def read_file(path: str) -> str:
    """Reads a file."""
    return f"# {path}\n" + "total = price * count\n" * 40


result = agent.run_sync("Read every part.")
print(result.output)
print(f"The run has {len(result.all_messages())} messages; the last call sent {sent[-1]}.")
print(*manager.receipts("demo"), sep="\n")
