"""What cannot work is refused where it is passed, in words that say what to pass instead."""

from __future__ import annotations

import functools
import socket
from typing import Any

import pytest

from compact import (
    CallbackExporter, CompactConfig, CompactManager, ConfigError, EstimatorError, FileStorage,
    FormatError, OtlpExporter, S3Storage, TiktokenEstimator,
)
from compact.tools import LookupTools

from .conftest import chat, config


@pytest.mark.parametrize("name", ["policy", "settings", "max_sessions"])
def test_an_argument_that_is_needed_is_not_none(name):
    with pytest.raises(ConfigError, match=f"{name} is None: give"):
        config(**{name: None})


def test_more_sessions_than_a_machine_holds_are_refused():
    with pytest.raises(ConfigError, match="max_sessions is"):
        config(max_sessions=10**20)


@pytest.mark.parametrize("transcript", [[{}], None, 5, b"{}"])
def test_a_transcript_is_a_text(manager, transcript):
    with pytest.raises(TypeError, match="transcript must be the text of a JSONL file"):
        manager.rewrite("s", transcript, "claude-code")


def test_a_codec_is_one(manager):
    for call in (manager.preflight, manager.try_prepare, manager.protect, manager.unprotect, manager.session):
        with pytest.raises(TypeError, match="codec must be a Codec, found int"):
            call("s", chat(1), codec=5)
    with pytest.raises(TypeError, match="codec must be a Codec, found int"):
        manager.preflight(None, chat(1), codec=5)


@pytest.mark.parametrize("number", [-1, 10**30])
def test_numbers_out_of_their_range_are_refused(manager, number):
    with pytest.raises(ConfigError, match="limit is"):
        manager.recall("x", "s", limit=number)
    with pytest.raises(ConfigError, match="status is"):
        manager.overflowed("s", chat(1), number, "")
    assert manager.idle("s", number) is False
    with pytest.raises(TypeError, match="limit must be an int"):
        manager.recall("x", limit="8")


@pytest.mark.parametrize("tokens", [10**30, -1, "many", None])
def test_an_estimator_returns_a_count(tokens):
    class Estimator:
        def estimate(self, messages: Any, model: str) -> Any:
            return tokens

    with pytest.raises(EstimatorError, match="it must return a count of tokens"):
        CompactManager(config(token_estimator=Estimator())).preflight("s", chat(1))


def test_a_report_that_is_no_json_is_refused(manager):
    with pytest.raises(FormatError, match="usage cannot be read"):
        manager.observe("s", {"prompt_tokens": float("nan")}, "openai-chat")


async def _later(event: Any) -> None: ...


class _Later:
    async def __call__(self, event: Any) -> None: ...

    async def emit(self, event: Any) -> None: ...


@pytest.mark.parametrize("callback", [None, 5, _later, functools.partial(_later), _Later()])
def test_a_callback_for_events_is_an_ordinary_function(callback):
    with pytest.raises(TypeError, match="callback must be an ordinary function"):
        CallbackExporter(callback)


def test_an_exporter_that_nobody_would_await_is_refused(caplog):
    with pytest.raises(ConfigError, match="exporter.emit is async"):
        config(exporter=_Later())
    manager = CompactManager(config(exporter=CallbackExporter(lambda event: _later(event))))
    manager.preflight("s", chat(40))
    manager.flush()
    assert manager._events.dropped > 0 and "returned a coroutine" in caplog.text


def test_a_flush_reports_what_a_dead_collector_did_not_get():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    exporter = OtlpExporter(f"http://127.0.0.1:{port}", protocol="http")
    exporter.emit({"event": "compact.skipped", "session_id": "s"})
    assert exporter.flush(10.0) is False and exporter.dropped == 1
    assert exporter.flush(10.0) is True
    exporter.emit({"event": "compact.skipped", "session_id": "s"})
    assert exporter.flush(10.0) is False and exporter.dropped == 2


def test_a_configuration_that_is_not_there_is_named_in_words_of_python(tmp_path):
    for path in (tmp_path / "no.yaml", tmp_path, ""):
        with pytest.raises(ConfigError, match="cannot be read") as refusal:
            CompactConfig.load(path)
        assert "--config" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("recall", "{}", "recall needs 'query': A question or a few words"),
        ("recall", None, "recall needs 'query'"),
        ("recall", '{"query": null}', "recall needs 'query'"),
        ("recall", "[]", "must be a JSON object"),
        ("recall", "{", "are not JSON"),
        ("recall", {"query": 5}, "'query' must be a text, found 5"),
        ("recall", {"query": "x", "limit": True}, "'limit' must be a whole number, found true"),
        ("recall", {"query": "x", "limit": 51}, "limit is 51: give the most hits, from 1 to 50"),
        ("recall", {"query": "x", "after": -1}, "after is -1"),
        ("recall", {"query": "x", "where": "y"}, "recall has no argument 'where'; it has query, session"),
        ("expand", "{}", "expand needs 'pointer': RECEIPT#NUMBER"),
        ("expand", {"pointer": "a#1", "around": 10**30}, "around is 1000"),
    ],
)
def test_a_model_reads_what_is_wrong_with_its_call(manager, name, arguments, wanted):
    answer = LookupTools(manager).call(name, arguments)
    assert answer.startswith("error: ") and wanted in answer and "LookupTools" not in answer


def test_arguments_that_are_null_are_left_out(manager):
    answer = LookupTools(manager).call("recall", {"query": "x", "session": None, "limit": None})
    assert not answer.startswith("error")


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: S3Storage(""), lambda: S3Storage(None), lambda: FileStorage("")),
        *(lambda: TiktokenEstimator("bogus"), lambda: TiktokenEstimator("")),
    ],
)
def test_a_name_that_cannot_be_meant_is_refused_at_once(make):
    with pytest.raises(ConfigError, match=": give "):
        make()


async def test_to_compact_without_a_note_compacts(manager):
    assert len(manager.manual_compact("a", chat(12), note=None)) < len(chat(12))
    assert len(await manager.amanual_compact("b", chat(12), note=None)) < len(chat(12))
    assert len(manager.receipts("a")) == len(manager.receipts("b")) == 1
    with pytest.raises(TypeError, match="note must be a text"):
        manager.manual_compact("c", chat(12), note=5)


@pytest.mark.parametrize("key", ["url", "model", "api_key_env"])
def test_embeddings_without_a_kind_are_refused(key):
    with pytest.raises(ConfigError, match=f"embeddings.{key} has no effect while embeddings.kind is 'words'"):
        config(settings={"embeddings": {key: "http://127.0.0.1:9/v1"}})
    config(settings={"embeddings": {"kind": "openai", "url": "http://127.0.0.1:9/v1", "model": "e"}})
