"""Judges what each package made of the history, with nothing of the engine: OpenAI's own tokenizer counts.

`check.py HISTORY BUDGET FILE...` prints one JSON object for the history and one for each file. `run.py` says where the
vocabulary is.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import tiktoken

ENCODING = tiktoken.get_encoding("o200k_base")


def text_of(message: dict) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def calls_of(message: dict) -> list[dict]:
    return message.get("tool_calls") or []


def count(message: dict) -> int:
    texts = [text_of(message), *(part for call in calls_of(message) for part in (call["function"]["name"], call["function"]["arguments"]))]
    return 4 + sum(len(ENCODING.encode_ordinary(text)) for text in texts)


def broken_pairs(messages: list[dict]) -> int:
    """Results without their call right before them, and calls without a result."""
    broken, waiting = 0, set()
    for message in messages:
        if message["role"] == "tool":
            broken += message.get("tool_call_id") not in waiting
            waiting.discard(message.get("tool_call_id"))
        else:
            broken += len(waiting)
            waiting = {call["id"] for call in calls_of(message)}
    return broken + len(waiting)


def found_facts(messages: list[dict], facts: list[str]) -> float:
    text = "\n".join(text_of(message) for message in messages)
    return sum(fact in text for fact in facts) / len(facts)


def judge(messages: list[dict], facts: list[str], budget: int) -> dict:
    """The system prompt is no part of the budget: every host sends it again."""
    history = [message for message in messages if message["role"] != "system"]
    return {
        "of_budget": sum(map(count, history)) / budget,
        "broken_pairs": broken_pairs(history),
        "facts": found_facts(messages, facts),
    }


def main(history_file: str, budget: str, *files: str) -> None:
    history = json.loads(pathlib.Path(history_file).read_text())
    start = time.perf_counter()
    tokens = sum(map(count, history["messages"]))
    print(json.dumps({"tokens": tokens, "pass_seconds": time.perf_counter() - start}))
    for file in files:
        messages = json.loads(pathlib.Path(file).read_text())
        print(json.dumps({"file": file, **judge(messages, history["facts"], int(budget))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
