import os
from collections.abc import Callable, Sequence
from typing import Any, final

__all__ = [
    "Engine",
    "account",
    "console_line",
    "count",
    "detect",
    "load_config",
    "usage",
    "validate",
    "window",
]

_Turn = tuple[list[int | str], str | None, str, str | None]

@final
class Engine:
    def __new__(
        cls,
        config: str,
        emit: Callable[[str], None],
        before_record: Callable[[str, str], None],
        estimator: tuple[str, Callable[[str], int]] | None = None,
        summarizer: tuple[str, Callable[[str, str, int], str]] | None = None,
        max_sessions: int = 256,
    ) -> Engine: ...
    def preflight(
        self, session_id: str, format: str | None, head: str, list: str, items: Sequence[str]
    ) -> _Turn: ...
    def manual_compact(
        self,
        session_id: str,
        format: str | None,
        head: str,
        list: str,
        items: Sequence[str],
        note: str,
    ) -> _Turn: ...
    def overflowed(
        self,
        session_id: str,
        format: str | None,
        head: str,
        list: str,
        items: Sequence[str],
        status: int,
        body: str,
    ) -> _Turn | None: ...
    def observe(self, session_id: str, source: str, report: str | None) -> None: ...
    def idle(self, session_id: str, seconds: float) -> bool: ...
    def rewrite(
        self, session_id: str, source: str, format: str, note: str | None = None
    ) -> tuple[str, str] | None: ...
    def recall(self, query: str, session_id: str | None = None, limit: int = 8) -> str: ...
    def expand(self, pointer: str) -> str: ...
    def remember(self, name: str) -> str: ...
    def restore(self, name: str) -> tuple[bytes, str, bool]: ...
    def receipts(self, session_id: str) -> str: ...
    def verify(self, receipt_id: str) -> str: ...
    def forget(self, session_id: str) -> None: ...
    def session_count(self) -> int: ...
    def about(self) -> tuple[int, str]: ...

def account(
    format: str | None,
    head: str,
    list: str,
    items: Sequence[str],
    estimator: str,
    model: str | None = None,
) -> str: ...
def console_line(event: str) -> str: ...
def count(text: str, estimator: str, model: str | None = None) -> int: ...
def detect(body: str) -> str: ...
def load_config(
    file: str | os.PathLike[str] | None = None,
    env: Sequence[tuple[str, str]] = ...,
    discover: bool = False,
) -> tuple[str, list[str]]: ...
def usage(source: str, report: str) -> str | None: ...
def validate(body: str, provider: str, strict: bool = False) -> str: ...
def window(model: str) -> int: ...
