//! Lines to drafts.

use crate::usage::UsageSource;
use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::TranscriptScope;
use crate::edit;
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_list, is_object, span_in, string_value};
use crate::responses::item;
use crate::source::{self, EntryDraft, EntryPlace, SourceLayout, TranscriptReading};
use crate::special_text;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexLine<'a> {
    #[serde(borrow)]
    pub(super) r#type: Option<&'a RawValue>,
    pub(super) payload: Option<&'a RawValue>,
    pub(super) timestamp: Option<&'a RawValue>,
}

pub(super) fn read(
    source: &[u8],
    scope: TranscriptScope,
) -> Result<TranscriptReading, FormatError> {
    let lines = source::line_spans(source);
    let reading = TranscriptReading::new(SourceLayout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let mut reader = CodexReader {
        source,
        scope,
        reading,
        live_from: 0,
        is_rollout: false,
        base: None,
        run: None,
    };
    for index in 0..lines.len() {
        let line = source::read_line::<CodexLine<'_>>(
            source,
            &lines,
            index,
            &mut reader.reading.problems,
        )?;
        if let Some(line) = line.filter(source::SourceLine::is_object) {
            reader.read_line(&line)?;
        }
    }
    if !reader.is_rollout {
        return Err(source::unrecognised_error(source));
    }
    reader.reading.layout = SourceLayout::Lines {
        lines,
        live_from: reader.live_from,
    };
    Ok(reader.reading)
}

struct CodexReader<'s> {
    source: &'s [u8],
    scope: TranscriptScope,
    reading: TranscriptReading,
    live_from: usize,
    /// Whether any line is one of a rollout.
    is_rollout: bool,
    /// The line of the session's own metadata.
    base: Option<usize>,
    /// The group of the response being read.
    run: Option<String>,
}

impl CodexReader<'_> {
    fn read_line(
        &mut self,
        line: &source::SourceLine<'_, CodexLine<'_>>,
    ) -> Result<(), FormatError> {
        let at = ItemContext {
            source: self.source,
            offset: line.offset,
        };
        let kind = string_value(line.value.r#type).unwrap_or_default();
        let known = [
            "session_meta",
            "response_item",
            "compacted",
            "event_msg",
            "turn_context",
        ];
        if !known.contains(&kind.as_ref()) {
            return Ok(());
        }
        self.is_rollout = true;
        let Some(payload) = line.value.payload.filter(|payload| is_object(payload)) else {
            return Err(match line.value.payload {
                Some(found) => at.wrong_type("payload", "an object", found),
                None => at.missing_field("payload", "an object"),
            });
        };
        let span = span_in(line.json, payload.get());
        let span = line.offset + span.start..line.offset + span.end;
        let place = EntryPlace {
            line: line.index,
            span,
            part: None,
        };
        match kind.as_ref() {
            "session_meta" => self.read_session_meta(at, payload, place),
            "response_item" => self.read_item(at, payload.get(), place),
            "compacted" => self.read_compaction(at, payload, &place),
            "event_msg" => {
                self.read_event(payload);
                Ok(())
            }
            _ => {
                self.read_turn_context(payload);
                Ok(())
            }
        }
    }

    /// Reads the session's metadata: the first counts, since a fork repeats its parent's after its own.
    fn read_session_meta(
        &mut self,
        at: ItemContext<'_>,
        payload: &RawValue,
        place: EntryPlace,
    ) -> Result<(), FormatError> {
        if self.base.is_some() {
            return Ok(());
        }
        self.base = Some(place.line);
        let members = Members::from_json(payload.get());
        self.reading.session_id = string_value(members.get("id")).map(String::from);
        if let Some(reads) = item::read(at, payload.get())?.filter(|reads| !reads.pieces.is_empty())
        {
            self.push_entry(
                item::ItemContent {
                    id: None,
                    role: Role::System,
                    ..reads
                },
                place,
            );
        }
        Ok(())
    }

    fn read_item(
        &mut self,
        at: ItemContext<'_>,
        json: &str,
        place: EntryPlace,
    ) -> Result<(), FormatError> {
        if let Some(reads) = item::read(at, json)? {
            self.push_entry(reads, place);
        }
        Ok(())
    }

    fn push_entry(&mut self, reads: item::ItemContent<'_>, place: EntryPlace) {
        let item::ItemContent {
            id,
            role,
            kind,
            pieces,
        } = reads;
        let speaks = role == Role::Assistant && kind != EntryKind::ForeignSummary;
        if !speaks {
            self.run = None;
        }
        let group = speaks.then(|| {
            let name = || format!("response-{}", place.name());
            self.run.get_or_insert_with(name).clone()
        });
        let blocks = edit::into_blocks(pieces);
        let meta = EntryMeta {
            kind,
            group,
            ..EntryMeta::default()
        };
        self.reading.drafts.push(EntryDraft {
            id,
            role,
            blocks,
            meta,
            place,
        });
    }

    /// Reads a compaction. In live scope its replacement becomes the history; in whole scope only its
    /// summary is new.
    fn read_compaction(
        &mut self,
        at: ItemContext<'_>,
        payload: &RawValue,
        place: &EntryPlace,
    ) -> Result<(), FormatError> {
        let members = Members::from_json(payload.get());
        let history = members.get("replacement_history");
        self.run = None;
        if self.scope == TranscriptScope::Live {
            let base = self.base;
            self.reading
                .drafts
                .retain(|draft| survives_compaction(draft, base, history));
            self.live_from = place.line + 1;
        }
        let items = match history {
            Some(list) if is_list(list) => at.read_list("payload.replacement_history", list)?,
            Some(other) => {
                return Err(at.wrong_type("payload.replacement_history", "a list or null", other));
            }
            None => Vec::new(),
        };
        let before = self.reading.drafts.len();
        for (part, raw) in items.iter().enumerate() {
            if !is_object(raw) {
                return Err(at.wrong_type("payload.replacement_history[]", "an object", raw));
            }
            let span = span_in(payload.get(), raw.get());
            let span = place.span.start + span.start..place.span.start + span.end;
            self.read_item(
                at,
                raw.get(),
                EntryPlace {
                    line: place.line,
                    span,
                    part: Some(part),
                },
            )?;
        }
        if self.scope == TranscriptScope::Whole {
            let is_new = |draft: &EntryDraft| {
                draft.meta.kind == EntryKind::ForeignSummary
                    || compact_core::frame::find_frame(&draft.blocks).is_some()
            };
            let replayed = self.reading.drafts.split_off(before);
            self.reading
                .drafts
                .extend(replayed.into_iter().filter(is_new));
        }
        self.add_compaction_summary(at, payload, place, items.len(), before)
    }

    /// Adds the summary of a compaction, unless its items, which are the drafts from `first` on, contain
    /// it.
    fn add_compaction_summary(
        &mut self,
        at: ItemContext<'_>,
        payload: &RawValue,
        place: &EntryPlace,
        part: usize,
        first: usize,
    ) -> Result<(), FormatError> {
        let Some(raw) = Members::from_json(payload.get()).get("message") else {
            return Ok(());
        };
        let text = at.read_string("payload.message", raw)?;
        let says = |block: &Block| matches!(block, Block::Text(said) if said.contains(&text));
        let mut items = self.reading.drafts.iter().skip(first);
        if text.is_empty() || items.any(|draft| draft.blocks.iter().any(says)) {
            return Ok(());
        }
        let kind = special_text::summary_kind(&text).unwrap_or(EntryKind::ForeignSummary);
        let span = span_in(payload.get(), raw.get());
        let span = place.span.start + span.start..place.span.start + span.end;
        self.reading.drafts.push(EntryDraft {
            id: None,
            role: Role::User,
            blocks: vec![Block::Text(text)],
            meta: EntryMeta {
                kind,
                ..EntryMeta::default()
            },
            place: EntryPlace {
                line: place.line,
                span,
                part: Some(part),
            },
        });
        Ok(())
    }

    /// Reads a token count, which measures the request that made the latest response.
    fn read_event(&mut self, payload: &RawValue) {
        let members = Members::from_json(payload.get());
        if string_value(members.get("type")).as_deref() != Some("token_count") {
            return;
        }
        self.run = None;
        let info = members.get("info");
        let usage = info.and_then(|raw| UsageSource::Codex.read_entry_usage(raw));
        let latest = self
            .reading
            .drafts
            .iter_mut()
            .rev()
            .find(|draft| draft.role == Role::Assistant);
        if let (Some(usage), Some(draft)) = (usage, latest)
            && draft.place.part.is_none()
        {
            draft.meta.usage = Some(usage);
        }
    }

    fn read_turn_context(&mut self, payload: &RawValue) {
        let model = string_value(Members::from_json(payload.get()).get("model")).map(String::from);
        self.reading.model = model.or(self.reading.model.take());
    }
}

/// Returns whether an entry survives a compaction: the base instructions always do, and without a
/// replacement also the user's words and the instructions before them.
fn survives_compaction(
    draft: &EntryDraft,
    base: Option<usize>,
    history: Option<&RawValue>,
) -> bool {
    let is_base = Some(draft.place.line) == base && draft.place.part.is_none();
    let is_words = draft.role == Role::User && draft.meta.kind == EntryKind::Message;
    is_base || history.is_none() && (is_words || draft.role.is_instruction())
}
