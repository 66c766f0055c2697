"""What each API refuses of a prompt, whatever its length: the rules that a model of `limited` enforces.

They are written from what providers refuse, and by nothing of this project: what our own checks take for legal and a
provider does not would pass both otherwise. Each returns what is wrong, in the provider's words, or `None`.
"""

import hashlib
import json
import re


def chat_fault(body: dict) -> str | None:
    """OpenAI's Chat Completions."""
    open_calls: set[str] = set()
    answered: set[str] = set()
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            call = message.get("tool_call_id")
            if call not in open_calls | answered:
                return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            open_calls.discard(call)
            answered.add(call)
            continue
        if open_calls:
            missing = ", ".join(sorted(open_calls))
            return f"An assistant message with 'tool_calls' must be followed by tool messages responding to each: {missing}"
        calls = message.get("tool_calls") or []
        open_calls, answered = {call["id"] for call in calls}, set()
        if any(not isinstance(call["function"]["arguments"], str) for call in calls):
            return f"messages.{number}: 'arguments' must be a string"
        if message.get("content") is None and not calls:
            return f"messages.{number}: 'content' is required"
    return f"calls without an answer: {sorted(open_calls)}" if open_calls else None


#: What answers each kind of call of Responses.
OUTPUTS = {
    "function_call": {"function_call_output"}, "custom_tool_call": {"custom_tool_call_output"},
    "local_shell_call": {"function_call_output", "local_shell_call_output"},
}


def responses_fault(body: dict) -> str | None:
    """OpenAI's Responses."""
    items = body["input"]
    calls = {item["call_id"]: item["type"] for item in items if item.get("type") in OUTPUTS}
    seen: set[str] = set()
    outputs: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind in OUTPUTS:
            seen.add(item["call_id"])
        if kind.endswith("_output"):
            if item["call_id"] not in seen or kind not in OUTPUTS[calls[item["call_id"]]]:
                return f"No tool call found for function call output with call_id {item['call_id']}."
            if item["call_id"] in outputs:
                return f"Duplicate output for {item['call_id']}."
            outputs.add(item["call_id"])
    if left := seen - outputs:
        return f"No tool output found for function call {', '.join(sorted(left))}."
    names = [item["id"] for item in items if item.get("id")]
    if len(names) != len(set(names)):
        return "Duplicate item found."
    return reasoning_fault(items)


def reasoning_fault(items: list[dict]) -> str | None:
    """Reasoning goes before what it led to, and what has an id goes behind its reasoning."""
    for item, following in zip(items, items[1:] + [{}]):
        if item.get("type") != "reasoning":
            continue
        is_said = following.get("type", "message") == "message" and following.get("role") == "assistant"
        if not (is_said or following.get("type") in {"reasoning", *OUTPUTS}):
            return f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        if not item.get("encrypted_content"):
            return f"Item '{item.get('id')}' not found: items are not persisted when `store` is false."
    return None


def messages_fault(body: dict) -> str | None:
    """Anthropic's Messages."""
    messages = joined_turns(body["messages"])
    if messages[0]["role"] != "user":
        return "messages: first message must use the \"user\" role"
    marks = json.dumps([body.get("system"), body.get("tools"), body["messages"]]).count('"cache_control": {')
    if marks > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    roles = [message["role"] for message in messages] + ["assistant"]
    if any(role == "system" and (roles[at - 1], roles[at + 1]) != ("user", "assistant") for at, role in enumerate(roles)):
        return "messages: a system message must follow a user turn and precede an assistant turn"
    before: list[str] = []
    for number, message in enumerate(messages):
        blocks = message["content"]
        if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return f"messages.{number}: text content blocks must contain non-whitespace text"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if foreign := set(results) - set(before):
            return f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(foreign)}"
        if missing := set(before) - set(results):
            names = ", ".join(missing)
            return f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {names}"
        kinds = [block["type"] for block in blocks]
        if results and "text" in kinds[: len(kinds) - kinds[::-1].index("tool_result")]:
            return f"messages.{number}: `tool_result` blocks must stand first"
        before = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if odd := [name for name in before if not re.fullmatch(r"[a-zA-Z0-9_-]+", name)]:
            return f"messages.{number}: tool_use.id {odd} should match pattern '^[a-zA-Z0-9_-]+$'"
    if before:
        return f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(before)}"
    return thinking_fault(body, messages)


def joined_turns(messages: list[dict]) -> list[dict]:
    """Turns of one side that follow each other are one; a text is a block."""
    turns: list[dict] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] = turns[-1]["content"] + blocks
        else:
            turns.append({"role": message["role"], "content": list(blocks)})
    return turns


#: The signature of a thought that is bound to nothing.
UNBOUND = "c2lnbmVk"


def signature_of(body: dict, before: list[dict]) -> str:
    """What signs a thought behind these turns: models that think as they see fit bind it to them, older ones do not."""
    return binding_of(before) if body.get("thinking", {}).get("type") == "adaptive" else UNBOUND


def thinking_fault(body: dict, messages: list[dict]) -> str | None:
    """A thought may be bound to everything that was said before it, and a loop of tools may have to begin with one."""
    for number, message in enumerate(messages):
        thoughts = [block for block in message["content"] if block["type"] == "thinking"]
        signature = signature_of(body, messages[:number]) if thoughts else None
        if any(block["signature"] != signature for block in thoughts):
            return f"messages.{number}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    said = [message for message in messages if message["role"] == "assistant"]
    is_open = bool(said) and any(block["type"] == "tool_result" for block in messages[-1]["content"])
    if is_open and body.get("thinking", {}).get("type") == "enabled":
        first = said[-1]["content"][0]["type"]
        if first not in {"thinking", "redacted_thinking"}:
            return f"Expected `thinking` or `redacted_thinking`, but found `{first}`."
    return None


def binding_of(messages: list[dict]) -> str:
    """A signature that fits only behind these turns. What caches are told is no part of them."""
    plain = [[message["role"], without_marks(message["content"])] for message in messages]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def without_marks(blocks: list[dict]) -> list[dict]:
    """Blocks without what caches are told: it moves on with each request."""
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]


def gemini_fault(body: dict) -> str | None:
    """Gemini's generateContent."""
    contents = body["contents"]
    roles = [content["role"] for content in contents]
    if roles[0] != "user" or roles[-1] != "user":
        return "Please ensure that the conversation starts and ends with a user turn."
    if any(one == other for one, other in zip(roles, roles[1:])):
        return "Please ensure that roles alternate."
    open_calls: list[str] = []
    for content in contents:
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if [answer["name"] for answer in answers] != open_calls:
            return (
                "Please ensure that the number of function response parts is equal to the number of function call parts "
                "of the function call turn."
            )
        if any(not isinstance(answer["response"], dict) for answer in answers):
            return "functionResponse.response must be an object"
        if not content["parts"]:
            return "contents.parts must not be empty."
        open_calls = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    return signature_fault(contents) or ("a function call has no response" if open_calls else None)


def signature_fault(contents: list[dict]) -> str | None:
    """Since the last words of a person, the first call of each step bears its signature."""
    is_said = [any("text" in part for part in c["parts"]) and c["role"] == "user" for c in contents]
    is_answer = [any("functionResponse" in part for part in content["parts"]) for content in contents]
    turns = [at for at, (said, answer) in enumerate(zip(is_said, is_answer)) if said and not answer]
    for content in contents[turns[-1] if turns else 0 :]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return f"Function call is missing a thought_signature in functionCall parts: {calls[0]['functionCall']['name']}"
    return None
