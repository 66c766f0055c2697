//! Items to drafts.

use compact_core::message::{Block, EntryKind, Meta, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FORGETFUL, item};
use crate::Problem;
use crate::body;
use crate::edit;
use crate::error::FormatError;
use crate::frame;
use crate::json::{At, Members, is_object, is_string, lenient};
use crate::list;
use crate::source::{Draft, Layout, Place, Reading};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
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

pub(super) fn read(source: &[u8]) -> Result<Reading, FormatError> {
    let (text, at) = body::text(source)?;
    if text.trim_ascii_start().starts_with('[') {
        return Reader::items(source, text, at.read(text)?, "the document", None);
    }
    let body: Body<'_> = at.read(text)?;
    let input = body
        .input
        .ok_or_else(|| at.missing("input", "a string or a list of items"))?;
    let instructions = body
        .instructions
        .map(|raw| instructions(source, at, raw))
        .transpose()?;
    let mut reading = if is_string(input) {
        prompt(source, at, input, instructions)?
    } else {
        Reader::items(source, text, input, "input", instructions)?
    };
    reading.model = lenient(body.model).map(Into::into);
    reading.tools = body.tools.map(|raw| raw.get().to_owned());
    reading.session_id = body.client_metadata.and_then(session_id);
    if body.store.is_some_and(|raw| raw.get() == "false") && leaves_reasoning_behind(&reading) {
        reading.rules = Some(&FORGETFUL);
    }
    note_server_state(&body, &mut reading);
    Ok(reading)
}

/// Codex names its session in the metadata of the turn.
fn session_id(metadata: &RawValue) -> Option<String> {
    let turn = lenient(Members::of(metadata.get()).get("x-codex-turn-metadata"))?;
    lenient(Members::of(&turn).get("session_id")).map(String::from)
}

/// True when reasoning is named by its id alone.
fn leaves_reasoning_behind(reading: &Reading) -> bool {
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

fn note_server_state(body: &Body<'_>, reading: &mut Reading) {
    let fields = [
        ("previous_response_id", body.previous_response_id),
        ("conversation", body.conversation),
    ];
    for (field, _) in fields.iter().filter(|(_, raw)| raw.is_some()) {
        reading.problems.push(Problem {
            entry: None,
            line: None,
            message: format!("`{field}`: the server holds the history before this input"),
        });
    }
}

fn instructions(source: &[u8], at: At<'_>, raw: &RawValue) -> Result<Draft, FormatError> {
    let text = at.string("instructions", raw)?;
    Ok(Draft {
        id: Some("instructions".to_owned()),
        role: Role::System,
        blocks: vec![Block::Text(text)],
        meta: Meta::default(),
        place: body::beside(source, raw, None),
    })
}

/// An input that is a string is one message of the user.
fn prompt(
    source: &[u8],
    at: At<'_>,
    raw: &RawValue,
    instructions: Option<Draft>,
) -> Result<Reading, FormatError> {
    let text = at.string("input", raw)?;
    let span = body::beside(source, raw, None).span;
    let mut reading = Reading::new(Layout::List {
        open: span.start,
        messages: std::iter::once(span.clone()).collect(),
    });
    reading.drafts.extend(instructions);
    reading.drafts.push(Draft {
        id: None,
        role: Role::User,
        meta: Meta {
            kind: frame::summary(&text).unwrap_or_default(),
            ..Meta::default()
        },
        blocks: vec![Block::Text(text)],
        place: Place {
            line: 0,
            span,
            part: None,
        },
    });
    Ok(reading)
}

struct Reader {
    reading: Reading,
    /// The group of the response being read.
    run: Option<String>,
}

impl Reader {
    fn items(
        source: &[u8],
        text: &str,
        raw: &RawValue,
        field: &str,
        instructions: Option<Draft>,
    ) -> Result<Reading, FormatError> {
        let (elements, layout) = list::elements(source, text, raw, field)?;
        let mut reader = Reader {
            reading: Reading::new(layout),
            run: None,
        };
        reader.reading.drafts.extend(instructions);
        for (raw, place) in elements {
            let at = At {
                source,
                offset: place.span.start,
            };
            reader.item(at, raw, place)?;
        }
        Ok(reader.reading)
    }

    fn item(&mut self, at: At<'_>, raw: &RawValue, place: Place) -> Result<(), FormatError> {
        if !is_object(raw) {
            return Err(at.field("input[]", "an object", raw));
        }
        let Some(item::Reads {
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
        self.reading.drafts.push(Draft {
            id,
            role,
            blocks: edit::blocks(pieces),
            meta: Meta {
                kind,
                group,
                ..Meta::default()
            },
            place,
        });
        Ok(())
    }
}
