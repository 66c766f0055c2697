"""Messages of every kind as the JSON that the engine reads, and back as the same kind.

What the engine leaves as it was is handed out as the caller's very own object. What it wrote or
changed becomes a dict, a :class:`Message`, or an object of the class that the caller's messages of
that role have.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native
from .exceptions import FormatError
from .message import Message

__all__ = [
    *("Account", "Codec", "Told", "Violation"),
    *("account", "as_message", "flags", "tell", "tell_lines", "validate"),
]

#: What the list of messages and the instructions beside it are called.
_MEMBERS = {
    "openai-chat": ("messages", "system"),
    "messages": ("messages", "system"),
    "anthropic": ("messages", "system"),
    "openai-responses": ("input", "instructions"),
    "gemini": ("contents", "systemInstruction"),
}


#: Members of a message that are for us alone: no provider is sent them.
_OWN = ("meta", "protected")


class Codec:
    """Translates single messages; integrations derive their own for objects of an SDK."""

    #: The provider's format; ``None`` finds it out from the messages.
    format: str | None = None

    def __init__(self, format: str | None = None) -> None:
        if format is not None:
            self.format = format

    def dump(self, item: Any) -> Any:
        """A message as JSON values."""
        if isinstance(item, Message):
            return _of_message(item)
        return _plain(item)

    def bare(self, item: Any) -> Any:
        """A message as its provider takes it: without ``meta``, in a copy where it carries one."""
        if isinstance(item, Mapping):
            mine = any(key in item for key in _OWN)
            return {key: item[key] for key in item if key not in _OWN} if mine else item
        extra = getattr(item, "__pydantic_extra__", None) or {}
        return _without_own(item) if any(key in extra for key in _OWN) else item

    def load(self, data: dict[str, Any], items: Sequence[Any]) -> Any:
        """A message that the engine made, as an object like the caller's ``items``."""
        if items and all(isinstance(item, Message) for item in items):
            return as_message(data)
        for kind in _classes(items, data.get("role")):
            try:
                return kind.model_validate(data)
            except Exception:  # another role's class; a dict says the same
                continue
        return data


def _without_own(item: Any) -> Any:
    """A copy of an SDK's object without the members that its class does not know."""
    copy = item.model_copy()
    for key in _OWN:
        copy.__pydantic_extra__.pop(key, None)
        copy.__pydantic_fields_set__.discard(key)
    return copy


def flags(*sources: Any) -> dict[str, bool]:
    """What is said about a message where its SDK has room for it: what is ``True``, or in ``meta``."""
    said: dict[str, bool] = {}
    for source in sources:
        if isinstance(source, Mapping):
            said |= {str(key): True for key, value in source.items() if value is True}
            meta = source.get("meta")
            said |= {str(key): True for key, value in meta.items() if value} if isinstance(meta, Mapping) else {}
    return said


def _of_message(item: Message) -> dict[str, Any]:
    meta = item.meta or {}
    data: dict[str, Any] = {"role": item.role, "content": item.content}
    for key in ("tool_calls", "tool_call_id", "name"):
        if key in meta:
            data[key] = meta[key]
    if item.meta is not None:
        data["meta"] = item.meta
    return data


def _plain(item: Any) -> Any:
    """Dicts as they are, objects by what they know about their own JSON."""
    if isinstance(item, (dict, list, str, int, float, bool)) or item is None:
        return item
    if isinstance(item, (bytes, bytearray, memoryview)):
        raise TypeError("bytes are no text: decode them")
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_none=True)
    to_dict = getattr(item, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, Iterable):
        return list(item)
    fields = getattr(item, "__dict__", None)
    return {k: v for k, v in fields.items() if v is not None} if fields else str(item)


def _classes(items: Sequence[Any], role: Any) -> list[Any]:
    kinds: dict[Any, bool] = {}
    for item in items:
        if hasattr(type(item), "model_validate"):
            same = getattr(item, "role", None) == role
            kinds[type(item)] = kinds.get(type(item), False) or same
    return sorted(kinds, key=lambda kind: not kinds[kind])


def as_message(data: Mapping[str, Any]) -> Message:
    """Any provider's message as a plain one: its role, and its words."""
    kind = str(data.get("type") or "")
    role = str(data.get("role") or "")
    if role == "model":
        role = "assistant"
    if kind.endswith("_output") or role == "function":
        role = "tool"
    role = role or ("assistant" if kind else "user")
    keys = ("content", "parts", "output", "arguments", "summary", "tool_calls", "input")
    words = [text for key in keys for text in _texts(data.get(key))]
    meta = dict(data.get("meta") or {})
    names = {"name": "tool_name", "call_id": "tool_call_id", "tool_call_id": "tool_call_id"}
    for key, name in names.items():
        if data.get(key):
            meta.setdefault(name, data[key])
    return Message(role, "\n".join(words), meta or None)  # type: ignore[arg-type]


#: Members of a part that hold words, or parts of it.
_WORDY = (
    *("text", "content", "thinking", "name", "input", "arguments", "args"),
    *("functionCall", "functionResponse", "response", "function", "output"),
)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, Mapping):
        found = [text for key in _WORDY for text in _texts(value.get(key))]
        return found or [json.dumps(value, ensure_ascii=False, default=_plain)] * bool(value)
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    return []


# One for all: making an encoder takes longer than most messages do.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
)


def dumps(value: Any) -> str:
    """JSON as the engine reads it."""
    return _ENCODER.encode(value)


@dataclass
class Told:
    """A conversation on its way to the engine."""

    items: list[Any]
    #: The form of what each text was written from.
    kept: list[bytes | None]
    texts: list[str]
    format: str
    head: str
    list_key: str
    system_key: str

    def arguments(self) -> tuple[str, str, str, list[str]]:
        """What the engine's methods take."""
        return (self.format, self.head, self.list_key, self.texts)


def tell(
    messages: Iterable[Any],
    codec: Codec,
    *,
    model: str = "",
    system: Any = None,
    tools: Any = None,
    more: Mapping[str, Any] | None = None,
    before: Told | None = None,
) -> Told:
    """Messages with what stands beside them, as the engine reads them.

    Those that were told ``before``, and are still what they were, are not written again.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TypeError(f"messages must be a list of messages, found {type(messages).__name__}")
    items = list(messages)
    kept, texts = _written(items, codec, before)
    format = codec.format or _detected(texts)
    list_key, system_key = _MEMBERS.get(format, ("", ""))
    beside = {"model": model, "tools": tools, system_key: system, **(more or {})}
    members = {key: value for key, value in beside.items() if value}
    head = _head(members) if members and list_key else ""
    return Told(items, kept, texts, format, head, list_key, system_key)


def tell_lines(transcript: str) -> Told:
    """The messages in an agent's transcript, for whoever is to be told what it says."""
    texts = []
    for line in transcript.splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        message = data.get("message") if isinstance(data, dict) else None
        texts += [dumps(message if isinstance(message, dict) else data)] * isinstance(data, dict)
    return Told([], [], texts, "", "", "", "")


def likely(messages: Sequence[Any], codec: Codec, known: Iterable[Told]) -> Told | None:
    """What these messages most likely go on from: the longest that ends with one of them, in its place."""
    forms: dict[int, bytes | None] = {}
    best = None
    for told in known:
        last = len(told.kept) - 1
        if not 0 <= last < len(messages) or (best and last < len(best.kept)):
            continue
        if last not in forms:
            forms[last] = _form(_dumped(messages[last], codec))
        if forms[last] is not None and forms[last] == told.kept[last]:
            best = told
    return best


def _dumped(message: Any, codec: Codec) -> Any:
    try:
        return codec.dump(message)
    except (TypeError, ValueError, RecursionError):
        return None  # It is refused where it is written.


def _written(
    items: Sequence[Any], codec: Codec, before: Told | None
) -> tuple[list[bytes | None], list[str]]:
    """Each message as JSON, and the form of what it was written from; an error names its place."""
    known = before.kept if before else []
    kept: list[bytes | None] = []
    texts: list[str] = []
    for place, item in enumerate(items):
        try:
            data = codec.dump(item)
            # Made first: what another thread changes meanwhile is then told again.
            form = _form(data)
            is_known = before and place < len(known) and form is not None and form == known[place]
            kept.append(form)
            texts.append(before.texts[place] if before and is_known else _text(data, item))
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(
                f"messages[{place}] cannot be read: {error}; "
                "pass a dict of the provider's, a Message or an object of an SDK"
            ) from error
    return kept, texts


def _text(data: Any, item: Any) -> str:
    if not isinstance(data, dict):
        raise TypeError(f"{type(item).__name__} is no message")
    text = dumps(data)
    text.encode()  # A lone surrogate is no text.
    return text


def _form(data: Any) -> bytes | None:
    """What a message is made of, down to the order of its members and the kinds of its numbers.

    Messages may be changed in place, so who they are proves nothing. Of one that holds objects of the
    caller's nobody knows what it is written as but by writing it: ``None``. An array counts by its bytes.
    """
    try:
        return marshal.dumps(data, 2)  # Later versions depend on who else holds a text.
    except ValueError:
        return None


def _head(members: Mapping[str, Any]) -> str:
    try:
        return dumps(members)
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"system or tools cannot be read: {error}") from error


def _detected(texts: Sequence[str]) -> str:
    try:
        return _native.detect("[" + ",".join(texts) + "]")
    except FormatError as error:
        raise FormatError(
            "cannot tell whose messages these are: each needs a role, or name the format, as in "
            "CompactConfig(format=\"openai-chat\"), openai-responses, anthropic or gemini"
        ) from error


@dataclass(frozen=True)
class Account:
    """What the tokens of a conversation are spent on."""

    total: int
    system: int
    tools: int
    history: int
    tool_results: int
    memory: int
    user_input: int


def account(
    messages: Iterable[Any],
    *,
    estimator: str = "auto",
    model: str = "",
    system: Any = None,
    tools: Any = None,
    codec: Codec | None = None,
) -> Account:
    """Counts a conversation."""
    told = tell(messages, codec or Codec(), model=model, system=system, tools=tools)
    answer = _native.account(*told.arguments(), estimator, model or None)
    return Account(**json.loads(answer))


@dataclass(frozen=True)
class Violation:
    """A rule of a provider that a request breaks."""

    rule: str
    name: str
    entry: int | None
    message: str


def validate(body: Any, provider: str, *, strict: bool = False) -> list[Violation]:
    """What a provider would refuse in a request body or a list of messages."""
    text = body if isinstance(body, str) else dumps(_plain(body))
    found = json.loads(_native.validate(text, provider, strict))
    return [Violation(**violation) for violation in found]


Redact = Callable[[Message], Message]
