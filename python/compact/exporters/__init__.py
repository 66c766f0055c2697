"""Who is told about compactions."""

from .console import ConsoleExporter
from .custom import CallbackExporter, Exporter

__all__ = ["CallbackExporter", "ConsoleExporter", "Exporter"]
