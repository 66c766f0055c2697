"""One long history of an agent with tools, made of a seed, with facts planted in it.

The text is drawn from a small grammar of its own: it shares nothing with the sessions that the engine is developed
on. Each fact stands once: a third of them early, in the middle and late, said by the user, the agent and tools alike.
"""

from __future__ import annotations

import json
import random

NOUNS = "ledger invoice shard parser cursor lease bucket worker gateway schema token queue snapshot index tenant".split()
VERBS = "rebuild rotate merge split verify compact restore replay throttle migrate archive seal".split()
PLACES = "eu-west us-east ap-south staging canary batch edge cold-store".split()

FACTS = (
    "Never {verb} the {noun} of {place} after {number}:00.",
    "We decided that {noun} {number} is kept in {place}.",
    "The {noun} listens on port {number} in {place}.",
    "error E{number}: could not {verb} the {noun} of {place}",
    "src/{noun}/{verb}_{number}.py owns the {place} {noun}.",
)


class HistoryWriter:
    """Writes messages in OpenAI's chat format until there are enough characters."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.messages: list[dict] = [{"role": "system", "content": "You are a careful engineer. Use the tools."}]
        self.facts: list[str] = []
        self.size = 0
        self.calls = 0

    def fill_in(self, form: str) -> str:
        pick = self.random.choice
        number = self.random.randrange(1000, 60000)
        return form.format(noun=pick(NOUNS), verb=pick(VERBS), place=pick(PLACES), number=number)

    def plant(self) -> str:
        while True:
            fact = self.fill_in(self.random.choice(FACTS))
            if fact not in self.facts:
                self.facts.append(fact)
                return fact

    def prose(self, sentences: int) -> str:
        forms = ("The {noun} in {place} has to {verb} before the {noun} can go on.", "It took {number} ms to {verb} one {noun}.")
        return " ".join(self.fill_in(self.random.choice(forms)) for _ in range(sentences))

    def code(self, lines: int) -> str:
        forms = ("    {noun}_{verb} = self.{noun}.{verb}(limit={number})", "    if {noun}.{verb}ed > {number}:", "        return {noun}_{verb}")
        body = [self.fill_in(self.random.choice(forms)) for _ in range(lines)]
        return "\n".join([self.fill_in("def {verb}_{noun}_{number}(self):"), *body])

    def log(self, lines: int) -> str:
        form = "2026-03-{day:02} 12:{minute:02} INFO {text}"
        draw = self.random.randrange
        texts = (self.fill_in("{noun}[{number}] {verb} in {place} done") for _ in range(lines))
        return "\n".join(form.format(day=draw(1, 29), minute=draw(60), text=text) for text in texts)

    def records(self, rows: int) -> str:
        row = lambda: {"id": self.random.randrange(10**6), "kind": self.random.choice(NOUNS), "zone": self.random.choice(PLACES)}  # noqa: E731
        return json.dumps([row() for _ in range(rows)])

    def add(self, message: dict, fact: str | None = None) -> None:
        if fact is not None:
            lines = message["content"].split("\n")
            lines.insert(self.random.randrange(len(lines) + 1), fact)
            message["content"] = "\n".join(lines)
        self.messages.append(message)
        self.size += len(message["content"] or "")

    def add_turn(self, plants: int = 0) -> None:
        """A request, a few calls with their results, and what the agent concludes."""
        speakers = self.random.choices(["user", "agent", "tool", "tool"], k=plants)
        fact = lambda speaker: self.plant() if speakers.count(speaker) and (speakers.remove(speaker) or True) else None  # noqa: E731
        self.add({"role": "user", "content": self.prose(2)}, fact("user"))
        for _ in range(self.random.randrange(2, 5)):
            self.add_call(fact("tool"))
        self.add({"role": "assistant", "content": self.prose(3)}, fact("agent"))
        while speakers:
            self.add({"role": "assistant", "content": self.prose(1)}, fact(speakers[0]))

    def add_call(self, fact: str | None) -> None:
        self.calls += 1
        name = f"call_{self.calls}"
        path = self.fill_in("src/{noun}/{verb}.py")
        function = {"name": "read_file", "arguments": json.dumps({"path": path})}
        self.messages.append({"role": "assistant", "content": "", "tool_calls": [{"id": name, "type": "function", "function": function}]})
        write = self.random.choice([self.code, self.log, self.records])
        self.add({"role": "tool", "tool_call_id": name, "content": write(self.random.randrange(20, 120))}, fact)


def make_history(characters: int, facts: int, seed: int = 7) -> dict:
    """A history of so many characters with so many facts, and one turn more."""
    writer = HistoryWriter(seed)
    while writer.size < characters:
        due = facts * writer.size // characters - len(writer.facts)
        writer.add_turn(max(0, due))
    writer.add_turn(max(0, facts - len(writer.facts)))
    end = len(writer.messages)
    writer.add_turn()
    return {"messages": writer.messages[:end], "turn": writer.messages[end:], "facts": writer.facts}
