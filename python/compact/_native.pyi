import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

__all__ = [
    "VERSION",
    "CarriedTask",
    "Collector",
    "Engine",
    "archive_transcript",
    "checkpoint_request",
    "continuation_prompt",
    "count_conversation",
    "count_text",
    "detect_format",
    "extract_checkpoint",
    "format_event",
    "hook_folder",
    "load_config",
    "read_usage",
    "validate_body",
]

VERSION: str

_Answer = tuple[list[int | str] | None, str | None, str, str | None, str, int]

@final
class CarriedTask:
    def __new__(cls, task: str, window: int) -> CarriedTask: ...
    def add_messages(self, messages: str) -> None: ...
    def continuation(self, answer: str | None = None) -> tuple[str, str]: ...

@final
class Collector:
    def __new__(cls, endpoint: str | None = None, protocol: str | None = None) -> Collector: ...
    def emit(self, event: str) -> None: ...
    def flush(self, seconds: float) -> int: ...
    def dropped(self) -> int: ...

@final
class Engine:
    def __new__(
        cls,
        config: str,
        emit: Callable[[str], None],
        before_record: Callable[[str, str], None],
        estimator: tuple[str, Callable[[str], int]] | None = None,
        summarizer: tuple[str, Callable[..., str]] | None = None,
        redact: Callable[[str], str] | None = None,
        objects: Any = None,
        max_sessions: int = 256,
    ) -> Engine: ...
    def preflight(
        self, session_id: str | None, format: str | None, head: str, list: str, items: Sequence[str]
    ) -> _Answer: ...
    def append(self, session_id: str, mark: int, items: Sequence[str]) -> _Answer | None: ...
    def manual_compact(
        self,
        session_id: str | None,
        format: str | None,
        head: str,
        list: str,
        items: Sequence[str],
        note: str,
    ) -> _Answer: ...
    def overflowed(
        self,
        session_id: str | None,
        format: str | None,
        head: str,
        list: str,
        items: Sequence[str],
        status: int,
        body: str,
    ) -> _Answer | None: ...
    def protect(self, session_id: str, format: str | None, items: Sequence[str]) -> list[str]: ...
    def unprotect(self, session_id: str, format: str | None, items: Sequence[str]) -> list[str]: ...
    def observe(self, session_id: str, source: str, report: str | None) -> None: ...
    def idle(self, session_id: str, seconds: float) -> bool: ...
    def rewrite(
        self, session_id: str | None, source: str, format: str, note: str | None = None
    ) -> tuple[str, str] | None: ...
    def recall(
        self, query: str, session_id: str | None = None, limit: int = 8, unredacted: bool = False
    ) -> str: ...
    def expand(self, pointer: str, unredacted: bool = False) -> str: ...
    def recall_text(
        self,
        query: str,
        session_id: str | None = None,
        limit: int = 8,
        after: int | None = None,
        latest: bool = False,
    ) -> str: ...
    def expand_text(
        self,
        pointer: str,
        grep: str | None = None,
        lines: str | None = None,
        around: int = 0,
    ) -> str: ...
    def remember(self, name: str) -> str: ...
    def restore(self, name: str) -> tuple[bytes, str, bool]: ...
    def receipts(self, session_id: str) -> str: ...
    def verify(self, receipt_id: str) -> str: ...
    def archive_transcript(
        self,
        repository: str | os.PathLike[str],
        session_id: str,
        transcript: str | os.PathLike[str] | None = None,
    ) -> tuple[Path, int]: ...
    def redact_original(self, message: str) -> str: ...
    def redact_summary(self, message: str) -> str: ...
    def finish_indexing(self, seconds: float) -> None: ...
    def forget(self, session_id: str) -> None: ...
    def session_count(self) -> int: ...
    def window(self) -> int: ...

def count_conversation(
    format: str | None,
    head: str,
    list: str,
    items: Sequence[str],
    estimator: str,
    model: str | None = None,
) -> str: ...
def checkpoint_request() -> str: ...
def format_event(event: str) -> str: ...
def continuation_prompt(checkpoint: str) -> str: ...
def count_text(text: str, estimator: str, model: str | None = None) -> int: ...
def detect_format(body: str) -> str: ...
def extract_checkpoint(answer: str) -> str | None: ...
def load_config(
    file: str | os.PathLike[str] | None = None,
    env: Sequence[tuple[str, str]] = ...,
    discover: bool = False,
) -> tuple[str, list[str]]: ...
def archive_transcript(
    repository: str | os.PathLike[str],
    session: str,
    transcript: str | os.PathLike[str] | None = None,
) -> tuple[Path, int]: ...
def hook_folder(repository: str | os.PathLike[str]) -> Path: ...
def read_usage(source: str, report: str) -> str | None: ...
def validate_body(body: str, provider: str, strict: bool = False) -> str: ...
