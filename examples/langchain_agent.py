"""A LangChain agent that never outgrows its window. Needs no key: the model is LangChain's own fake."""

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from compact import CompactConfig, CompactManager, MemoryStorage
from compact.integrations.langchain import CompactMiddleware

PARTS = 40
sent: list[int] = []


class Scripted(GenericFakeChatModel):
    """Asks for one part after the other."""

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, *args, **kwargs):
        sent.append(len(messages))
        return super()._generate(messages, *args, **kwargs)


def read_file(path: str) -> str:
    """Reads a file."""
    return f"# {path}\n" + "total = price * count\n" * 40


def call(part: int) -> AIMessage:
    arguments = {"path": f"src/part_{part}.py"}
    return AIMessage("", tool_calls=[{"name": "read_file", "args": arguments, "id": f"c{part}"}])


manager = CompactManager(
    CompactConfig(model="gpt-5", max_context_tokens=6_000, storage=MemoryStorage())
)
model = Scripted(messages=iter([*map(call, range(PARTS)), AIMessage("All parts are read.")]))
agent = create_agent(model, [read_file], middleware=[CompactMiddleware(manager, "demo")])

result = agent.invoke({"messages": [("user", "Read every part.")]}, {"recursion_limit": 4 * PARTS})
print(result["messages"][-1].content)
print(f"The state has {len(result['messages'])} messages; the last call sent {sent[-1]}.")
print(*manager.receipts("demo"), sep="\n")
