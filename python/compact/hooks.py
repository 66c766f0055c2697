"""Hooks for the OpenAI Agents SDK.

``compact_filter`` is all that most agents need: passed as ``RunConfig(call_model_input_filter=…)``, it sees
the whole history before every model call and returns what to send. The SDK's own record is not changed.
``CompactSession`` (of ``compact.session``) compacts the stored record instead, ``CompactRunHooks`` reports the
provider's token counts to the manager, and ``CompactTracing`` exports decisions with their trace ids.
``middleware`` is for runners that call hooks by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agents import FunctionTool, RunHooks
from agents.run_config import CallModelData, ModelInputData
from agents.tracing import TracingProcessor, custom_span, get_current_trace

from .exporters.custom import Exporter
from .manager import CompactManager, Prepared
from .session import RESPONSES, CompactSession

if TYPE_CHECKING:
    from agents import Agent, ModelResponse, RunContextWrapper

__all__ = [
    "CompactRunHooks",
    "CompactSession",
    "CompactTracing",
    "compact_filter",
    "middleware",
]

SessionName = str | Callable[[CallModelData[Any]], str | None] | None


def compact_filter(
    manager: CompactManager, session_id: SessionName = None
) -> Callable[[CallModelData[Any]], Any]:
    """Returns a ``call_model_input_filter`` that keeps every model call inside the window.

    ``session_id`` is the name of the conversation or a function that returns it; the default is the
    context's ``session_id``. The SDK does not pass on which session a run belongs to, so a conversation
    without a name is recognised by its history. If the engine fails, the history is sent unchanged, with a
    warning. If the pinned messages do not fit, the run ends with ``InsufficientBudget``.
    """

    async def call_model_input_filter(data: CallModelData[Any]) -> ModelInputData:
        sent = data.model_data
        name = _session_name(data, session_id)
        with _decision_span() as note:
            prepared = await manager.atry_prepare(
                name,
                sent.input,
                system=sent.instructions,
                tools=_tool_schemas(data.agent),
                codec=RESPONSES,
            )
            if prepared is None:
                return sent
            note(prepared)
        instructions = prepared.system or sent.instructions
        return ModelInputData(input=prepared.messages, instructions=instructions)

    return call_model_input_filter


def _session_name(data: CallModelData[Any], session_id: SessionName) -> str | None:
    if callable(session_id):
        return session_id(data)
    found = session_id or getattr(data.context, "session_id", None)
    return str(found) if found else None


def _tool_schemas(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Returns the schemas of the agent's own tools, which are sent with the history."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.params_json_schema,
        }
        for tool in agent.tools
        if isinstance(tool, FunctionTool)
    ]


@contextmanager
def _decision_span() -> Iterator[Callable[[Prepared], None]]:
    """Opens a span in the current trace for the decision: counts and ids, no content."""
    if get_current_trace() is None:
        yield lambda prepared: None
        return
    with custom_span("compact.preflight", {}) as span:

        def note(prepared: Prepared) -> None:
            decision, receipt = prepared.decision, prepared.receipt
            span.span_data.data.update(
                session_id=prepared.session_id,
                verdict=decision.verdict, t_est=decision.tokens, max=decision.window
            )
            if receipt is not None:
                span.span_data.data.update(
                    receipt_id=receipt.id,
                    tokens_before=receipt.tokens_before,
                    tokens_after=receipt.tokens_after,
                    retention=receipt.retention,
                )

        yield note


class CompactRunHooks(RunHooks[Any]):
    """Reports the provider's token counts to the manager, so that pressure follows the real numbers."""

    def __init__(self, manager: CompactManager, session_id: str) -> None:
        self.manager = manager
        self.session_id = session_id

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Records the usage of one response; without a report the estimate stays in force."""
        usage = response.usage
        if usage.input_tokens:
            details = getattr(usage.input_tokens_details, "cached_tokens", 0) or 0
            report = {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "input_tokens_details": {"cached_tokens": details},
            }
            self.manager.observe(self.session_id, report, "openai-responses")


class CompactTracing(TracingProcessor):
    """Sends the spans of ``compact_filter`` to an exporter, with their trace ids."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter = exporter

    def on_span_end(self, span: Any) -> None:
        """Exports the span if it is one of ours."""
        name = getattr(span.span_data, "name", None) or ""
        if name.startswith("compact."):
            ids = {"trace_id": span.trace_id, "span_id": span.span_id, "ts": span.ended_at}
            self.exporter.emit({"event": name, **ids, **span.span_data.data})

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def middleware(manager: CompactManager) -> dict[str, Callable[[Any], None]]:
    """Returns hooks for runners of any kind: ``before_run``, ``before_model_call``, ``after_model_call``.

    The context that a hook is called with must have ``messages``; ``session_id``, ``system``, ``tools`` and
    ``usage`` are used if it has them.
    """

    def name(ctx: Any) -> str | None:
        return getattr(ctx, "session_id", None)

    def before_model_call(ctx: Any) -> None:
        ctx.messages = manager.preflight(
            name(ctx),
            ctx.messages,
            system=getattr(ctx, "system", None),
            tools=getattr(ctx, "tools", None),
        )

    def after_model_call(ctx: Any) -> None:
        session_id, usage = name(ctx), getattr(ctx, "usage", None)
        if usage and session_id:
            manager.observe(session_id, usage, getattr(ctx, "usage_source", "openai-chat"))

    return {
        "before_run": before_model_call,
        "before_model_call": before_model_call,
        "after_model_call": after_model_call,
    }
