"""The policy: when and how a conversation is compacted."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from types import NoneType
from typing import Any, Literal

from .exceptions import ConfigError
from .message import Role

__all__ = ["CompactPolicy", "Strategy"]

Strategy = Literal[
    "task_state",
    "brief",
    "decision_log",
    "step_ledger",
    "requirements_ledger",
    "code_delta",
    "extractive_brief",
]


@dataclass
class CompactPolicy:
    """Every setting of a compaction; ``docs/config.md`` explains each of them.

    Raises ``ConfigError`` for a value of the wrong kind.
    """

    trigger_pct: float = 0.85
    hard_cap_buffer: int = 1024
    keep_recent_turns: int = 6
    keep_tool_io_pairs: int = 4
    roles_never_prune: tuple[Role, ...] = ("system", "developer")
    protected_flag: str = "protected"
    strategy: Strategy = "task_state"
    trigger_inclusive: bool = True
    trigger_base: Literal["window", "budget"] = "window"
    trigger_tokens_left: int | None = None
    soft_pct: float | None = None
    target_of_trigger: float = 0.5
    target_tokens: int | None = None
    summary_share: float = 0.4
    summary_tokens: int | None = None
    summary_prompt: str | None = None
    keep_recent: Literal["none", "last_user_message", "recent"] = "recent"
    prune: Literal["fifo", "recency", "stage_aware", "semantic"] = "recency"
    protected_patterns: tuple[str, ...] = ()
    protected_entries: tuple[str, ...] = ()
    placement: Literal[
        "assistant_message", "user_message", "system_suffix", "tool_pair", "new_session_prompt"
    ] = "assistant_message"
    on_summary_failure: Literal[
        "deterministic", "prune_only", "fail", "minimal_prompt", "host"
    ] = "deterministic"
    attempts_per_turn: int = 1
    idle_seconds: int | None = None
    wait_seconds: int = 30
    during_compaction: Literal["queue", "reject"] = "queue"
    usage: dict[str, Any] = field(default_factory=dict)
    economy: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds in _KINDS:
            value = getattr(self, name)
            is_of_kind = isinstance(value, kinds) and not isinstance(value, bool)
            if not is_of_kind:
                wanted = " or ".join(kind.__name__ for kind in kinds).replace("NoneType", "None")
                raise ConfigError(f"policy.{name} is {value!r}: give {wanted}")
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(f"policy.{name} is {value!r}: give a number")
            if isinstance(value, (tuple, list)) and not all(isinstance(item, str) for item in value):
                raise ConfigError(f"policy.{name} is {value!r}: give a tuple of texts")

    def settings(self) -> dict[str, Any]:
        """Returns the settings that differ from the defaults, as the engine reads them."""
        usual = asdict(CompactPolicy())
        mine = asdict(self).items()
        return {key: _to_list(value) for key, value in mine if value != usual[key]}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> CompactPolicy:
        """Builds the policy from the ``policy`` section of a configuration file."""
        return cls(**{key: _to_tuple(value) for key, value in settings.items()})


#: The fields that the engine would read otherwise than they are meant, or complain about in its own words.
_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    *((name, (float, int)) for name in ("trigger_pct", "target_of_trigger", "summary_share")),
    *(
        (name, (int,))
        for name in (
            *("hard_cap_buffer", "keep_recent_turns", "keep_tool_io_pairs"),
            *("attempts_per_turn", "wait_seconds"),
        )
    ),
    *(
        (name, (int, NoneType))
        for name in ("trigger_tokens_left", "target_tokens", "summary_tokens", "idle_seconds")
    ),
    ("soft_pct", (float, int, NoneType)),
    ("summary_prompt", (str, NoneType)),
    ("protected_flag", (str,)),
    *(
        (name, (tuple, list))
        for name in ("roles_never_prune", "protected_patterns", "protected_entries")
    ),
)


def _to_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
