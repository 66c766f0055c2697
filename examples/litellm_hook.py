"""LiteLLM with a history that outgrows its window. Needs no key: `mock_response` answers."""

import asyncio
import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # ask nobody for prices

import litellm

from compact import CompactConfig, CompactManager, MemoryStorage
from compact.integrations.litellm import CompactLogger

manager = CompactManager(
    CompactConfig(model="gpt-5", max_context_tokens=6_000, storage=MemoryStorage())
)
litellm.callbacks = [CompactLogger(manager)]


async def main() -> None:
    messages = [{"role": "system", "content": "You check totals."}]
    for part in range(40):
        messages.append({"role": "user", "content": f"Read src/part_{part}.py and check it."})
        reply = await litellm.acompletion(
            model="gpt-5",
            messages=messages,
            metadata={"session_id": "demo"},
            mock_response=f"Part {part} is read. " + "Its totals add up. " * 40,
        )
        messages.append({"role": "assistant", "content": reply.choices[0].message.content})
    view = manager.preflight("demo", messages)
    print(f"The history has {len(messages)} messages; the next call would send {len(view)}.")
    print(*manager.receipts("demo"), sep="\n")


asyncio.run(main())
