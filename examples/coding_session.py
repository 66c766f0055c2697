"""A chat about code that goes on for longer than any window. Needs no key: the model is a stand-in.

Type anything; `/compact` compacts now, `/memory` tells what is still known, `/recall WORDS` searches what was
left out. Without a terminal it plays a session by itself.
"""

import sys

from compact import CompactConfig, CompactManager, ConsoleExporter, FileStorage, TiktokenEstimator
from compact.chat import ChatCommands

SESSION = "coding"

manager = CompactManager(
    CompactConfig(
        model="gpt-5",
        max_context_tokens=4_000,
        token_estimator=TiktokenEstimator(),
        exporter=ConsoleExporter(),
        storage=FileStorage("./.compact/archive"),
    )
)
commands = ChatCommands(manager, SESSION)


def model(messages: list[dict[str, str]]) -> str:
    """Stands in for a model: put your own call here."""
    path = next((w for w in messages[-1]["content"].split() if w.endswith(".py")), "the code")
    return f"I looked at {path} and changed how it counts. " + "The tests pass. " * 30


def turn(line: str, messages: list[dict[str, str]]) -> list[dict[str, str]]:
    reply = commands.handle(line, messages)
    if reply is not None:
        print(reply.text)
        return reply.messages
    if line.startswith("/recall "):
        print("\n".join(f"{hit.pointer} {hit.role}: {hit.snippet}" for hit in manager.recall(line[8:], SESSION)))
        return messages
    messages = [*messages, {"role": "user", "content": line}]
    answer = model(manager.preflight(SESSION, messages))
    print(f"assistant: {answer[:60]}…")
    return [*messages, {"role": "assistant", "content": answer}]


def main() -> None:
    messages: list[dict[str, str]] = [{"role": "system", "content": "You mend a shop. Never touch billing.py."}]
    if sys.stdin.isatty():
        while line := input("> ").strip():
            messages = turn(line, messages)
        return
    for n in range(40):
        messages = turn(f"Mend error E{n:04d} in src/part_{n}.py please.", messages)
    for line in ("/compact", "/memory", "/recall E0003"):
        messages = turn(line, messages)
    manager.flush()


if __name__ == "__main__":
    main()
