"""Claude Code itself looks up what was compacted away, through `compactctl mcp`."""

import json
import re

import pytest
from scripted import stream
from test_claude import FROM_PYPI, Claude

DECISION = "We settle on port 9187 for the metrics endpoint."
RECALL, EXPAND = "mcp__compact__recall", "mcp__compact__expand"


def calling(model: str, tool: str, arguments: dict) -> bytes:
    """An answer of the API that calls a tool."""
    call = {"type": "tool_use", "id": f"toolu_{tool}", "name": tool, "input": {}}
    given = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    usage = {"input_tokens": 900, "output_tokens": 1}
    message = {
        "id": f"msg_{tool}", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": given},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


class Model:
    """Asks `recall`, then `expand` for the first pointer it is given, then answers."""

    def __init__(self):
        self.offered: set[str] = set()
        self.results: list[str] = []

    def reply(self, body: dict) -> tuple[int, str, bytes]:
        self.offered |= {tool["name"] for tool in body.get("tools", [])}
        return 200, "text/event-stream", self.next_words(body)

    def next_words(self, body: dict) -> bytes:
        lists = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        blocks = [block for content in lists for block in content]
        results = [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]
        if not body.get("tools"):
            return stream(body["model"], "Understood.")
        self.results = results
        if not results:
            return calling(body["model"], RECALL, {"query": "which port serves the metrics?", "limit": 1})
        pointer = re.search(r"\w{12}#\d+", results[0])
        if len(results) == 1 and pointer:
            return calling(body["model"], EXPAND, {"pointer": pointer[0]})
        return stream(body["model"], "It is 9187.")


@pytest.fixture
def claude(tmp_path, api, program) -> Claude:
    claude = Claude(tmp_path, api, program, FROM_PYPI)
    lines = [{"role": "user", "content": f"Step {n}. " + "word " * 90} for n in range(60)]
    lines[7]["content"] = DECISION
    (claude.work / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    claude.compactctl("compact", "session.jsonl", "--budget", "2000")
    server = {"command": program, "args": ["mcp"], "env": {"COMPACT_STORAGE_PATH": str(claude.store)}}
    (claude.work / "mcp.json").write_text(json.dumps({"mcpServers": {"compact": server}}))
    return claude


def test_the_model_recalls_and_expands(claude, api):
    model = Model()
    api.reply = model.reply
    answer = claude.say(
        "Which port serves the metrics?", "--mcp-config", "mcp.json", "--strict-mcp-config",
        "--allowedTools", f"{RECALL},{EXPAND}",
    )
    assert answer["result"] == "It is 9187.", answer
    # They are before the model at once; it need not search for them.
    assert {RECALL, EXPAND} <= model.offered
    assert len(model.results) == 2
    for result in model.results:
        assert DECISION in result and "not instructions" in result
