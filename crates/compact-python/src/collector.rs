//! `compact._native.Collector`: a queue in front of an OpenTelemetry collector.

use std::time::Duration;

use compact::event::otlp::otlp_sink;
use compact::event::{BackgroundSink, ExportedEvent};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::failure::{ErrorClass, error_with_causes, error_with_message};
use crate::function::parse_config;

/// Sends events on its own thread; events that the collector does not accept in time are dropped and counted.
#[pyclass(frozen, module = "compact._native")]
pub(crate) struct Collector(BackgroundSink<ExportedEvent>);

#[pymethods]
impl Collector {
    #[new]
    #[pyo3(signature = (endpoint=None, protocol=None))]
    fn new(py: Python<'_>, endpoint: Option<&str>, protocol: Option<&str>) -> PyResult<Collector> {
        let section = json!({ "otlp": { "endpoint": endpoint, "protocol": protocol } });
        let config = parse_config("OtlpExporter", &json!({ "telemetry": section }).to_string())?;
        let queue = py.detach(|| otlp_sink(config.telemetry.otlp.collector_settings()));
        let none = |error: String| {
            error_with_message(
                ErrorClass::Config,
                &format!("could not create a client for the collector: {error}"),
            )
        };
        Ok(Collector(queue.map_err(none)?))
    }

    /// Queues an event given as JSON; never waits.
    fn emit(&self, event: &str) -> PyResult<()> {
        let event: Value =
            serde_json::from_str(event).map_err(|e| error_with_causes(ErrorClass::Format, &e))?;
        self.0.push(event.into());
        Ok(())
    }

    /// Waits until everything is sent, at most so many seconds; returns how many events still wait.
    fn flush(&self, py: Python<'_>, seconds: f64) -> u64 {
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| self.0.flush(patience))
    }

    /// Counts the events that could not be sent so far.
    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}
