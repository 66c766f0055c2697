"""OpenAI's client with a history that outgrows its window. Needs no key: the answers are scripted."""

import json

import httpx2
from openai import OpenAI

from compact import CompactConfig, CompactManager, MemoryStorage
from compact.integrations.openai import CompactTransport

sent: list[int] = []


def answer(request: httpx2.Request) -> httpx2.Response:
    """Stands in for the provider: `http_client=compact_client(manager)` asks the real one."""
    sent.append(len(json.loads(request.content)["messages"]))
    text = f"Part {len(sent)} is read. " + "Its totals add up. " * 40
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    head = {"id": "c1", "object": "chat.completion", "created": 0, "model": "m"}
    return httpx2.Response(200, json={**head, "choices": [choice]})


manager = CompactManager(
    CompactConfig(model="gpt-5", max_context_tokens=6_000, storage=MemoryStorage())
)
transport = CompactTransport(manager, "demo", inner=httpx2.MockTransport(answer))
client = OpenAI(api_key="none", http_client=httpx2.Client(transport=transport))

messages: list[dict] = [{"role": "system", "content": "You check totals."}]
for part in range(40):
    messages.append({"role": "user", "content": f"Read src/part_{part}.py and check its totals."})
    reply = client.chat.completions.create(model="gpt-5", messages=messages)
    messages.append({"role": "assistant", "content": reply.choices[0].message.content})

print(f"The history has {len(messages)} messages; the last call sent {sent[-1]}.")
print(*manager.receipts("demo"), sep="\n")
