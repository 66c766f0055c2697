"""A model with a small window that it enforces, on every API that an agent of ours speaks.

It works through numbered steps as `stepwise` does; each step prints so much that all of them fill the window several
times over. Whoever sends more than the window is refused in the words of the API.
"""

import json
import threading
import time

import stepwise
from stepwise import DONE, FINISHED, Stepwise

#: Words by which the agents ask for a summary; none of these may arrive.
SUMMARY_WORDS = [
    "Respond with TEXT ONLY", "CONTEXT CHECKPOINT COMPACTION", "compaction_trigger", "<state_snapshot>",
    "anchored summary", "detailed prompt for continuing",
]
#: Characters to a token, as this model counts.
CHARACTERS = 3


class Limited(Stepwise):
    """The model."""

    def __init__(self, steps: int, window: int = 60_000):
        super().__init__(steps)
        self.window = window
        #: What a step prints: 300 lines, and its number behind them.
        self.command = (
            "seq 1 300 | sed 's/.*/step {step} row &: account 40& was posted on day &, cursor placed_at_&/'; "
            "echo step-{step} >> steps.txt; printf 'done:%d' {step}"
        )
        #: Bodies that were accepted, refused, and those that ask for a summary.
        self.accepted: list[dict] = []
        self.refused: list[dict] = []
        self.summaries: list[dict] = []
        #: What is said to have been used, until there is a summary; `None` for what a request takes.
        self.reported: int | None = None
        #: What the model says instead of working.
        self.words: str | None = None
        #: What a sub-agent is asked to do instead.
        self.subtask: str | None = None
        #: The step in the middle of whose answer the model falls silent, until `free` is set.
        self.silent_step: int | None = None
        self.is_silent = threading.Event()
        #: Whether somebody left in the middle of an answer.
        self.was_left = threading.Event()

    def wire_of(self, path: str, body: dict):
        if path.endswith(":generateContent") or path.endswith(":streamGenerateContent"):
            return Gemini(body, path)
        if path.endswith("/chat/completions"):
            return Chat(body)
        return Messages(body) if path.endswith("/messages") else super().wire_of(path, body)

    def reply(self, wire) -> tuple[int, bytes, str]:
        body = wire.body
        tokens = len(json.dumps(body, ensure_ascii=False)) // CHARACTERS
        if any(words in wire.question() for words in SUMMARY_WORDS):
            self.summaries.append(body)
        if tokens > self.window:
            self.refused.append(body)
            return wire.refuse(tokens, self.window)
        self.accepted.append(body)
        said = wire.text()
        used = tokens if self.reported is None or "COMPACT-SUMMARY" in said else self.reported
        if not wire.has_tools():
            return wire.answer("ok", None, used)
        if self.words is not None:
            return wire.answer(self.words, None, used)
        if self.subtask is not None and self.subtask not in wire.first():
            return wire.delegate(self.subtask, used)
        last = max([int("".join(step)) for step in FINISHED.findall(said)], default=0)
        if last >= self.steps:
            return wire.finish(DONE, used)
        return wire.answer(f"Now number {last + 1}.", self.command.format(step=last + 1), used)

    def write(self, handler, body: bytes) -> None:
        half = len(body) // 2
        if self.silent_step is None or f"Now number {self.silent_step}.".encode() not in body:
            return handler.wfile.write(body)
        handler.wfile.write(body[:half])
        handler.wfile.flush()
        self.is_silent.set()
        # Whoever leaves closes the connection, which ends this read.
        handler.connection.settimeout(120)
        try:
            left = handler.connection.recv(1) == b""
        except OSError:
            left = True
        if left:
            self.was_left.set()
        handler.close_connection = True

    def views(self) -> list[dict]:
        """What was accepted and is not what the agent wrote."""
        return [body for body in self.accepted if "COMPACT-SUMMARY" in json.dumps(body)]


class Messages(stepwise.Messages):
    """A request to Anthropic's Messages, whose model thinks before it speaks."""

    def thoughts(self) -> list[tuple[dict, list[dict]]]:
        """What the model thinks, where it is asked to."""
        if self.body.get("thinking", {}).get("type") != "enabled":
            return []
        deltas = [
            {"type": "thinking_delta", "thinking": "The next step."},
            {"type": "signature_delta", "signature": "c2lnbmVk"},
        ]
        return [({"type": "thinking", "thinking": "", "signature": ""}, deltas)]


class Gemini:
    """A request to Gemini's generateContent."""

    def __init__(self, body: dict, path: str):
        self.body, self.streams = body, path.endswith(":streamGenerateContent")

    def has_tools(self) -> bool:
        return bool(self.body.get("tools"))

    def text(self) -> str:
        return json.dumps(self.body["contents"], ensure_ascii=False)

    def question(self) -> str:
        return json.dumps(self.body.get("systemInstruction", "")) if not self.has_tools() else ""

    def refuse(self, tokens: int, window: int) -> tuple[int, bytes]:
        message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return 400, json.dumps({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}).encode()

    def first(self) -> str:
        """What was asked for, however many messages that takes; what a function answers is no part of it."""
        asked = [content["parts"] for content in self.body["contents"] if content["role"] == "user"]
        return json.dumps([part["text"] for parts in asked for part in parts if "text" in part], ensure_ascii=False)

    def delegate(self, task: str, used: int) -> tuple[int, bytes, str]:
        """Has a sub-agent do a task, and ends when that is done."""
        if "functionResponse" in self.text():
            return self.answer(DONE, None, used)
        return self.call("", "invoke_agent", {"agent_name": "generalist", "prompt": task}, used)

    def finish(self, text: str, used: int) -> tuple[int, bytes, str]:
        """Ends the work; a sub-agent does that by a function."""
        functions = [function for tool in self.body.get("tools", []) for function in tool.get("functionDeclarations", [])]
        ends = [function for function in functions if function["name"] == "complete_task"]
        if not ends:
            return self.answer(text, None, used)
        schema = ends[0].get("parametersJsonSchema") or ends[0]["parameters"]
        return self.call("", "complete_task", {name: text for name in schema["required"]}, used)

    def answer(self, text: str, command: str | None, used: int) -> tuple[int, bytes, str]:
        if command:
            return self.call(text, "run_shell_command", {"command": command}, used)
        return self.call(text, None, {}, used)

    def call(self, text: str, name: str | None, arguments: dict, used: int) -> tuple[int, bytes, str]:
        parts: list[dict] = [{"text": text}] if text else []
        if name:
            parts.append({"functionCall": {"name": name, "args": arguments}})
        usage = {"promptTokenCount": used, "candidatesTokenCount": 5, "totalTokenCount": used + 5}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage, "modelVersion": "gemini-2.5-flash",
        }
        if self.streams:
            return 200, f"data: {json.dumps(answer)}\n\n".encode(), "text/event-stream"
        return 200, json.dumps(answer).encode(), "application/json"


class Chat:
    """A request to OpenAI's Chat Completions."""

    def __init__(self, body: dict):
        self.body = body

    def has_tools(self) -> bool:
        return bool(self.body.get("tools"))

    def text(self) -> str:
        return json.dumps(self.body["messages"], ensure_ascii=False)

    def question(self) -> str:
        return json.dumps(self.body["messages"][-1], ensure_ascii=False)

    def refuse(self, tokens: int, window: int) -> tuple[int, bytes]:
        message = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
            "tokens. Please reduce the length of the messages."
        )
        error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
        return 400, json.dumps({"error": error}).encode()

    def first(self) -> str:
        asked = [message["content"] for message in self.body["messages"] if message["role"] == "user"]
        return json.dumps(asked, ensure_ascii=False)

    def delegate(self, task: str, used: int) -> tuple[int, bytes, str]:
        """Has a sub-agent do a task, and ends when that is done."""
        if any(message["role"] == "tool" for message in self.body["messages"]):
            return self.answer(DONE, None, used)
        return self.call("", "task", {"description": "a part", "prompt": task, "subagent_type": "general"}, used)

    def finish(self, text: str, used: int) -> tuple[int, bytes, str]:
        return self.answer(text, None, used)

    def answer(self, text: str, command: str | None, used: int) -> tuple[int, bytes, str]:
        if command:
            return self.call(text, "bash", {"command": command, "description": "a step"}, used)
        return self.call(text, None, {}, used)

    def call(self, text: str, name: str | None, arguments: dict, used: int) -> tuple[int, bytes, str]:
        delta: dict = {"role": "assistant", "content": text}
        if name:
            function = {"name": name, "arguments": json.dumps(arguments)}
            delta["tool_calls"] = [{"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": function}]
        head = {"id": f"c{time.time_ns()}", "object": "chat.completion.chunk", "created": 1, "model": self.body["model"]}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if name else "stop"}
        usage = {"prompt_tokens": used, "completion_tokens": 5, "total_tokens": used + 5}
        chunks = [
            head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            head | {"choices": [end], "usage": usage},
        ]
        lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        return 200, f"{lines}data: [DONE]\n\n".encode(), "text/event-stream"


__all__ = ["CHARACTERS", "DONE", "Limited"]
