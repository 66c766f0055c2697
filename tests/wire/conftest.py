"""Bodies as `compactctl` makes them: a generated session, converted and compacted."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SESSIONS = ["coding-session.jsonl", "research-session.jsonl", "support-session.json"]


class Maker:
    """Runs `compactctl` with a store of its own."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.program = os.environ.get("COMPACTCTL", str(ROOT / "target/debug/compactctl"))
        self.made: dict[tuple, dict] = {}

    def run(self, *arguments: str) -> None:
        environment = {**os.environ, "COMPACT_STORAGE_PATH": str(self.folder / "store")}
        done = subprocess.run(
            [self.program, *arguments, "--quiet"], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"

    def converted(self, session: str, format: str) -> dict:
        """The session as a request body."""
        key = (session, format)
        if key not in self.made:
            path = self.folder / f"{session}.{format}.json"
            self.run("convert", str(ROOT / "examples" / session), "--to", format, "-o", str(path))
            self.made[key] = json.loads(path.read_text())
        return self.made[key]

    def compacted(self, session: str, format: str, budget: int) -> dict:
        """The view of a converted session within a budget of tokens."""
        self.converted(session, format)
        return self.view(self.folder / f"{session}.{format}.json", budget)

    def view(self, source: pathlib.Path, budget: int) -> dict:
        """A body's view within a budget of tokens."""
        path = source.with_suffix(f".{budget}.json")
        self.run("compact", str(source), "-o", str(path), "--budget", str(budget))
        return json.loads(path.read_text())


@pytest.fixture(scope="session")
def maker(tmp_path_factory) -> Maker:
    return Maker(tmp_path_factory.mktemp("wire"))
