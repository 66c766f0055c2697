//! Who is told about what happens: the configured exporter, and a log on stderr for who asks for it.
//!
//! `RUST_LOG` says how much is logged, `--log-format` how. Everything is redacted for export first.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use compact_adapters::config::{Config, EventFormat, ExporterKind};
use compact_adapters::exporter::{BackgroundSink, ConsoleFormat, ConsoleSink};
use compact_core::redact::Redactor;
use compact_runtime::port::event::{EventSink, FanoutSink, RedactingSink, SilentSink};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// How long the program waits at its end for a collector that does not answer.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1500);

/// The collector's queue: one for the process, whoever tells it something.
static COLLECTOR: OnceLock<Arc<BackgroundSink>> = OnceLock::new();

/// How much is told on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StderrLog {
    /// Events of at least this severity.
    Events(MinSeverity),
    /// Only that a model failed that somebody chose.
    Warnings,
    /// Nothing.
    Silent,
}

/// The least severe event that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MinSeverity {
    /// All of them.
    Info,
    /// Those of a lesser path.
    Warning,
    /// Those that need a person.
    High,
    /// None.
    Nothing,
}

impl MinSeverity {
    /// What a filter such as `info`, `compact=warn` or `warn,hyper=debug` says about our events; its
    /// last word on them counts. `None` when it says nothing about them.
    pub fn from_filter(filter: &str) -> Option<MinSeverity> {
        let mut least = None;
        for directive in filter.split(',').map(str::trim) {
            let (target, level) = directive.split_once('=').unwrap_or(("compact", directive));
            let level = match level.to_ascii_lowercase().as_str() {
                "trace" | "debug" | "info" => MinSeverity::Info,
                "warn" => MinSeverity::Warning,
                "error" => MinSeverity::High,
                "off" => MinSeverity::Nothing,
                _ => continue,
            };
            if target.starts_with("compact") {
                least = Some(level);
            }
        }
        least
    }

    fn allows_event(self, event: &Value) -> bool {
        let severity = match event.get("severity").and_then(Value::as_str) {
            Some("high") => MinSeverity::High,
            Some("warning") => MinSeverity::Warning,
            _ => MinSeverity::Info,
        };
        severity >= self
    }
}

/// The sink of a program: the collector if one is configured, and the log.
pub fn build_sink(
    config: &Config,
    exporter: ExporterKind,
    log: StderrLog,
    redactor: &Arc<Redactor>,
) -> Result<Arc<dyn EventSink>, Failure> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    if exporter == ExporterKind::Otlp {
        sinks.push(Box::new(open_collector(config)?));
    }
    let form = match config.telemetry.format {
        EventFormat::Human => ConsoleFormat::Human,
        EventFormat::Json => ConsoleFormat::Json,
    };
    sinks.push(match log {
        StderrLog::Events(least) => Box::new(StderrSink {
            least,
            console: ConsoleSink::stderr(form),
        }),
        StderrLog::Warnings => Box::new(FallbackWarnings),
        StderrLog::Silent => Box::new(SilentSink),
    });
    let all: Arc<dyn EventSink> = Arc::new(FanoutSink(sinks));
    Ok(Arc::new(RedactingSink::new(Arc::clone(redactor), all)))
}

/// Waits a little for what a collector has not taken yet, and says what it never will.
pub fn flush_collector(quiet: bool) {
    let Some(collector) = COLLECTOR.get() else {
        return;
    };
    let waiting = collector.flush(FLUSH_TIMEOUT);
    let lost = waiting + collector.dropped();
    if lost > 0 && !quiet {
        output::print_stderr(&format!(
            "warning: the collector did not take {lost} events; is telemetry.otlp.endpoint right?\n"
        ));
    }
}

#[cfg(feature = "otlp")]
fn open_collector(config: &Config) -> Result<Arc<BackgroundSink>, Failure> {
    use compact_adapters::exporter::otlp::otlp_sink;
    if let Some(collector) = COLLECTOR.get() {
        return Ok(Arc::clone(collector));
    }
    let queue = otlp_sink(config.telemetry.otlp.collector_settings()).map_err(|error| {
        let message = format!("telemetry.exporter: no client for the collector: {error}");
        Failure::usage(message, "set telemetry.exporter to console or none")
    })?;
    Ok(Arc::clone(COLLECTOR.get_or_init(|| Arc::new(queue))))
}

#[cfg(not(feature = "otlp"))]
fn open_collector(_: &Config) -> Result<Arc<Background>, Failure> {
    Err(Failure::usage(
        "telemetry.exporter: this program was built without OpenTelemetry",
        "build it with the feature `otlp`, or set telemetry.exporter to console or none",
    ))
}

/// Events on stderr, as far as they were asked for.
struct StderrSink {
    least: MinSeverity,
    console: ConsoleSink<std::io::Stderr>,
}

impl EventSink for StderrSink {
    fn emit(&self, event: &Value) {
        if self.least.allows_event(event) {
            self.console.emit(event);
        }
    }
}

/// A person who asked for a model's summary should hear that it is none, whatever else is told.
struct FallbackWarnings;

impl EventSink for FallbackWarnings {
    fn emit(&self, event: &Value) {
        if event
            .get("event")
            .is_none_or(|name| name != "compact.fallback")
        {
            return;
        }
        let text = |field: &str| event.get(field).and_then(Value::as_str);
        let who = text("summarizer").or(text("embedder")).unwrap_or_default();
        let why = text("reason").unwrap_or_default();
        let taken = text("fallback").unwrap_or_default();
        output::print_stderr(&format!(
            "warning: {who} failed ({why}); fallback: {taken}\n"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_for_our_events_alone() {
        for (filter, least) in [
            ("info", Some(MinSeverity::Info)),
            ("WARN", Some(MinSeverity::Warning)),
            ("compact=error", Some(MinSeverity::High)),
            ("compactctl=debug,hyper=warn", Some(MinSeverity::Info)),
            ("warn,compact_runtime=info", Some(MinSeverity::Info)),
            ("off", Some(MinSeverity::Nothing)),
            ("hyper=trace", None),
            ("", None),
            ("loud", None),
        ] {
            assert_eq!(MinSeverity::from_filter(filter), least, "{filter}");
        }
    }
}
