"""Bodies with everything that a provider adds to words: reasoning, parallel calls, images, ids."""

WORDS = "the answer to request {0} is in src/module_{0}.rs, line {0}00; " * 12


def anthropic(turns: int = 12) -> dict:
    messages = []
    for n in range(turns):
        ids = [f"toolu_{n}_{i}" for i in range(2)]
        messages += [
            {"role": "user", "content": [{"type": "text", "text": f"request {n}: {WORDS.format(n)}"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"},
                {"type": "text", "text": "I look."},
                *({"type": "tool_use", "id": id, "name": "run", "input": {"n": n}} for id in ids),
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": ids[0], "content": [
                    {"type": "text", "text": WORDS.format(n)},
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/x.png"}},
                ]},
                {"type": "tool_result", "tool_use_id": ids[1], "content": WORDS.format(n), "is_error": True},
            ]},
            {"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "c2VhbGVk"}, {"type": "text", "text": WORDS.format(n)}]},
        ]
    messages.append({"role": "user", "content": "and now?"})
    tools = [{"name": "run", "input_schema": {"type": "object"}}]
    thinking = {"type": "adaptive"}
    return {"model": "m", "max_tokens": 9, "tools": tools, "thinking": thinking, "messages": messages}


def openai_responses(turns: int = 12) -> dict:
    items = []
    for n in range(turns):
        items += [
            {"role": "user", "content": f"request {n}: {WORDS.format(n)}"},
            {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "c2VhbGVk"},
            {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "run", "arguments": "{}"},
            {"type": "shell_call", "id": f"sh_{n}", "call_id": f"shell_{n}", "status": "completed",
             "action": {"commands": [WORDS.format(n)]}},
            {"type": "function_call_output", "call_id": f"call_{n}", "output": WORDS.format(n)},
            {"type": "shell_call_output", "call_id": f"shell_{n}", "output": [
                {"stdout": WORDS.format(n), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
            {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": WORDS.format(n), "annotations": []}]},
        ]
    items.append({"role": "user", "content": "and now?"})
    return {"model": "m", "store": False, "instructions": "be good", "input": items}


def gemini(turns: int = 12) -> dict:
    contents = []
    for n in range(turns):
        call = {"functionCall": {"name": "run", "args": {"n": n}}, "thoughtSignature": "c2lnbmVk"}
        contents += [
            {"role": "user", "parts": [{"text": f"request {n}: {WORDS.format(n)}"}]},
            {"role": "model", "parts": [{"text": "I look."}, call]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "run", "response": {"rows": [WORDS.format(n)]}}}]},
            {"role": "model", "parts": [{"text": WORDS.format(n)}]},
        ]
    contents.append({"role": "user", "parts": [{"text": "and now?"}]})
    return {"systemInstruction": {"parts": [{"text": "be good"}]}, "contents": contents}


BODIES = {"anthropic": anthropic, "openai-responses": openai_responses, "gemini": gemini}
