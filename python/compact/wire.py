"""Encodes messages of every kind as the JSON that the engine reads, and decodes its answer to the same kind.

A message that the engine leaves unchanged is returned as the caller's own object. One that it wrote or
changed becomes a dict, a :class:`Message`, or an object of the class that the caller uses for that role.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import _native
from .exceptions import FormatError
from .message import Message

__all__ = [
    *("Account", "Codec", "EncodedMessages", "Violation"),
    *("account", "as_message", "encode_messages", "encode_transcript", "read_flags", "validate"),
]

#: The names of the message list and of the instructions in each format; those of chat completions are messages.
_MEMBERS = {
    "openai-chat": ("messages", ""),
    "messages": ("messages", ""),
    "anthropic": ("messages", "system"),
    "openai-responses": ("input", "instructions"),
    "gemini": ("contents", "systemInstruction"),
}

#: The formats that a provider's messages may have.
FORMATS = tuple(_MEMBERS)

#: The formats whose system prompt is not in the list of messages.
_WITH_SYSTEM_BESIDE = ("anthropic", "gemini")

#: Members of a message that only Compact reads. They are never sent to a provider.
_OWN_MEMBERS = ("meta", "protected")


class Codec:
    """Translates single messages; an integration subclasses it for the objects of its SDK."""

    #: The provider's format; ``None`` detects it from the messages.
    format: str | None = None

    def __init__(self, format: str | None = None) -> None:
        if format is not None:
            self.format = format

    def dump(self, item: Any) -> Any:
        """Returns a message as JSON values; raises ``TypeError`` for bytes."""
        if isinstance(item, Message):
            return _dump_message(item)
        return _to_json_value(item)

    def bare(self, item: Any) -> Any:
        """Returns a message without ``meta``, as the provider accepts it; a copy if it has one."""
        if isinstance(item, Mapping):
            mine = any(key in item for key in _OWN_MEMBERS)
            return {key: item[key] for key in item if key not in _OWN_MEMBERS} if mine else item
        extra = getattr(item, "__pydantic_extra__", None) or {}
        return _without_own_members(item) if any(key in extra for key in _OWN_MEMBERS) else item

    def load(self, data: dict[str, Any], items: Sequence[Any]) -> Any:
        """Returns a message that the engine made as an object of the same kind as ``items``."""
        if items and all(isinstance(item, Message) for item in items):
            return as_message(data)
        for kind in _matching_classes(items, data.get("role")):
            try:
                return kind.model_validate(data)
            except Exception:  # a class for another role; a dict holds the same
                continue
        return data


def _without_own_members(item: Any) -> Any:
    """Returns a copy of an SDK object without the extra members that only Compact reads."""
    copy = item.model_copy()
    for key in _OWN_MEMBERS:
        copy.__pydantic_extra__.pop(key, None)
        copy.__pydantic_fields_set__.discard(key)
    return copy


def read_flags(*sources: Any) -> dict[str, bool]:
    """Collects the flags of a message: every key that is ``True``, at the top or in ``meta``."""
    found: dict[str, bool] = {}
    for source in sources:
        if isinstance(source, Mapping):
            found |= {str(key): True for key, value in source.items() if value is True}
            meta = source.get("meta")
            found |= {str(key): True for key, value in meta.items() if value} if isinstance(meta, Mapping) else {}
    return found


def _dump_message(item: Message) -> dict[str, Any]:
    meta = item.meta or {}
    data: dict[str, Any] = {"role": item.role, "content": item.content}
    for key in ("tool_calls", "tool_call_id", "name"):
        if key in meta:
            data[key] = meta[key]
    if item.meta is not None:
        data["meta"] = item.meta
    return data


def _to_json_value(item: Any) -> Any:
    """Returns plain values as they are, and objects as the JSON values that they dump to."""
    if isinstance(item, (dict, list, str, int, float, bool)) or item is None:
        return item
    if isinstance(item, (bytes, bytearray, memoryview)):
        raise TypeError("bytes are not text: decode them first")
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


def _matching_classes(items: Sequence[Any], role: Any) -> list[Any]:
    """Returns the pydantic classes of ``items``, those used for ``role`` first."""
    kinds: dict[Any, bool] = {}
    for item in items:
        if hasattr(type(item), "model_validate"):
            same = getattr(item, "role", None) == role
            kinds[type(item)] = kinds.get(type(item), False) or same
    return sorted(kinds, key=lambda kind: not kinds[kind])


def as_message(data: Mapping[str, Any]) -> Message:
    """Reduces any provider's message to a :class:`Message`: its role and its text."""
    kind = str(data.get("type") or "")
    role = str(data.get("role") or "")
    if role == "model":
        role = "assistant"
    if kind.endswith("_output") or role == "function":
        role = "tool"
    role = role or ("assistant" if kind else "user")
    keys = ("content", "parts", "output", "arguments", "summary", "tool_calls", "input")
    words = [text for key in keys for text in _collect_texts(data.get(key))]
    meta = dict(data.get("meta") or {})
    names = {"name": "tool_name", "call_id": "tool_call_id", "tool_call_id": "tool_call_id"}
    for key, name in names.items():
        if data.get(key):
            meta.setdefault(name, data[key])
    return Message(role, "\n".join(words), meta or None)  # type: ignore[arg-type]


#: Members of a content part that hold text or further parts.
_TEXT_MEMBERS = (
    *("text", "content", "thinking", "name", "input", "arguments", "args"),
    *("functionCall", "functionResponse", "response", "function", "output"),
)


def _collect_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, Mapping):
        found = [text for key in _TEXT_MEMBERS for text in _collect_texts(value.get(key))]
        return found or [json.dumps(value, ensure_ascii=False, default=_to_json_value)] * bool(value)
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _collect_texts(part)]
    return []


# One encoder for all calls: making one takes longer than encoding most messages.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_to_json_value
)


def dumps(value: Any) -> str:
    """Encodes a value as compact JSON; raises ``TypeError`` or ``ValueError`` if it cannot."""
    return _ENCODER.encode(value)


@dataclass
class EncodedMessages:
    """A conversation as the JSON texts that the engine reads."""

    items: list[Any]
    #: What each text was encoded from; ``None`` where that cannot be compared.
    fingerprints: list[bytes | None]
    texts: list[str]
    format: str
    head: str
    list_key: str
    system_key: str
    #: Whether a message may have members that only Compact reads.
    is_flagged: bool = True
    #: How many of the first messages are those that were encoded before, all of them or none.
    known: int = 0
    #: The engine's name for the conversation, once it has answered.
    mark: int | None = None
    #: Its name for the conversation to which this only adds messages.
    grown_from: int | None = None

    def arguments(self) -> tuple[str, str, str, list[str]]:
        """Returns the arguments that describe the conversation to the engine."""
        return (self.format, self.head, self.list_key, self.texts)

    def has_system_beside(self) -> bool:
        """Returns whether a summary in the system prompt is not among the messages; in a bare list it is."""
        return bool(self.head) and self.format in _WITH_SYSTEM_BESIDE

    def form(self) -> tuple[str, str, str]:
        """Returns everything about the conversation but its messages."""
        return (self.format, self.head, self.list_key)


def encode_messages(
    messages: Iterable[Any],
    codec: Codec,
    *,
    model: str = "",
    system: Any = None,
    tools: Any = None,
    more: Mapping[str, Any] | None = None,
    before: EncodedMessages | None = None,
) -> EncodedMessages:
    """Encodes messages, with the system prompt and tools that are sent with them.

    Messages that were encoded ``before`` and have not changed since are not encoded again. Raises
    ``TypeError`` for an argument of the wrong kind, and ``FormatError`` with the index of a message that
    cannot be read.
    """
    check_beside(system, tools)
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TypeError(f"messages must be a list of messages, found {type(messages).__name__}")
    items = list(messages)
    encoded = _encode_items(items, codec, before)
    format = codec.format or _detect_format(encoded.texts, encoded.known, before)
    list_key, system_key = _MEMBERS.get(format, ("", ""))
    beside = {"model": model, **_members_beside(system_key, system, tools), **(more or {})}
    members = {key: value for key, value in beside.items() if value}
    head = _encode_head(members) if members and list_key else ""
    encoded = replace(encoded, format=format, head=head, list_key=list_key, system_key=system_key)
    if before and encoded.known and encoded.form() == before.form():
        encoded.grown_from = before.mark
    return encoded


def extend_encoded(encoded: EncodedMessages, items: Sequence[Any], codec: Codec) -> EncodedMessages:
    """Adds messages to an encoded conversation whose earlier messages have not changed since.

    Raises ``FormatError`` with the index among ``items`` of a message that cannot be read.
    """
    new = _encode_items(list(items), codec, None)
    known, texts = len(encoded.texts), encoded.texts + new.texts
    format = codec.format or _detect_format(texts, known, encoded)
    is_same = format == encoded.format
    return replace(
        encoded,
        items=encoded.items + new.items,
        fingerprints=encoded.fingerprints + new.fingerprints,
        texts=texts,
        format=format,
        is_flagged=encoded.is_flagged or new.is_flagged,
        known=known,
        mark=None,
        grown_from=encoded.mark if is_same else None,
    )


def check_beside(system: Any, tools: Any) -> None:
    """Raises ``TypeError`` unless the system prompt and the tools are of kinds that a request can hold."""
    blocks = system if isinstance(system, Sequence) and not isinstance(system, (str, bytes)) else [system]
    if not all(block is None or isinstance(block, str) or _is_object(block) for block in blocks):
        found = type(system).__name__
        raise TypeError(f"system must be a text, or what the provider takes in its place, found {found}")
    if tools is None:
        return
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Sequence):
        raise TypeError(f"tools must be a list of the provider's tool schemas, found {type(tools).__name__}")
    for place, tool in enumerate(tools):
        if not _is_object(tool):
            raise TypeError(f"tools[{place}] must be a tool's schema, as a dict, found {type(tool).__name__}")


def _is_object(item: Any) -> bool:
    """Returns whether an item is a dict, or an SDK's object that is encoded as one."""
    if isinstance(item, Mapping):
        return True
    dumps_itself = any(callable(getattr(item, name, None)) for name in ("model_dump", "to_dict"))
    has_members = bool(getattr(item, "__dict__", None)) and not callable(item)
    return not isinstance(item, type) and (dumps_itself or has_members)


def _members_beside(system_key: str, system: Any, tools: Any) -> dict[str, Any]:
    """Returns the members of a request that hold the system prompt and the tools.

    Where instructions are messages, a system prompt that is passed beside them is sent separately and never
    changed, so it is counted like a tool's schema.
    """
    if system_key or not system:
        return {"tools": tools, system_key: system}
    return {"tools": [*(tools or ()), {"system": system}]}


def encode_instructions(system: Any) -> list[str]:
    """Encodes each block of a system prompt as a message of its own."""
    parts = system.get("parts") if isinstance(system, Mapping) else system
    blocks = [parts] if isinstance(parts, str) else parts or []
    return [dumps({"role": "system", "content": [block]}) for block in blocks]


def check_codec(codec: Any) -> Codec | None:
    """Returns the codec; raises ``TypeError`` if it is not one, and not ``None``."""
    if codec is None or isinstance(codec, Codec):
        return codec
    raise TypeError(f"codec must be a Codec, found {type(codec).__name__}")


def encode_transcript(transcript: str) -> EncodedMessages:
    """Encodes the messages of an agent's JSONL transcript; lines that are not JSON objects are skipped."""
    if not isinstance(transcript, str):
        raise TypeError(f"transcript must be the text of a JSONL file, found {type(transcript).__name__}")
    texts = []
    for line in transcript.splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        message = data.get("message") if isinstance(data, dict) else None
        texts += [dumps(message if isinstance(message, dict) else data)] * isinstance(data, dict)
    return EncodedMessages([], [], texts, "", "", "", "")


def find_continued(messages: Sequence[Any], codec: Codec, known: Iterable[EncodedMessages]) -> EncodedMessages | None:
    """Returns the longest known conversation whose last message is in ``messages`` at the same index."""
    fingerprint_at: dict[int, bytes | None] = {}
    best = None
    for encoded in known:
        last = len(encoded.fingerprints) - 1
        if not 0 <= last < len(messages) or (best and last < len(best.fingerprints)):
            continue
        if last not in fingerprint_at:
            fingerprint_at[last] = _fingerprint(_try_dump(messages[last], codec))
        if fingerprint_at[last] is not None and fingerprint_at[last] == encoded.fingerprints[last]:
            best = encoded
    return best


def _try_dump(message: Any, codec: Codec) -> Any:
    try:
        return codec.dump(message)
    except (TypeError, ValueError, RecursionError):
        return None  # _encode_items raises for it.


def _encode_items(items: list[Any], codec: Codec, before: EncodedMessages | None) -> EncodedMessages:
    """Encodes each message and takes its fingerprint; a ``FormatError`` names the index."""
    known = before.fingerprints if before else []
    same = _count_known(items, codec, known)
    fingerprints = known[:same]
    texts = before.texts[:same] if before else []
    for place, item in enumerate(items[same:], same):
        try:
            data = codec.dump(item)
            # Taken first: what another thread changes meanwhile is then encoded again next time.
            form = _fingerprint(data)
            is_known = before and place < len(known) and form is not None and form == known[place]
            fingerprints.append(form)
            texts.append(before.texts[place] if before and is_known else _encode_item(data, item))
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(
                f"messages[{place}] cannot be read: {error}; "
                "pass the provider's dict, a Message or an SDK object"
            ) from error
    same = same if same == len(known) else 0
    is_flagged = bool(same and before and before.is_flagged) or _are_flagged(items[same:])
    return EncodedMessages(items, fingerprints, texts, "", "", "", "", is_flagged, same)


def _count_known(items: list[Any], codec: Codec, known: list[bytes | None]) -> int:
    """Counts the messages at the beginning that are what they were."""
    dump = codec.dump
    take_fingerprint = marshal.dumps
    count = 0
    try:
        for item, form in zip(items, known, strict=False):
            if take_fingerprint(dump(item), 2) != form:
                break
            count += 1
    except Exception:  # _encode_items raises for it, or compares it in another way.
        pass
    return count


def _are_flagged(items: Sequence[Any]) -> bool:
    """Returns whether messages may have members that only Compact reads."""
    return any(type(item) is not dict or "meta" in item or "protected" in item for item in items)


def _encode_item(data: Any, item: Any) -> str:
    if not isinstance(data, dict):
        raise TypeError(f"{type(item).__name__} is not a message")
    text = dumps(data)
    text.encode()  # Raises for a lone surrogate.
    return text


def _fingerprint(data: Any) -> bytes | None:
    """Returns bytes that are equal only for messages that encode alike, or ``None`` if unknown.

    Messages may be changed in place, so their identity proves nothing. The bytes cover the order of members
    and the types of numbers. A message that holds objects of the caller's must be encoded to be compared.
    """
    try:
        return marshal.dumps(data, 2)  # Later versions depend on reference counts.
    except ValueError:
        return None


def _encode_head(members: Mapping[str, Any]) -> str:
    try:
        return dumps(members)
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"system or tools cannot be read: {error}") from error


def _detect_format(texts: Sequence[str], known: int, before: EncodedMessages | None) -> str:
    """Detects the format; of messages whose beginning was seen before, the new ones decide whether it is another."""
    try:
        if before and known:
            new = _native.detect_format("[" + ",".join([texts[0], *texts[known:]]) + "]")
            if new in (before.format, "messages"):
                return before.format
        return _native.detect_format("[" + ",".join(texts) + "]")
    except FormatError as error:
        raise FormatError(
            "cannot tell which format these messages have: give each a role, or name the format: "
            "CompactConfig(format=\"openai-chat\"), openai-responses, anthropic or gemini"
        ) from error


@dataclass(frozen=True)
class Account:
    """The tokens of a conversation, in total and by what they are spent on."""

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
    """Counts the tokens of a conversation; raises ``FormatError`` if it cannot be read."""
    codec = check_codec(codec) or Codec()
    encoded = encode_messages(messages, codec, model=model, system=system, tools=tools)
    if system and not encoded.system_key:
        # Nothing is sent here, so it may stand among the messages, and is counted as what it is.
        encoded = encode_messages(messages, codec, model=model, tools=tools)
        encoded.texts.insert(0, dumps({"role": "system", "content": system}))
    answer = _native.count_conversation(*encoded.arguments(), estimator, model or None)
    return Account(**json.loads(answer))


@dataclass(frozen=True)
class Violation:
    """A provider's rule that a request breaks, and the index of the entry that breaks it."""

    rule: str
    name: str
    entry: int | None
    message: str


def validate(body: Any, provider: str, *, strict: bool = False) -> list[Violation]:
    """Returns what ``provider`` would refuse in a request body or a list of messages.

    ``strict`` also applies the rules of servers that speak its protocol and accept less: Mistral,
    Bedrock, Vertex. Raises ``FormatError`` if the provider or the body cannot be read.
    """
    text = body if isinstance(body, str) else dumps(_to_json_value(body))
    found = json.loads(_native.validate_body(text, provider, strict))
    return [Violation(**violation) for violation in found]

