"""The official SDKs, LangChain and the Agents SDK through a gateway that writes on answers: what a model's summary lost is
added to it (`gateway.answer_compaction: augment`), and a model looks things up unseen (`gateway.offer_recall`)."""

import json
import os
import subprocess

import agents
import anthropic
import openai
import pytest
from google import genai
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

import test_gateway
from test_gateway import Upstream, events

RULE = "Never drop the column ledger_rows.amount_legacy before the September close."
#: What the model writes of its own accord: a summary that lost the rule.
WRITTEN = "Runs were measured."
#: What it says once it has looked something up.
FOUND = "It was 9003."
QUERY = {"query": "port metrics run 3"}

agents.set_tracing_disabled(True)


class WritingUpstream(Upstream):
    """Says what a test wants; where it is offered to look something up, it does that first."""

    def __init__(self, words: str):
        super().__init__()
        self.words = words


def speak(body: dict, tokens: int, words: str, form) -> tuple[str, str]:
    """The usual answer of a wire with other words."""
    kind, text = form(body, tokens)
    return kind, text.replace('"Done."', json.dumps(words))


def call_messages(body: dict) -> tuple[str, str]:
    message = {"id": "msg_0", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
    usage = {"input_tokens": 9, "output_tokens": 1}
    call = {"type": "tool_use", "id": "toolu_1", "name": "compact_recall"}
    if not body.get("stream"):
        whole = {"content": [call | {"input": QUERY}], "stop_reason": "tool_use", "usage": usage}
        return "application/json", json.dumps(message | whole)
    part = {"type": "input_json_delta", "partial_json": json.dumps(QUERY)}
    return events(
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": call | {"input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": part},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )


def call_chat(body: dict) -> tuple[str, str]:
    function = {"name": "compact_recall", "arguments": json.dumps(QUERY)}
    call = {"id": "call_1", "type": "function", "function": function}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
        return "application/json", json.dumps(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
    delta = {"role": "assistant", "tool_calls": [call | {"index": 0}]}
    return events(
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        end="data: [DONE]\n\n",
    )


CALLS = {"/chat/completions": call_chat, "/messages": call_messages}


class WritingHandler(test_gateway.Handler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.bodies.append(text.encode())
        body = json.loads(text)
        end = next(end for end in test_gateway.ANSWERS if end in self.path)
        is_offered = "compact_recall" in json.dumps(body.get("tools", []))
        has_looked = "toolu_1" in text or "call_1" in text
        if is_offered and not has_looked:
            self.answer(200, *CALLS[end](body))
        else:
            self.answer(200, *speak(body, len(text) // 4, self.server.words, test_gateway.ANSWERS[end]))


@pytest.fixture
def gateway(maker, tmp_path, request):
    words, setting, window = request.param
    upstream = WritingUpstream(words)
    upstream.RequestHandlerClass = WritingHandler
    names = ["OPENAI", "ANTHROPIC", "GEMINI"]
    environment = {
        **os.environ, "COMPACT_STORAGE_PATH": str(tmp_path), "COMPACT_MAX_CONTEXT_TOKENS": str(window), **setting,
        **{f"COMPACT_GATEWAY_{name}_URL": upstream.url for name in names},
    }
    served = subprocess.Popen(
        [maker.program, "serve", "--listen", "127.0.0.1:0"], env=environment, stderr=subprocess.PIPE, text=True
    )
    upstream.gateway = served.stderr.readline().removeprefix("listening on ").strip()
    yield upstream
    served.terminate()
    assert served.wait(20) == 0
    upstream.shutdown()


augmented = pytest.mark.parametrize(
    "gateway", [(WRITTEN, {"COMPACT_GATEWAY_ANSWER_COMPACTION": "augment"}, 40_000)], indirect=True, ids=["augment"]
)
offered = pytest.mark.parametrize(
    "gateway", [(FOUND, {"COMPACT_GATEWAY_OFFER_RECALL": "true"}, 6_000)], indirect=True, ids=["recall"]
)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def said(turns: int = 12) -> list[tuple[str, str]]:
    """Who said what; the rule stands at the beginning."""
    history = []
    for n in range(turns):
        history.append(("user", f"Measure run {n}. {RULE if n == 0 else ''}"))
        history.append(("assistant", f"Run {n} took {n} ms; the metrics of it are served on port {9000 + n}. " * 20))
    return history


def as_messages(history: list[tuple[str, str]], asked: str) -> list[dict]:
    return [{"role": role, "content": text} for role, text in [*history, ("user", asked)]]


CLAUDE_ASKS = "Your task is to create a detailed summary of the conversation so far."
CLAUDE_SYSTEM = "You are Claude Code, Anthropic's official CLI for Claude."
CODEX_ASKS = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary."
OPENCODE_ASKS = "Provide a detailed prompt for continuing our conversation above."
GEMINI_SYSTEM = "Write everything that matters into a <state_snapshot>."


def check_summary(text: str, upstream: WritingUpstream) -> None:
    assert text.startswith(WRITTEN), text
    assert RULE in text, "what the model lost is added"
    assert len(upstream.bodies) == 1, "the model was asked once"


@augmented
@streams
def test_anthropic_gets_a_summary_with_what_it_lost(gateway, stream):
    client = anthropic.Anthropic(base_url=gateway.gateway, api_key="sk-test", max_retries=0)
    asked = {
        "model": "claude-sonnet-4-5", "max_tokens": 5_000, "system": CLAUDE_SYSTEM, "messages": as_messages(said(), CLAUDE_ASKS),
    }
    if stream:
        with client.messages.stream(**asked) as answer:
            text = "".join(answer.text_stream)
            assert answer.get_final_message().content[0].text == text
    else:
        text = client.messages.create(**asked).content[0].text
    check_summary(text, gateway)


@augmented
@streams
def test_openai_chat_gets_a_summary_with_what_it_lost(gateway, stream):
    client = openai.OpenAI(base_url=f"{gateway.gateway}/v1", api_key="sk-test", max_retries=0)
    messages = as_messages(said(), OPENCODE_ASKS)
    answer = client.chat.completions.create(model="gpt-5", messages=messages, stream=stream)
    if stream:
        text = "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
    else:
        text = answer.choices[0].message.content
    check_summary(text, gateway)


@augmented
def test_openai_responses_gets_a_summary_with_what_it_lost(gateway):
    client = openai.OpenAI(base_url=f"{gateway.gateway}/v1", api_key="sk-test", max_retries=0)
    answer = client.responses.create(model="gpt-5", input=as_messages(said(), CODEX_ASKS), store=False)
    check_summary(answer.output_text, gateway)


@augmented
def test_google_genai_gets_a_summary_with_what_it_lost(gateway):
    client = genai.Client(api_key="test", http_options={"base_url": gateway.gateway})
    history = [*said(), ("user", "First, reason in your scratchpad. Then, generate the <state_snapshot>.")]
    contents = [{"role": "user" if role == "user" else "model", "parts": [{"text": text}]} for role, text in history]
    config = {"system_instruction": GEMINI_SYSTEM}
    answer = client.models.generate_content(model="gemini-2.5-pro", contents=contents, config=config)
    check_summary(answer.text, gateway)


def lang_chain(kind: str, gateway: str):
    if kind == "anthropic":
        return ChatAnthropic(model="claude-sonnet-4-5", base_url=gateway, api_key="sk-test", max_tokens=5_000, max_retries=0)
    return ChatOpenAI(model="gpt-4o", base_url=f"{gateway}/v1", api_key="sk-test", max_retries=0)


def lang_chain_text(model, messages: list, stream: bool) -> str:
    if stream:
        whole = None
        for chunk in model.stream(messages):
            whole = chunk if whole is None else whole + chunk
        answer = whole
    else:
        answer = model.invoke(messages)
    assert not answer.tool_calls, "the client sees no call"
    return answer.text


@augmented
@streams
@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_lang_chain_gets_a_summary_with_what_it_lost(gateway, kind, stream):
    system, asks = (CLAUDE_SYSTEM, CLAUDE_ASKS) if kind == "anthropic" else ("Be brief.", OPENCODE_ASKS)
    messages = [("system", system), *said(), ("user", asks)]
    text = lang_chain_text(lang_chain(kind, gateway.gateway), messages, stream)
    check_summary(text, gateway)


def agents_model(gateway: str) -> agents.OpenAIChatCompletionsModel:
    client = openai.AsyncOpenAI(base_url=f"{gateway}/v1", api_key="sk-test", max_retries=0)
    return agents.OpenAIChatCompletionsModel("gpt-4o", client)


@augmented
def test_the_agents_sdk_gets_a_summary_with_what_it_lost(gateway):
    agent = agents.Agent("summarizer", model=agents_model(gateway.gateway))
    done = agents.Runner.run_sync(agent, as_messages(said(), OPENCODE_ASKS))
    check_summary(done.final_output, gateway)


ASKED = "Which port had run 3?"
READ = {"name": "read_file", "description": "Reads a file.", "schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def check_lookup(text: str, upstream: WritingUpstream) -> None:
    assert text == FOUND
    first, second = [body.decode() for body in upstream.bodies]
    assert "COMPACT-SUMMARY" in first and "compact_recall" in first, "the model was offered to look"
    answered = json.dumps(json.loads(second)["messages"][-1])
    assert "9003" in answered, "and was answered from the archive"


@offered
@streams
def test_anthropic_sees_no_call_of_a_lookup(gateway, stream):
    client = anthropic.Anthropic(base_url=gateway.gateway, api_key="sk-test", max_retries=0)
    tool = {"name": READ["name"], "description": READ["description"], "input_schema": READ["schema"]}
    asked = {"model": "claude-sonnet-4-5", "max_tokens": 1_000, "tools": [tool], "messages": as_messages(said(60), ASKED)}
    if stream:
        with client.messages.stream(**asked) as answer:
            message = answer.get_final_message()
    else:
        message = client.messages.create(**asked)
    assert [block.type for block in message.content] == ["text"] and message.stop_reason == "end_turn"
    check_lookup(message.content[0].text, gateway)


@offered
@streams
def test_openai_chat_sees_no_call_of_a_lookup(gateway, stream):
    client = openai.OpenAI(base_url=f"{gateway.gateway}/v1", api_key="sk-test", max_retries=0)
    tool = {"type": "function", "function": {"name": READ["name"], "parameters": READ["schema"]}}
    answer = client.chat.completions.create(
        model="gpt-4o", messages=as_messages(said(60), ASKED), tools=[tool], stream=stream
    )
    if stream:
        deltas = [chunk.choices[0].delta for chunk in answer if chunk.choices]
        assert not any(delta.tool_calls for delta in deltas)
        text = "".join(delta.content or "" for delta in deltas)
    else:
        assert not answer.choices[0].message.tool_calls
        text = answer.choices[0].message.content
    check_lookup(text, gateway)


@offered
def test_openai_responses_and_google_genai_are_offered_nothing(gateway):
    client = openai.OpenAI(base_url=f"{gateway.gateway}/v1", api_key="sk-test", max_retries=0)
    tool = {"type": "function", "name": READ["name"], "parameters": READ["schema"], "strict": False}
    answer = client.responses.create(model="gpt-4o", input=as_messages(said(60), ASKED), tools=[tool], store=False)
    assert answer.output_text == FOUND
    client = genai.Client(api_key="test", http_options={"base_url": gateway.gateway})
    history = [*said(60), ("user", ASKED)]
    contents = [{"role": "user" if role == "user" else "model", "parts": [{"text": text}]} for role, text in history]
    tools = [{"function_declarations": [{"name": READ["name"], "description": READ["description"]}]}]
    answer = client.models.generate_content(model="gemini-2.5-pro", contents=contents, config={"tools": tools})
    assert answer.text == FOUND
    assert len(gateway.bodies) == 2
    for body in gateway.bodies:
        assert b"COMPACT-SUMMARY" in body and b"compact_recall" not in body


@offered
@streams
@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_lang_chain_sees_no_call_of_a_lookup(gateway, kind, stream):
    def read_file(path: str) -> str:
        """Reads a file."""
        return path

    model = lang_chain(kind, gateway.gateway).bind_tools([read_file])
    text = lang_chain_text(model, [*said(60), ("user", ASKED)], stream)
    check_lookup(text, gateway)


@offered
def test_the_agents_sdk_sees_no_call_of_a_lookup(gateway):
    @agents.function_tool
    def read_file(path: str) -> str:
        """Reads a file."""
        return path

    agent = agents.Agent("reader", model=agents_model(gateway.gateway), tools=[read_file])
    done = agents.Runner.run_sync(agent, as_messages(said(60), ASKED))
    assert [item.type for item in done.new_items] == ["message_output_item"]
    check_lookup(done.final_output, gateway)
