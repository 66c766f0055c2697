//! Items to drafts.

use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{UNSTORED, item};
use crate::TranscriptProblem;
use crate::body;
use crate::edit;
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_object, is_string, string_value};
use crate::list::{self, ListElements};
use crate::source::{EntryDraft, EntryPlace, SourceLayout, TranscriptReading};
use crate::special_text;

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesBody<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    store: Option<&'a RawValue>,
    previous_response_id: Option<&'a RawValue>,
    conversation: Option<&'a RawValue>,
    client_metadata: Option<&'a RawValue>,
}

pub(super) fn read(source: &[u8]) -> Result<TranscriptReading, FormatError> {
    let (text, at) = body::read_text(source)?;
    if text.trim_ascii_start().starts_with('[') {
        return ResponsesReader::read_items(source, text, at.read(text)?, "the document", None);
    }
    let body: ResponsesBody<'_> = at.read(text)?;
    let input = body
        .input
        .ok_or_else(|| at.missing_field("input", "a string or a list of items"))?;
    let instructions = body
        .instructions
        .map(|raw| draft_instructions(source, at, raw))
        .transpose()?;
    let mut reading = if is_string(input) {
        read_prompt(source, at, input, instructions)?
    } else {
        ResponsesReader::read_items(source, text, input, "input", instructions)?
    };
    reading.model = string_value(body.model).map(Into::into);
    reading.tools = body.tools.map(|raw| raw.get().to_owned());
    reading.session_id = body.client_metadata.and_then(session_id);
    if body.store.is_some_and(|raw| raw.get() == "false") && leaves_reasoning_behind(&reading) {
        reading.rules = Some(&UNSTORED);
    }
    note_server_state(&body, &mut reading);
    Ok(reading)
}

/// Reads the session's name that Codex puts into the metadata of the turn.
fn session_id(metadata: &RawValue) -> Option<String> {
    let turn = string_value(Members::from_json(metadata.get()).get("x-codex-turn-metadata"))?;
    string_value(Members::from_json(&turn).get("session_id")).map(String::from)
}

/// Returns whether reasoning is named by its id alone.
fn leaves_reasoning_behind(reading: &TranscriptReading) -> bool {
    let mut blocks = reading.drafts.iter().flat_map(|draft| &draft.blocks);
    blocks.any(|b| {
        matches!(
            b,
            Block::Reasoning {
                replay_bytes: 0,
                ..
            }
        )
    })
}

fn note_server_state(body: &ResponsesBody<'_>, reading: &mut TranscriptReading) {
    let fields = [
        ("previous_response_id", body.previous_response_id),
        ("conversation", body.conversation),
    ];
    for (field, _) in fields.iter().filter(|(_, raw)| raw.is_some()) {
        reading.problems.push(TranscriptProblem {
            entry: None,
            line: None,
            message: format!("`{field}`: the server holds the history before this input"),
        });
    }
}

fn draft_instructions(
    source: &[u8],
    at: ItemContext<'_>,
    raw: &RawValue,
) -> Result<EntryDraft, FormatError> {
    let text = at.read_string("instructions", raw)?;
    Ok(EntryDraft {
        id: Some("instructions".to_owned()),
        role: Role::System,
        blocks: vec![Block::Text(text)],
        meta: EntryMeta::default(),
        place: body::place_beside(source, raw, None),
    })
}

/// Reads an input that is a string as one message of the user.
fn read_prompt(
    source: &[u8],
    at: ItemContext<'_>,
    raw: &RawValue,
    instructions: Option<EntryDraft>,
) -> Result<TranscriptReading, FormatError> {
    let text = at.read_string("input", raw)?;
    let span = body::place_beside(source, raw, None).span;
    let mut reading = TranscriptReading::new(SourceLayout::List {
        open: span.start,
        messages: std::iter::once(span.clone()).collect(),
    });
    reading.drafts.extend(instructions);
    reading.drafts.push(EntryDraft {
        id: None,
        role: Role::User,
        meta: EntryMeta {
            kind: special_text::summary_kind(&text).unwrap_or_default(),
            ..EntryMeta::default()
        },
        blocks: vec![Block::Text(text)],
        place: EntryPlace {
            line: 0,
            span,
            part: None,
        },
    });
    Ok(reading)
}

/// Reads the items of a list.
pub(super) fn read_elements(
    source: &[u8],
    elements: ListElements<'_>,
) -> Result<TranscriptReading, FormatError> {
    ResponsesReader::read_elements(source, elements)
}

struct ResponsesReader {
    reading: TranscriptReading,
    /// The group of the response being read.
    run: Option<String>,
}

impl ResponsesReader {
    fn read_items(
        source: &[u8],
        text: &str,
        raw: &RawValue,
        field: &str,
        instructions: Option<EntryDraft>,
    ) -> Result<TranscriptReading, FormatError> {
        let found = list::find_elements(source, text, raw, field)?;
        let mut reading = ResponsesReader::read_elements(source, found)?;
        reading.put_first(instructions);
        Ok(reading)
    }

    fn read_elements(
        source: &[u8],
        (elements, layout): ListElements<'_>,
    ) -> Result<TranscriptReading, FormatError> {
        let mut reader = ResponsesReader {
            reading: TranscriptReading::new(layout),
            run: None,
        };
        for (raw, place) in elements {
            let at = ItemContext {
                source,
                offset: place.span.start,
            };
            reader.read_item(at, raw, place)?;
        }
        Ok(reader.reading)
    }

    fn read_item(
        &mut self,
        at: ItemContext<'_>,
        raw: &RawValue,
        place: EntryPlace,
    ) -> Result<(), FormatError> {
        if !is_object(raw) {
            return Err(at.wrong_type("input[]", "an object", raw));
        }
        let Some(item::ItemContent {
            id,
            role,
            kind,
            pieces,
        }) = item::read(at, raw.get())?
        else {
            return Ok(());
        };
        let speaks = role == Role::Assistant && kind != EntryKind::ForeignSummary;
        if !speaks {
            self.run = None;
        }
        let group = speaks.then(|| {
            let name = || format!("response-{}", place.name());
            self.run.get_or_insert_with(name).clone()
        });
        self.reading.drafts.push(EntryDraft {
            id,
            role,
            blocks: edit::into_blocks(pieces),
            meta: EntryMeta {
                kind,
                group,
                ..EntryMeta::default()
            },
            place,
        });
        Ok(())
    }
}
