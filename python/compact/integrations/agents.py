"""Integration with the OpenAI Agents SDK; ``compact.hooks`` offers it with what works without the SDK.

``compact_filter`` is all that most agents need: passed as ``RunConfig(call_model_input_filter=…)``, it sees
the whole history before every model call and returns what to send. The SDK's own record is not changed.
``CompactRunHooks`` reports the provider's token counts to the manager, and ``CompactTracing`` exports decisions
with their trace ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agents import FunctionTool, Handoff, RunContextWrapper, RunHooks
from agents.agent_output import AgentOutputSchema, AgentOutputSchemaBase
from agents.run_config import CallModelData, ModelInputData
from agents.tracing import TracingProcessor, custom_span, get_current_trace

from ..events import logger
from ..exporters.custom import Exporter
from ..manager import CompactManager, Prepared
from ..session import RESPONSES

if TYPE_CHECKING:
    from agents import Agent, ModelResponse

__all__ = ["CompactRunHooks", "CompactTracing", "compact_filter"]

SessionName = str | Callable[[CallModelData[Any]], str | None] | None


def compact_filter(
    manager: CompactManager, session_id: SessionName = None
) -> Callable[[CallModelData[Any]], Any]:
    """Returns a ``call_model_input_filter`` that keeps every model call inside the window.

    ``session_id`` is the name of the conversation or a function that returns it; the default is the
    context's ``session_id``. The SDK does not pass on which session a run belongs to, so a conversation
    without a name is recognised by its history. If the engine fails, the history is sent unchanged, with a
    warning. If the pinned messages do not fit, the run ends with ``InsufficientBudget``. The agent's tools, those
    of its MCP servers, its handoffs and the schema of its output are counted with the history.
    """
    schemas = _SentSchemas()

    async def call_model_input_filter(data: CallModelData[Any]) -> ModelInputData:
        sent = data.model_data
        name = _session_name(data, session_id)
        with _decision_span() as note:
            prepared = await manager.atry_prepare(
                name,
                sent.input,
                system=sent.instructions,
                tools=await schemas.collect(data),
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


class _SentSchemas:
    """Collects the schemas that the SDK sends with a history, to be counted with it.

    The tools of MCP servers are asked for once: the SDK asks for them before each call by itself.
    """

    #: How many sets of servers are remembered.
    MOST = 64

    def __init__(self) -> None:
        self._mcp_tools: OrderedDict[tuple[int, ...], list[dict[str, Any]]] = OrderedDict()

    async def collect(self, data: CallModelData[Any]) -> list[dict[str, Any]]:
        agent = data.agent
        own = [_tool_schema(tool) for tool in agent.tools if isinstance(tool, FunctionTool)]
        handoffs = [_handoff_schema(handoff) for handoff in agent.handoffs]
        return [*own, *await self._collect_mcp(data), *handoffs, *_output_schema(agent)]

    async def _collect_mcp(self, data: CallModelData[Any]) -> list[dict[str, Any]]:
        servers = tuple(id(server) for server in data.agent.mcp_servers)
        if servers and servers not in self._mcp_tools:
            try:
                tools = await data.agent.get_mcp_tools(RunContextWrapper(data.context))
            except Exception as error:  # The SDK reports it when it asks itself.
                logger.warning("the tools of an MCP server are not counted: %s", error)
                return []
            found = [_tool_schema(tool) for tool in tools if isinstance(tool, FunctionTool)]
            self._mcp_tools[servers] = found
            while len(self._mcp_tools) > self.MOST:
                self._mcp_tools.popitem(last=False)
        return self._mcp_tools.get(servers, [])


def _tool_schema(tool: FunctionTool) -> dict[str, Any]:
    return _function_schema(tool.name, tool.description, tool.params_json_schema)


def _handoff_schema(handoff: Any) -> dict[str, Any]:
    if isinstance(handoff, Handoff):
        return _function_schema(handoff.tool_name, handoff.tool_description, handoff.input_json_schema)
    name, description = Handoff.default_tool_name(handoff), Handoff.default_tool_description(handoff)
    return _function_schema(name, description, {})


def _function_schema(name: str, description: str, parameters: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": parameters}


def _output_schema(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Returns the schema of the agent's output, if it is not plain text."""
    kind: Any = agent.output_type
    if kind is None or kind is str:
        return []
    try:
        schema = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
        return [] if schema.is_plain_text() else [{"name": schema.name(), "schema": schema.json_schema()}]
    except Exception:  # The SDK refuses such a type itself.
        return []


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
