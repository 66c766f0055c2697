//! What the collector printed, read back: records, spans and metrics of one sender.

use std::collections::BTreeSet;
use std::time::SystemTime;

/// A line, and when it came.
pub(super) type Line = (SystemTime, String);

/// A log record.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) event: String,
    /// Nanoseconds since 1970, as the sender has it.
    pub(super) at: u64,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) trace: String,
    pub(super) span: String,
    /// When all of it was there.
    pub(super) arrived: Option<SystemTime>,
}

/// A span with the names of its events.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) events: Vec<String>,
}

/// All that one sender said.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) records: Vec<Record>,
    pub(super) spans: Vec<Span>,
    pub(super) metrics: BTreeSet<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Logs,
    Spans,
    Metrics,
}

impl Kind {
    /// The kind of what begins with a line.
    fn of(line: &str) -> Option<Kind> {
        let starts = |name: &str| line.starts_with(name);
        if starts("ResourceLog #") || starts("ResourceLogs #") {
            return Some(Kind::Logs);
        }
        let spans = starts("ResourceSpans #").then_some(Kind::Spans);
        spans.or(starts("ResourceMetrics #").then_some(Kind::Metrics))
    }
}

impl Printed {
    /// What the service of a name sent.
    pub(super) fn by(service: &str, lines: &[Line]) -> Printed {
        let mut printed = Printed::default();
        let starts = |at: &usize| Kind::of(&lines[*at].1).is_some();
        let mut starts: Vec<usize> = (0..lines.len()).filter(starts).collect();
        starts.push(lines.len());
        let name = format!("service.name: Str({service})");
        for bounds in starts.windows(2) {
            let block = &lines[bounds[0]..bounds[1]];
            if block.iter().any(|(_, line)| line.contains(&name)) {
                printed.take(block);
            }
        }
        printed
    }

    fn take(&mut self, block: &[Line]) {
        match Kind::of(&block[0].1) {
            Some(Kind::Logs) => block.iter().for_each(|line| self.take_of_record(line)),
            Some(Kind::Spans) => block.iter().for_each(|(_, line)| self.take_of_span(line)),
            Some(Kind::Metrics) => {
                let names = block.iter().filter_map(|(_, line)| named(line, "Name"));
                self.metrics.extend(names.map(str::to_owned));
            }
            None => {}
        }
    }

    fn take_of_record(&mut self, (at, line): &Line) {
        if line.starts_with("LogRecord #") {
            self.records.push(Record::default());
        }
        let Some(record) = self.records.last_mut().filter(|r| r.arrived.is_none()) else {
            return;
        };
        if let Some(event) = line.strip_prefix("EventName: ") {
            record.event = event.to_owned();
        } else if let Some(at) = line.strip_prefix("Timestamp: ") {
            record.at = at.parse().unwrap();
        } else if let Some(id) = placed(line, "Trace ID") {
            record.trace = id.to_owned();
        } else if let Some(id) = placed(line, "Span ID") {
            record.span = id.to_owned();
        } else if line.starts_with("Flags:") {
            record.arrived = Some(*at);
        } else if let Some((key, value)) = attribute(line) {
            record.attributes.push((key.to_owned(), value.to_owned()));
        }
    }

    fn take_of_span(&mut self, line: &str) {
        if line.starts_with("Span #") {
            self.spans.push(Span::default());
        }
        let Some(span) = self.spans.last_mut() else {
            return;
        };
        if let Some(id) = placed(line, "Trace ID") {
            span.trace = id.to_owned();
        } else if let Some(id) = placed(line, "ID") {
            span.id = id.to_owned();
        } else if let Some(name) = placed(line, "Name") {
            span.name = name.to_owned();
        } else if let Some(name) = named(line, "Name") {
            span.events.push(name.to_owned());
        }
    }
}

/// `    Name           : before_model_call`
fn placed<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = line.trim_start().split_once(':')?;
    let is_placed = line.starts_with("    ") && !line.contains("->") && key.trim_end() == name;
    is_placed.then(|| value.trim())
}

/// `     -> Name: compact.compactions`
fn named<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = line.strip_prefix("     -> ")?.split_once(": ")?;
    (key == name).then_some(value)
}

/// `     -> compact.max: Int(2000)`
fn attribute(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.strip_prefix("     -> ")?.split_once(": ")?;
    let value = value.split_once('(').map_or(value, |(_, inner)| inner);
    Some((key, value.strip_suffix(')').unwrap_or(value)))
}
