//! Events to drafts.

use compact_core::message::Role;

use super::event::Event;
use crate::Scope;
use crate::error::FormatError;
use crate::json::{At, lenient};
use crate::source::{self, Layout, Reading};

type Row<'s> = source::Line<'s, Event<'s>>;

pub(super) fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    let lines = source::lines(source);
    let mut reading = Reading::new(Layout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let events: Vec<Row<'_>> = source::objects(source, &lines, &mut reading.problems)?;
    if !events.iter().any(|row| row.value.kind().contains('.')) {
        return Err(source::unlike(source));
    }
    for row in &events {
        event(source, row, scope, &mut reading)?;
    }
    reading.layout = Layout::Lines {
        lines,
        live_from: 0,
    };
    Ok(reading)
}

fn event(
    source: &[u8],
    line: &Row<'_>,
    scope: Scope,
    reading: &mut Reading,
) -> Result<(), FormatError> {
    let at = At {
        source,
        offset: line.offset,
    };
    let kind = line.value.kind();
    if scope == Scope::Whole && line.value.is_copy() {
        return Ok(());
    }
    if ["session.start", "session.model_change", "assistant.message"].contains(&kind.as_ref()) {
        let data = line.value.data(at)?;
        let session = lenient(data.session_id).map(String::from);
        reading.session_id = reading.session_id.take().or(session);
        let model = lenient(data.new_model.or(data.model)).map(String::from);
        reading.model = model.or(reading.model.take());
    }
    if scope == Scope::Live && line.value.is_boundary(at)? {
        reading.drafts.retain(|draft| draft.role == Role::System);
    }
    let said = line.value.said(at)?;
    let id = lenient(line.value.id).map(String::from);
    reading.drafts.extend(said.map(|said| said.draft(id, line)));
    Ok(())
}
