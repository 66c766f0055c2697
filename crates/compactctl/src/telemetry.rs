//! Who is told about what happens: the configured exporter, and a log on stderr for who asks for it.
//!
//! `RUST_LOG` says how much is logged, `--log-format` how. Everything is redacted for export first.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use compact_adapters::config::{Config, EventFormat, Exporter};
use compact_adapters::exporter::{Background, Console, Form};
use compact_core::redact::Redactor;
use compact_runtime::port::event::{EventSink, Fanout, Redacting, Silent};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// How long the program waits at its end for a collector that does not answer.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The collector's queue: one for the process, whoever tells it something.
static COLLECTOR: OnceLock<Arc<Background>> = OnceLock::new();

/// How much is told on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Events of at least this severity.
    Events(Least),
    /// Only that a model failed that somebody chose.
    Warnings,
    /// Nothing.
    Silent,
}

/// The least severe event that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Least {
    /// All of them.
    Info,
    /// Those of a lesser path.
    Warning,
    /// Those that need a person.
    High,
    /// None.
    Nothing,
}

impl Least {
    /// What a filter such as `info`, `compact=warn` or `warn,hyper=debug` says about our events; its
    /// last word on them counts. `None` when it says nothing about them.
    pub fn of(filter: &str) -> Option<Least> {
        let mut least = None;
        for directive in filter.split(',').map(str::trim) {
            let (target, level) = directive.split_once('=').unwrap_or(("compact", directive));
            let level = match level.to_ascii_lowercase().as_str() {
                "trace" | "debug" | "info" => Least::Info,
                "warn" => Least::Warning,
                "error" => Least::High,
                "off" => Least::Nothing,
                _ => continue,
            };
            if target.starts_with("compact") {
                least = Some(level);
            }
        }
        least
    }

    fn lets(self, event: &Value) -> bool {
        let severity = match event.get("severity").and_then(Value::as_str) {
            Some("high") => Least::High,
            Some("warning") => Least::Warning,
            _ => Least::Info,
        };
        severity >= self
    }
}

/// The sink of a program: the collector if one is configured, and the log.
pub fn sink(
    config: &Config,
    exporter: Exporter,
    log: Log,
    redactor: &Arc<Redactor>,
) -> Result<Arc<dyn EventSink>, Failure> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    if exporter == Exporter::Otlp {
        sinks.push(Box::new(collector(config)?));
    }
    let form = match config.telemetry.format {
        EventFormat::Human => Form::Human,
        EventFormat::Json => Form::Json,
    };
    sinks.push(match log {
        Log::Events(least) => Box::new(Logged {
            least,
            console: Console::stderr(form),
        }),
        Log::Warnings => Box::new(Warnings),
        Log::Silent => Box::new(Silent),
    });
    let all: Arc<dyn EventSink> = Arc::new(Fanout(sinks));
    Ok(Arc::new(Redacting::new(Arc::clone(redactor), all)))
}

/// Waits a little for what a collector has not taken yet, and says what it never will.
pub fn finish(quiet: bool) {
    let Some(collector) = COLLECTOR.get() else {
        return;
    };
    let waiting = collector.flush(PATIENCE);
    let lost = waiting + collector.dropped();
    if lost > 0 && !quiet {
        output::aside(&format!(
            "warning: the collector did not take {lost} events; is telemetry.otlp.endpoint right?\n"
        ));
    }
}

#[cfg(feature = "otlp")]
fn collector(config: &Config) -> Result<Arc<Background>, Failure> {
    use compact_adapters::exporter::otlp::otlp;
    if let Some(collector) = COLLECTOR.get() {
        return Ok(Arc::clone(collector));
    }
    let queue = otlp(config.telemetry.otlp.settings()).map_err(|error| {
        let message = format!("telemetry.exporter: no client for the collector: {error}");
        Failure::usage(message, "set telemetry.exporter to console or none")
    })?;
    Ok(Arc::clone(COLLECTOR.get_or_init(|| Arc::new(queue))))
}

#[cfg(not(feature = "otlp"))]
fn collector(_: &Config) -> Result<Arc<Background>, Failure> {
    Err(Failure::usage(
        "telemetry.exporter: this program was built without OpenTelemetry",
        "build it with the feature `otlp`, or set telemetry.exporter to console or none",
    ))
}

/// Events on stderr, as far as they were asked for.
struct Logged {
    least: Least,
    console: Console<std::io::Stderr>,
}

impl EventSink for Logged {
    fn emit(&self, event: &Value) {
        if self.least.lets(event) {
            self.console.emit(event);
        }
    }
}

/// A person who asked for a model's summary should hear that it is none, whatever else is told.
struct Warnings;

impl EventSink for Warnings {
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
        output::aside(&format!(
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
            ("info", Some(Least::Info)),
            ("WARN", Some(Least::Warning)),
            ("compact=error", Some(Least::High)),
            ("compactctl=debug,hyper=warn", Some(Least::Info)),
            ("warn,compact_runtime=info", Some(Least::Info)),
            ("off", Some(Least::Nothing)),
            ("hyper=trace", None),
            ("", None),
            ("loud", None),
        ] {
            assert_eq!(Least::of(filter), least, "{filter}");
        }
    }
}
