//! Events to drafts.

use compact_core::message::Role;

use super::event::CopilotEvent;
use crate::TranscriptScope;
use crate::error::FormatError;
use crate::json::{ItemContext, string_value};
use crate::source::{self, SourceLayout, TranscriptReading};

type CopilotRow<'s> = source::SourceLine<'s, CopilotEvent<'s>>;

pub(super) fn read(
    source: &[u8],
    scope: TranscriptScope,
) -> Result<TranscriptReading, FormatError> {
    let lines = source::line_spans(source);
    let mut reading = TranscriptReading::new(SourceLayout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let events: Vec<CopilotRow<'_>> = source::read_objects(source, &lines, &mut reading.problems)?;
    if !events.iter().any(|row| row.value.kind().contains('.')) {
        return Err(source::unrecognised_error(source));
    }
    for row in &events {
        read_event(source, row, scope, &mut reading)?;
    }
    reading.layout = SourceLayout::Lines {
        lines,
        live_from: 0,
    };
    Ok(reading)
}

fn read_event(
    source: &[u8],
    line: &CopilotRow<'_>,
    scope: TranscriptScope,
    reading: &mut TranscriptReading,
) -> Result<(), FormatError> {
    let at = ItemContext {
        source,
        offset: line.offset,
    };
    let kind = line.value.kind();
    if scope == TranscriptScope::Whole && line.value.is_copy() {
        return Ok(());
    }
    if ["session.start", "session.model_change", "assistant.message"].contains(&kind.as_ref()) {
        let data = line.value.read_data(at)?;
        let session = string_value(data.session_id).map(String::from);
        reading.session_id = reading.session_id.take().or(session);
        let model = string_value(data.new_model.or(data.model)).map(String::from);
        reading.model = model.or(reading.model.take());
    }
    if scope == TranscriptScope::Live && line.value.is_boundary(at)? {
        reading.drafts.retain(|draft| draft.role == Role::System);
    }
    let said = line.value.read_content(at)?;
    let id = string_value(line.value.id).map(String::from);
    reading
        .drafts
        .extend(said.map(|said| said.into_draft(id, line)));
    Ok(())
}
