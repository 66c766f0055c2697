//! The log of events on stderr, for those who ask for it.
//!
//! `RUST_LOG` says how much is logged, `--log-format` how. Everything is redacted for export first.

use std::sync::Arc;
use std::time::Duration;

use compact::config::{Config, EventFormat};
use compact::event::{
    ConsoleFormat, ConsoleSink, Event, EventKind, EventSink, Severity, SilentSink, flush_exporters,
};

use crate::output;

/// How long the program waits at its end for an exporter that does not get its events away.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1500);

/// How much is told on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StderrLog {
    /// Events of at least this severity.
    Events(MinSeverity),
    /// Only that a model failed that somebody chose.
    Warnings,
    /// Nothing.
    Silent,
}

/// The least severe event that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MinSeverity {
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
    pub(crate) fn from_filter(filter: &str) -> Option<MinSeverity> {
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

    fn allows_event(self, event: &Event) -> bool {
        let severity = match event.kind.severity() {
            Severity::Info => MinSeverity::Info,
            Severity::Warning => MinSeverity::Warning,
            Severity::High | Severity::Error => MinSeverity::High,
        };
        severity >= self
    }
}

/// The log on stderr.
pub(crate) fn stderr_sink(config: &Config, log: StderrLog) -> Arc<dyn EventSink> {
    let form = match config.telemetry.format {
        EventFormat::Human => ConsoleFormat::Human,
        EventFormat::Json => ConsoleFormat::Json,
    };
    match log {
        StderrLog::Events(least) => Arc::new(StderrSink {
            least,
            console: ConsoleSink::stderr(form),
        }),
        StderrLog::Warnings => Arc::new(FallbackWarnings),
        StderrLog::Silent => Arc::new(SilentSink),
    }
}

/// Waits a little for what was not exported yet, and says what never will be.
pub(crate) fn flush_collector(quiet: bool) {
    let lost = flush_exporters(FLUSH_TIMEOUT);
    if lost > 0 && !quiet {
        output::print_stderr(&format!(
            "warning: {lost} events were not exported; check where `telemetry` sends them\n"
        ));
    }
}

/// Events on stderr, as far as they were asked for.
struct StderrSink {
    least: MinSeverity,
    console: ConsoleSink<std::io::Stderr>,
}

impl EventSink for StderrSink {
    fn emit(&self, event: &Event) {
        if self.least.allows_event(event) {
            self.console.emit(event);
        }
    }
}

/// A person who asked for a model's summary should hear that it is none, whatever else is told.
struct FallbackWarnings;

impl EventSink for FallbackWarnings {
    fn emit(&self, event: &Event) {
        let EventKind::Fallback {
            failed,
            reason,
            fallback,
        } = &event.kind
        else {
            return;
        };
        let (failed, taken) = (failed.name(), fallback.as_str());
        output::print_stderr(&format!(
            "warning: {failed} failed ({reason}); fallback: {taken}\n"
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
