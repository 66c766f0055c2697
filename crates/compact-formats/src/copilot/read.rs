//! Events to drafts.

use compact_core::message::{Meta, Role};

use super::event::Event;
use crate::Scope;
use crate::edit;
use crate::error::FormatError;
use crate::json::{At, lenient};
use crate::source::{self, Draft, Layout, Place, Reading};

pub(super) fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    let lines = source::lines(source);
    let mut reading = Reading::new(Layout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let mut is_session = false;
    for index in 0..lines.len() {
        let line = source::read_line::<Event<'_>>(source, &lines, index, &mut reading.problems)?;
        if let Some(line) = line.filter(source::Line::is_object) {
            is_session |= line.value.kind().contains('.');
            event(source, &line, scope, &mut reading)?;
        }
    }
    if !is_session {
        return Err(source::unlike(source));
    }
    reading.layout = Layout::Lines {
        lines,
        live_from: 0,
    };
    Ok(reading)
}

fn event(
    source: &[u8],
    line: &source::Line<'_, Event<'_>>,
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
    let Some(said) = line.value.said(at)? else {
        return Ok(());
    };
    reading.drafts.push(Draft {
        id: lenient(line.value.id).map(String::from),
        role: said.role,
        blocks: edit::blocks(said.pieces),
        meta: Meta {
            kind: said.kind,
            ..Meta::default()
        },
        place: Place {
            line: line.index,
            span: line.offset..line.offset + line.json.len(),
            part: None,
        },
    });
    Ok(())
}
