"""People who use one app: the same system prompt, the same greeting, the same first ten messages.

Each :class:`Chat` drives one real client or framework for one person and keeps what went to the model.
``python -m tests.python.isolation KIND FOLDER USER REQUESTS`` does so in a process of its own and prints it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import compact
from compact import CompactManager, FileStorage

from .conftest import config

WINDOW = 3_000
SYSTEM = "You are the assistant of a bank. Be brief."

#: So many requests of everybody are the same, with their answers: the first ten messages.
SHARED = 5


class Chat:
    """One person's conversation; a subclass sends it."""

    #: Whether one person's conversation can be gone on with by another manager.
    resumes = True

    def __init__(self, user: str) -> None:
        self.user = user
        self.asked = 0
        #: What the model was sent, one text for each request.
        self.sent: list[str] = []

    def question(self, n: int) -> str:
        if n < SHARED:
            return ("Hi", "What can you do?", "Good.", "Are you sure?", "Then let us begin.")[n]
        return (
            f"My name is {self.user}. From now on always pay {self.user}-ACC-{n:03d}, never anybody else. "
            + "Mind the order of the stock and the price. " * 6
        )

    def answer(self, n: int) -> str:
        if n < SHARED:
            return f"Yes ({n})."
        return f"Decision: {self.user}-REF-{n:03d} is noted. " + "The cart was counted twice. " * 6

    def see(self, prompt: Any) -> None:
        self.sent.append(json.dumps(prompt, default=repr))

    def talk(self, manager: CompactManager, requests: int) -> None:
        """Says so much more."""
        for _ in range(requests):
            self.request(manager, self.question(self.asked), self.answer(self.asked))
            self.asked += 1

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        raise NotImplementedError


class Plain(Chat):
    """The manager itself, without a name."""

    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}]

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        self.messages.append({"role": "user", "content": question})
        self.see(manager.preflight(None, self.messages))
        self.messages.append({"role": "assistant", "content": answer})


class OneName(Plain):
    """The manager itself, under a name that everybody uses."""

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        self.messages.append({"role": "user", "content": question})
        self.see(manager.preflight("chat", self.messages))
        self.messages.append({"role": "assistant", "content": answer})


class OpenAIChat(Plain):
    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        import httpx2
        from openai import OpenAI

        from compact.integrations.openai import CompactTransport

        def respond(request: httpx2.Request) -> httpx2.Response:
            self.see(json.loads(request.content))
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
            return httpx2.Response(200, json={"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]})

        http = httpx2.Client(transport=CompactTransport(manager, inner=httpx2.MockTransport(respond)))
        with OpenAI(api_key="x", http_client=http) as client:
            self.messages.append({"role": "user", "content": question})
            made = client.chat.completions.create(
                model="m", messages=self.messages, user="everybody", prompt_cache_key="everybody"
            )
        self.messages.append({"role": "assistant", "content": made.choices[0].message.content})


class OpenAIResponses(Chat):
    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.items: list[Any] = []

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        import httpx2
        from openai import OpenAI

        from compact.integrations.openai import CompactTransport

        said = {"type": "message", "id": f"msg_{self.asked}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": answer, "annotations": []}]}

        def respond(request: httpx2.Request) -> httpx2.Response:
            self.see(json.loads(request.content))
            body = {"id": "r", "object": "response", "created_at": 0, "status": "completed", "model": "m",
                    "output": [said], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
            return httpx2.Response(200, json=body)

        http = httpx2.Client(transport=CompactTransport(manager, inner=httpx2.MockTransport(respond)))
        with OpenAI(api_key="x", http_client=http) as client:
            self.items.append({"role": "user", "content": question})
            client.responses.create(model="m", input=self.items, instructions=SYSTEM, store=False)
        self.items.append(said)


class AnthropicChat(Chat):
    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.messages: list[Any] = []

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        import httpx2
        from anthropic import Anthropic

        from compact.integrations.anthropic import CompactMiddleware

        def respond(request: httpx2.Request) -> httpx2.Response:
            self.see(json.loads(request.content))
            body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                    "content": [{"type": "text", "text": answer}], "usage": {"input_tokens": 1, "output_tokens": 1}}
            return httpx2.Response(200, json=body)

        http = httpx2.Client(transport=httpx2.MockTransport(respond))
        with Anthropic(api_key="x", max_retries=0, http_client=http, middleware=[CompactMiddleware(manager)]) as client:
            self.messages.append({"role": "user", "content": question})
            client.messages.create(
                model="m", max_tokens=99, messages=self.messages, system=SYSTEM, metadata={"user_id": "everybody"}
            )
        self.messages.append({"role": "assistant", "content": answer})


class AgentsFilter(Chat):
    """A history that its owner passes, without a name."""

    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.items: list[Any] = []

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        from agents import RunConfig, Runner

        from compact.hooks import compact_filter

        how = RunConfig(call_model_input_filter=compact_filter(manager), tracing_disabled=True)
        self.items.append({"role": "user", "content": question})
        result = asyncio.run(Runner.run(self.agent(answer), self.items, run_config=how))
        self.items = result.to_input_list()

    def agent(self, answer: str) -> Any:
        from agents import Agent
        from agents.testing import ModelStep, ScriptedModel, assistant_message

        chat = self

        class Seeing(ScriptedModel):
            async def get_response(self, system_instructions, input, *args, **kwargs):
                chat.see([system_instructions, input])
                return await super().get_response(system_instructions, input, *args, **kwargs)

        step = ModelStep(output=[assistant_message(answer, item_id=f"msg_{self.asked}")])
        return Agent(name="a", instructions=SYSTEM, model=Seeing([step]))


class AgentsSession(AgentsFilter):
    """Sessions that are called alike in stores of their own, compacted in place."""

    def __init__(self, user: str) -> None:
        from agents import SQLiteSession

        super().__init__(user)
        self.store = SQLiteSession("chat")

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        from agents import RunConfig, Runner

        from compact.hooks import CompactSession

        session = CompactSession("chat", manager, self.store)
        how = RunConfig(tracing_disabled=True)
        asyncio.run(Runner.run(self.agent(answer), question, session=session, run_config=how))


class LangChainThread(Chat):
    """Threads of one agent with a checkpointer."""

    def __init__(self, user: str) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        super().__init__(user)
        self.saver = InMemorySaver()

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        thread = {"configurable": {"thread_id": f"thread of {self.user}"}}
        self.agent(manager, answer).invoke({"messages": [("user", question)]}, thread)

    def agent(self, manager: CompactManager, answer: str) -> Any:
        from langchain.agents import create_agent
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage

        from compact.integrations.langchain import CompactMiddleware

        chat = self

        class Seeing(GenericFakeChatModel):
            def bind_tools(self, tools, **kwargs):
                return self

            def _generate(self, messages, stop=None, run_manager=None, **kwargs):
                chat.see([(m.type, m.content) for m in messages])
                return super()._generate(messages, stop, run_manager, **kwargs)

        return create_agent(
            Seeing(messages=iter([AIMessage(answer)])),
            [],
            system_prompt=SYSTEM,
            middleware=[CompactMiddleware(manager)],
            checkpointer=self.saver,
        )


class LangChainPlain(LangChainThread):
    """A history that its owner passes, without a thread."""

    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.saver = None
        self.messages: list[Any] = []

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        self.messages.append(("user", question))
        made = self.agent(manager, answer).invoke({"messages": self.messages})
        self.messages = made["messages"]


class PydanticAi(Chat):
    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.history: list[Any] = []

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel

        from compact.integrations.pydantic_ai import CompactCapability

        def respond(messages: Any, info: Any) -> ModelResponse:
            self.see([str(part) for message in messages for part in message.parts])
            return ModelResponse(parts=[TextPart(answer)])

        agent = Agent(FunctionModel(respond), system_prompt=SYSTEM, capabilities=[CompactCapability(manager)])
        made = asyncio.run(agent.run(question, message_history=self.history))
        self.history = made.all_messages()


class Adk(Chat):
    """Users of one app whose sessions are called alike."""

    def __init__(self, user: str) -> None:
        from google.adk.sessions import InMemorySessionService

        super().__init__(user)
        self.sessions = InMemorySessionService()

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        asyncio.run(self._request(manager, question, answer))

    async def _request(self, manager: CompactManager, question: str, answer: str) -> None:
        from google.adk.agents import LlmAgent
        from google.adk.apps import App
        from google.adk.models import BaseLlm, LlmResponse
        from google.adk.runners import Runner
        from google.genai import types

        from compact.integrations.adk import CompactPlugin

        chat = self

        class Seeing(BaseLlm):
            async def generate_content_async(self, llm_request, stream=False):
                chat.see([c.model_dump(mode="json", exclude_none=True) for c in llm_request.contents])
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=answer)]))

        agent = LlmAgent(name="clerk", model=Seeing(model="fake"), instruction=SYSTEM)
        app = App(name="bank", root_agent=agent, plugins=[CompactPlugin(manager)])
        runner = Runner(app=app, session_service=self.sessions)
        if self.asked == 0:
            await self.sessions.create_session(app_name="bank", user_id=self.user, session_id="1")
        message = types.Content(role="user", parts=[types.Part(text=question)])
        async for _ in runner.run_async(user_id=self.user, session_id="1", new_message=message):
            pass


class ClaudeStore(Chat):
    """Sessions of the Claude Agent SDK that are called alike in projects of their own."""

    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.lines: list[Any] = []

    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        from compact.integrations.claude import CompactSessionStore

        n = self.asked
        parent = f"a{n - 1}" if n else None
        common = {"sessionId": "1", "timestamp": f"2026-01-01T00:{n // 60:02}:{n % 60:02}.000Z", "version": "2.1.0", "cwd": "/bank"}
        asked = {"type": "user", "uuid": f"u{n}", "parentUuid": parent, **common, "message": {"role": "user", "content": question}}
        said = {"role": "assistant", "id": f"m{n}", "type": "message", "model": "m", "content": [{"type": "text", "text": answer}]}
        replied = {"type": "assistant", "uuid": f"a{n}", "parentUuid": f"u{n}", **common, "message": said}
        self.lines += [asked, replied]

        async def resume() -> Any:
            store = CompactSessionStore(manager)
            key = {"project_key": self.user, "session_id": "1"}
            await store.append(key, self.lines)
            return await store.load(key)

        lines = asyncio.run(resume())
        boundary = max((i for i, line in enumerate(lines) if line.get("type") == "system"), default=-1)
        self.see(lines[boundary + 1 :] if boundary >= 0 else lines)


class LiteLlm(Plain):
    def request(self, manager: CompactManager, question: str, answer: str) -> None:
        self.messages.append({"role": "user", "content": question})
        asyncio.run(self._request(manager, answer))
        self.messages.append({"role": "assistant", "content": answer})

    async def _request(self, manager: CompactManager, answer: str) -> None:
        from compact.integrations.litellm import CompactLogger

        hook = CompactLogger(manager)
        request = {"model": "m", "messages": list(self.messages), "user": "everybody"}
        made = await hook.async_pre_call_deployment_hook(request, None)
        self.see(made["messages"])


KINDS = {
    kind.__name__: kind
    for kind in (
        *(Plain, OneName, OpenAIChat, OpenAIResponses, AnthropicChat, AgentsFilter, AgentsSession),
        *(LangChainThread, LangChainPlain, PydanticAi, Adk, ClaudeStore),
    )
}


def manager_of(folder: Any, **more: Any) -> CompactManager:
    """A manager of the app, as one process after the other makes it."""
    estimator = compact.HeuristicEstimator()
    return CompactManager(config(WINDOW, storage=FileStorage(folder), token_estimator=estimator, **more))


def foreign(chat: Chat, users: list[str]) -> list[int]:
    """The requests of a person that hold another person's words."""
    others = [user for user in users if user != chat.user]
    return [n for n, sent in enumerate(chat.sent) if any(other in sent for other in others)]


def main() -> None:
    kind, folder, user, requests = sys.argv[1:]
    chat = KINDS[kind](user)
    chat.talk(manager_of(folder), int(requests))
    print(json.dumps(chat.sent))


if __name__ == "__main__":
    main()
