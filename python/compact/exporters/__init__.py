"""Exporters for events."""

from .console import ConsoleExporter
from .custom import CallbackExporter, Exporter
from .otlp import OtlpExporter

__all__ = ["CallbackExporter", "ConsoleExporter", "Exporter", "OtlpExporter"]
