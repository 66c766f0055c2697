"""A model with a small window that it enforces, on every API that an agent of ours speaks.

It works through numbered steps as `stepwise` does; each step prints so much that all of them fill the window several
times over. Whoever sends more than the window, or what the API takes for no legal prompt, is refused in its words. It
also watches that a view stays as it is until the next one is made.
"""

import json
import re
import threading
import time

import prompt_rules
import stepwise
from stepwise import DONE, FINISHED, Stepwise

#: Words by which the agents ask for a summary; none of these may arrive.
SUMMARY_WORDS = [
    "Respond with TEXT ONLY", "CONTEXT CHECKPOINT COMPACTION", "compaction_trigger", "<state_snapshot>",
    "anchored summary", "detailed prompt for continuing",
]
#: Characters to a token, as this model counts.
CHARACTERS = 3
#: How a view names the compaction that made it.
RECEIPT = re.compile(r"<COMPACT-SUMMARY v\d+>\\nreceipt: (\w+) ")


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
        #: What was refused for another reason than its length, and views that changed before the next was made.
        self.faults: list[str] = []
        #: Words of faults that the agent makes by itself, and that are overlooked.
        self.excused: str | None = None
        self.thawed: list[str] = []
        self.frozen: dict[str, list] = {}
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
        return Messages(body) if path.endswith("/messages") else Responses(body)

    def reply(self, wire) -> tuple[int, bytes, str]:
        body = wire.body
        tokens = len(json.dumps(body, ensure_ascii=False)) // CHARACTERS
        if any(words in wire.question() for words in SUMMARY_WORDS):
            self.summaries.append(body)
        if tokens > self.window:
            self.refused.append(body)
            return wire.refuse(tokens, self.window)
        fault = wire.fault()
        if fault and (self.excused is None or self.excused not in fault):
            self.faults.append(fault)
            return wire.refuse_for(fault)
        self.accepted.append(body)
        said = wire.text()
        self.watch_view(said, wire.history())
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

    def watch_view(self, said: str, history: list) -> None:
        """Notes a view that is not the beginning of the next one of its compaction. What stands last may yet be added to."""
        if not (named := RECEIPT.search(said)):
            return
        before = self.frozen.get(named[1], [])[:-1]
        self.frozen[named[1]] = history
        if history[: len(before)] != before:
            at = next(n for n, (one, other) in enumerate(zip(before, history + [None] * len(before))) if one != other)
            self.thawed.append(f"{named[1]}: message {at} of {len(before)}")

    def views(self) -> list[dict]:
        """What was accepted and is not what the agent wrote."""
        return [body for body in self.accepted if "COMPACT-SUMMARY" in json.dumps(body)]


class Messages(stepwise.Messages):
    """A request to Anthropic's Messages, whose model thinks before it speaks."""

    def thoughts(self) -> list[tuple[dict, list[dict]]]:
        """What the model thinks, where it is asked to."""
        if self.body.get("thinking", {}).get("type") not in {"enabled", "adaptive"}:
            return []
        signature = prompt_rules.signature_of(self.body, prompt_rules.joined_turns(self.body["messages"]))
        deltas = [
            {"type": "thinking_delta", "thinking": "The next step."},
            {"type": "signature_delta", "signature": signature},
        ]
        return [({"type": "thinking", "thinking": "", "signature": ""}, deltas)]

    def history(self) -> list:
        return [[turn["role"], prompt_rules.without_marks(turn["content"])] for turn in prompt_rules.joined_turns(self.body["messages"])]

    def fault(self) -> str | None:
        return prompt_rules.messages_fault(self.body)

    def refuse_for(self, fault: str) -> tuple[int, bytes]:
        return 400, json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": fault}}).encode()


class Responses(stepwise.Responses):
    """A request to OpenAI's Responses, whose model reasons before it speaks."""

    def thoughts(self, number: int) -> list[dict]:
        if "reasoning.encrypted_content" not in (self.body.get("include") or []):
            return []
        summary = [{"type": "summary_text", "text": "The next step."}]
        return [{"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"gAAA{number}"}]

    def history(self) -> list:
        return self.body["input"]

    def fault(self) -> str | None:
        return prompt_rules.responses_fault(self.body)

    def refuse_for(self, fault: str) -> tuple[int, bytes]:
        return 400, json.dumps({"error": {"message": fault, "type": "invalid_request_error", "param": "input", "code": None}}).encode()


class Gemini:
    """A request to Gemini's generateContent."""

    def __init__(self, body: dict, path: str):
        self.body, self.streams = body, path.endswith(":streamGenerateContent")

    def has_tools(self) -> bool:
        return bool(self.body.get("tools"))

    def text(self) -> str:
        return json.dumps(self.body["contents"], ensure_ascii=False)

    def history(self) -> list:
        return self.body["contents"]

    def fault(self) -> str | None:
        return prompt_rules.gemini_fault(self.body)

    def refuse_for(self, fault: str) -> tuple[int, bytes]:
        return 400, json.dumps({"error": {"code": 400, "message": fault, "status": "INVALID_ARGUMENT"}}).encode()

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
        return self.call("", "complete_task", filled(schema, text), used)

    def answer(self, text: str, command: str | None, used: int) -> tuple[int, bytes, str]:
        if command:
            return self.call(text, "run_shell_command", {"command": command}, used)
        return self.call(text, None, {}, used)

    def call(self, text: str, name: str | None, arguments: dict, used: int) -> tuple[int, bytes, str]:
        parts: list[dict] = [{"text": text}] if text else []
        if name:
            parts.append({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2lnbmVk"})
        usage = {"promptTokenCount": used, "candidatesTokenCount": 5, "totalTokenCount": used + 5}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage, "modelVersion": "gemini-2.5-flash",
        }
        if self.streams:
            return 200, f"data: {json.dumps(answer)}\n\n".encode(), "text/event-stream"
        return 200, json.dumps(answer).encode(), "application/json"


def filled(schema: dict, text: str):
    """What a schema asks for, with a text wherever it wants one."""
    if str(schema.get("type")).lower() != "object":
        return text
    return {name: filled(schema["properties"][name], text) for name in schema.get("required", [])}


class Chat:
    """A request to OpenAI's Chat Completions."""

    def __init__(self, body: dict):
        self.body = body

    def has_tools(self) -> bool:
        return bool(self.body.get("tools"))

    def text(self) -> str:
        return json.dumps(self.body["messages"], ensure_ascii=False)

    def history(self) -> list:
        return self.body["messages"]

    def fault(self) -> str | None:
        return prompt_rules.chat_fault(self.body)

    def refuse_for(self, fault: str) -> tuple[int, bytes]:
        return 400, json.dumps({"error": {"message": fault, "type": "invalid_request_error", "param": "messages", "code": None}}).encode()

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
