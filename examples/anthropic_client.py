"""Anthropic's client with a history that outgrows its window. Needs no key: the answers are scripted."""

import json

import httpx2
from anthropic import Anthropic

from compact import CompactConfig, CompactManager, MemoryStorage
from compact.integrations.anthropic import CompactMiddleware

sent: list[int] = []


def answer(request: httpx2.Request) -> httpx2.Response:
    """Stands in for the provider: leave `http_client` out to ask the real one."""
    sent.append(len(json.loads(request.content)["messages"]))
    usage = {"input_tokens": 1, "output_tokens": 1}
    text = [{"type": "text", "text": f"Part {len(sent)} is read. " + "Its totals add up. " * 40}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": text}
    return httpx2.Response(200, json={**message, "stop_reason": "end_turn", "usage": usage})


manager = CompactManager(
    CompactConfig(model="claude-sonnet-5-5", max_context_tokens=6_000, storage=MemoryStorage())
)
client = Anthropic(
    api_key="none",
    http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
    middleware=[CompactMiddleware(manager, "demo")],
)

messages: list[dict] = []
for part in range(40):
    messages.append({"role": "user", "content": f"Read src/part_{part}.py and check its totals."})
    reply = client.messages.create(model="claude-sonnet-5-5", max_tokens=400, messages=messages)
    messages.append({"role": "assistant", "content": reply.content[0].text})

print(f"The history has {len(messages)} messages; the last call sent {sent[-1]}.")
print(*manager.receipts("demo"), sep="\n")
