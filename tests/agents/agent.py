"""An agent with a home, a repository and a store of its own."""

import pathlib
import subprocess

RULE = "Never drop the column ledger_rows.amount_legacy before the September close."


class Agent:
    """What the agents have in common; how each is started is its own."""

    #: What `--agent` takes.
    name = ""

    def __init__(self, folder: pathlib.Path, api, program: str, command: list[str]):
        self.home, self.store, self.work = folder / "home", folder / "store", folder / "work"
        (self.work / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.api, self.program, self.command = api, program, command
        self.environment = {
            "HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8",
            "COMPACT_STORAGE_PATH": str(self.store),
        }

    def compactctl(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments], cwd=self.work, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        self.compactctl("hook", "install", "--agent", self.name)

    def start(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs the agent and gives what it prints."""
        given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        done = subprocess.run(
            [*self.command, *arguments], cwd=self.work, env=self.environment, capture_output=True, text=True,
            timeout=120, **given,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def archives(self) -> list[bytes]:
        return [file.read_bytes() for file in sorted(self.store.glob("hooks/*/archives/*"))]

    def log(self) -> str:
        return (self.store / "hooks" / "hook.log").read_text()

    def is_untroubled(self) -> bool:
        return "ERROR" not in self.log() and "WARNING" not in self.log()
