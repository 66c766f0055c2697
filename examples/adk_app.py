"""An app of Google's ADK that never outgrows its window. Needs no key: the model is scripted."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from compact import CompactConfig, CompactManager, MemoryStorage
from compact.integrations.adk import CompactPlugin

PARTS = 40
sent: list[int] = []


class Scripted(BaseLlm):
    """Asks for one part after the other."""

    async def generate_content_async(self, llm_request, stream=False):
        sent.append(len(llm_request.contents))
        call = types.FunctionCall(name="read_file", args={"path": f"src/part_{len(sent)}.py"})
        done = types.Part(text="All parts are read.")
        part = types.Part(function_call=call) if len(sent) <= PARTS else done
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def read_file(path: str) -> dict[str, str]:
    """Reads a file."""
    return {"text": f"# {path}\n" + "total = price * count\n" * 40}


async def main() -> None:
    manager = CompactManager(
        CompactConfig(model="gemini-2.5-pro", max_context_tokens=6_000, storage=MemoryStorage())
    )
    agent = LlmAgent(name="reader", model=Scripted(model="scripted"), tools=[read_file])
    runner = InMemoryRunner(app=App(name="demo", root_agent=agent, plugins=[CompactPlugin(manager)]))
    session = await runner.session_service.create_session(app_name="demo", user_id="ann")
    prompt = types.Content(role="user", parts=[types.Part(text="Read every part.")])
    async for event in runner.run_async(
        user_id="ann", session_id=session.id, new_message=prompt
    ):
        if event.is_final_response():
            print(event.content.parts[0].text)
    print(f"The session has {1 + 2 * PARTS} contents; the last call sent {sent[-1]}.")
    print(*manager.receipts(f"demo/ann/{session.id}/{agent.name}"), sep="\n")


asyncio.run(main())
