"""Reports to a manager what a provider counted for a request; for the integrations with clients.

Only a response that is not streamed is read: its body is there whole, and the client reads it as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..events import logger
from ..exceptions import CompactError
from ..manager import CompactManager, Prepared

__all__ = ["observe_body"]


def observe_body(manager: CompactManager, prepared: Prepared | None, body: str, source: str) -> None:
    """Records the usage in the body of a response; without one, the estimate stays in force."""
    if prepared is None or not prepared.session_id:
        return
    try:
        answer = json.loads(body)
        usage = answer.get("usage") if isinstance(answer, Mapping) else None
        if usage:
            manager.observe(prepared.session_id, usage, source)
    except (CompactError, ValueError) as error:
        logger.info("the usage of session %s is not recorded: %s", prepared.session_id, error)
