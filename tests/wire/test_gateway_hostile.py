"""What a hostile body costs the gateway, as its process shows: no more than a plain one of its size."""

import gzip
import http.client
import os
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from test_gateway import Upstream

#: The largest body that is taken, in bytes.
LARGEST = 64 << 20


class Served:
    """`compactctl serve`, and what it takes."""

    def __init__(self, program: str, folder: pathlib.Path, url: str):
        names = ["OPENAI", "ANTHROPIC", "GEMINI"]
        environment = {
            **os.environ, "COMPACT_STORAGE_PATH": str(folder), **{f"COMPACT_GATEWAY_{name}_URL": url for name in names},
        }
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0"], env=environment, stderr=subprocess.PIPE, text=True
        )
        self.address = self.process.stderr.readline().removeprefix("listening on http://").strip()

    def post(self, path: str, body: bytes) -> tuple[int, float]:
        """The status, and the seconds of processor that it took."""
        before = self.seconds()
        connection = http.client.HTTPConnection(self.address, timeout=300)
        connection.request("POST", path, body, {"content-type": "application/json"})
        status = connection.getresponse().status
        connection.close()
        return status, self.seconds() - before

    def seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self) -> int:
        """The most memory that it ever took, in bytes."""
        lines = pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


@pytest.fixture
def served(maker, tmp_path):
    upstream = Upstream()
    served = Served(maker.program, tmp_path, upstream.url)
    yield served
    served.process.terminate()
    assert served.process.wait(60) == 0
    upstream.shutdown()


def test_packed_bodies_are_unpacked_no_more_at_a_time_than_there_are_processors(served):
    packed = gzip.compress(b" " * (LARGEST - 1), 1)
    cores = os.cpu_count() or 1

    def post(_) -> int:
        connection = http.client.HTTPConnection(served.address, timeout=300)
        connection.request("POST", "/v1/chat/completions", packed, {"content-encoding": "gzip"})
        return connection.getresponse().status

    with ThreadPoolExecutor(5 * cores) as clients:
        assert all(status < 500 for status in clients.map(post, range(5 * cores)))
    # A buffer that grows is twice as large for a moment.
    assert served.peak() <= 4 * cores * LARGEST


HALF = LARGEST // 2 - 100
#: Nesting that is closed and nesting that is not, of arrays and of objects, where a history stands and beside it.
NESTED = {
    "arrays for a history": '{"messages":' + "[" * HALF + "]" * HALF + "}",
    "arrays in a message": '{"messages":[{"role":"user","content":' + "[" * HALF + "]" * HALF + "}]}",
    "objects in a message": '{"messages":[{"role":"user","content":' + '{"a":' * (LARGEST // 6 - 20) + "1" + "}" * (LARGEST // 6 - 20) + "}]}",
    "arrays that never end": '{"messages":' + "[" * (LARGEST - 100),
}
#: The same where nothing but tokens is counted: that takes some bytes for each byte of a run without a break.
BESIDE = '{"tools":' + "[" * HALF + "]" * HALF + ',"messages":[]}'


def test_nesting_costs_no_more_than_a_plain_body_of_its_size(served):
    plain = '{"model":"gpt-5","messages":[{"role":"user","content":"' + "a b " * (LARGEST // 4 - 50) + '"}]}'
    path = "/v1/chat/completions"
    _, usual = served.post(path, plain.encode())
    usual_peak = served.peak()
    for kind, body in NESTED.items():
        assert len(body) <= LARGEST
        status, seconds = served.post(path, body.encode())
        assert status < 500, kind
        # Twice, since other tests run beside it: what grows with the square of its size takes minutes.
        assert seconds <= 2 * usual + 0.5, f"{kind}: {seconds} s, a plain one {usual} s"
    # What an allocator keeps for each thread counts too.
    assert served.peak() <= usual_peak + 4 * LARGEST, "and about as much memory"
    # A run without a break is counted in about three times what a plain message takes in all.
    status, seconds = served.post(path, BESIDE.encode())
    assert status < 500 and seconds <= 4 * usual + 0.5, f"{seconds} s, a plain one {usual} s"
    assert served.peak() <= usual_peak + 16 * LARGEST


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1beta/models/g:generateContent"])
def test_nesting_is_cheap_on_every_wire(served, path):
    body = NESTED["arrays in a message"].replace("messages", "contents" if "generate" in path else "input" if "resp" in path else "messages")
    status, seconds = served.post(path, body.encode())
    # Reading the bytes and passing them on takes a second in a build without optimisation.
    assert status < 500 and seconds <= 10, f"{status}, {seconds} s"
    assert served.peak() <= 6 * LARGEST


def test_a_message_of_many_parts_costs_as_much_as_it_is_long(served):
    def blocks(count: int) -> bytes:
        parts = ",".join(f'{{"type":"text","text":"{number}"}}' for number in range(count))
        return ('{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[{"role":"user","content":[' + parts + "]}]}").encode()

    served.post("/v1/messages", blocks(10))
    _, few = served.post("/v1/messages", blocks(30_000))
    _, many = served.post("/v1/messages", blocks(120_000))
    assert many <= 6 * few + 0.5, f"{many} s, a quarter of it {few} s"
