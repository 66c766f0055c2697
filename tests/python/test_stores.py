"""Stores and exporters of the engine itself, against real servers where `cargo xtask test` started them."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import compact
from compact import CompactManager, FileStorage, OtlpExporter, S3Storage, SqlStorage

from .conftest import chat, config


def server(variable: str) -> str:
    """Where a server is that `cargo xtask test` started."""
    found = os.environ.get(variable)
    if not found and os.environ.get("CI", "") not in ("", "0", "false"):
        pytest.fail(f"{variable} is not set: `cargo xtask test` starts the server")
    return found or pytest.skip(f"{variable} is not set: `cargo xtask test` starts the server")


def check(storage) -> None:
    """What one manager stored, another one restores, searches, verifies and goes on from."""
    name = f"s-{uuid.uuid4()}"
    messages = chat(60)
    view = CompactManager(config(storage=storage)).preflight(name, messages)
    later = CompactManager(config(storage=storage))
    (receipt,) = later.receipts(name)
    assert later.restore(receipt.id) == messages
    assert later.verify(receipt.id) == []
    assert later.recall("part_3.py mended", session_id=name)
    assert later.preflight(name, messages) == view
    prepared = later.prepare(name, [*view, *chat(40, seed=8)[1:]])
    assert prepared.receipt.summary_version == 2


def test_a_file_of_sqlite_with_originals_beside_it(tmp_path):
    check(SqlStorage(tmp_path / "deep" / "receipts.db"))
    names = {path.name for path in (tmp_path / "deep").iterdir()}
    assert {"receipts.db", "recall.db"} <= names and "catalog.db" not in names
    check(SqlStorage(tmp_path / "apart.db", originals=FileStorage(tmp_path / "originals")))
    assert (tmp_path / "apart.db").exists() and any((tmp_path / "originals").iterdir())


def test_a_folder_may_be_encrypted(tmp_path, monkeypatch):
    with pytest.raises(compact.ConfigError, match="COMPACT_TEST_KEY"):
        CompactManager(config(storage=FileStorage(tmp_path, key_env="COMPACT_TEST_KEY")))
    monkeypatch.setenv("COMPACT_TEST_KEY", "5a" * 32)
    check(FileStorage(tmp_path, key_env="COMPACT_TEST_KEY"))
    assert not any(b"mended" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_bucket(tmp_path):
    endpoint = server("COMPACT_TEST_S3")
    check(S3Storage("compact-test", prefix=f"python-{uuid.uuid4()}", endpoint=endpoint, region="us-east-1", path=tmp_path))
    assert {path.name for path in tmp_path.iterdir()} >= {"catalog.db", "recall.db"}
    gone = S3Storage("no-such-bucket", endpoint=endpoint, region="us-east-1", path=tmp_path / "other")
    with pytest.raises(compact.StorageError, match="no-such-bucket"):
        CompactManager(config(storage=gone)).preflight("s", chat(60))


def test_a_database_that_machines_share(tmp_path):
    url, name = server("COMPACT_TEST_POSTGRES"), f"python_{uuid.uuid4().hex}"
    make = f"CREATE DATABASE {name} TEMPLATE template0"
    subprocess.run(["psql", "-qc", make, f"{url}/postgres"], check=True)
    try:
        check(SqlStorage(f"{url}/{name}", originals=FileStorage(tmp_path)))
        assert not (tmp_path / "catalog.db").exists() and not (tmp_path / "recall.db").exists()
    finally:
        subprocess.run(["psql", "-qc", f"DROP DATABASE {name} WITH (FORCE)", f"{url}/postgres"], check=True)


def test_a_database_that_is_away_is_an_error_that_names_it(tmp_path):
    away = SqlStorage("postgres://ann@127.0.0.1:1/team", originals=FileStorage(tmp_path))
    messages = chat(60)
    with pytest.raises(compact.StorageError, match=r"127\.0\.0\.1:1"):
        CompactManager(config(storage=away)).preflight("s", messages)


class Collector:
    """A collector on loopback: what was posted, by path."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                is_packed = self.headers.get("content-encoding") == "gzip"
                collector.posted.append((self.path, gzip.decompress(body) if is_packed else body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


def test_a_collector_hears_of_logs_spans_and_metrics(collector):
    exporter = OtlpExporter(collector.url)
    manager = CompactManager(config(exporter=exporter))
    assert manager.prepare("told-by-otlp", chat(60)).receipt is not None
    assert manager.flush() and exporter.dropped == 0
    paths = {path for path, _ in collector.posted}
    assert paths == {"/v1/logs", "/v1/traces", "/v1/metrics"}
    logs = b"".join(body for path, body in collector.posted if path == "/v1/logs")
    assert b"compact.completed" in logs and b"told-by-otlp" in logs and b"mended" not in logs


def test_a_collector_that_is_away_delays_nobody():
    manager = CompactManager(config(exporter=OtlpExporter("http://127.0.0.1:1")))
    assert manager.prepare("s", chat(60)).receipt is not None
    manager.flush()
    assert manager.config.exporter.dropped > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_a_queue_of_its_own(collector):
    script = """
import os, sys
from compact import OtlpExporter
exporter = OtlpExporter(sys.argv[1])
child = os.fork()
if child == 0:
    exporter.emit({"event": "compact.of_the_child"})
    os._exit(0 if exporter.flush() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script, collector.url], timeout=60)
    assert done.returncode == 0
    assert any(b"compact.of_the_child" in body for _, body in collector.posted)
