//! Lines to drafts.

use crate::usage::UsageSource;
use compact_core::message::{Block, EntryKind, Meta, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Scope;
use crate::edit;
use crate::error::FormatError;
use crate::frame;
use crate::json::{At, Members, is_list, is_object, lenient, span_in};
use crate::responses::item;
use crate::source::{self, Draft, Layout, Place, Reading};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) r#type: Option<&'a RawValue>,
    pub(super) payload: Option<&'a RawValue>,
    pub(super) timestamp: Option<&'a RawValue>,
}

pub(super) fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    let lines = source::lines(source);
    let reading = Reading::new(Layout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let mut reader = Reader {
        source,
        scope,
        reading,
        live_from: 0,
        is_rollout: false,
        base: None,
        run: None,
    };
    for index in 0..lines.len() {
        let line =
            source::read_line::<Line<'_>>(source, &lines, index, &mut reader.reading.problems)?;
        if let Some(line) = line.filter(source::Line::is_object) {
            reader.line(&line)?;
        }
    }
    if !reader.is_rollout {
        return Err(source::unlike(source));
    }
    reader.reading.layout = Layout::Lines {
        lines,
        live_from: reader.live_from,
    };
    Ok(reader.reading)
}

struct Reader<'s> {
    source: &'s [u8],
    scope: Scope,
    reading: Reading,
    live_from: usize,
    /// Whether any line is one of a rollout.
    is_rollout: bool,
    /// The line of the session's own metadata.
    base: Option<usize>,
    /// The group of the response being read.
    run: Option<String>,
}

impl Reader<'_> {
    fn line(&mut self, line: &source::Line<'_, Line<'_>>) -> Result<(), FormatError> {
        let at = At {
            source: self.source,
            offset: line.offset,
        };
        let kind = lenient(line.value.r#type).unwrap_or_default();
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
                Some(found) => at.field("payload", "an object", found),
                None => at.missing("payload", "an object"),
            });
        };
        let span = span_in(line.json, payload.get());
        let span = line.offset + span.start..line.offset + span.end;
        let place = Place {
            line: line.index,
            span,
            part: None,
        };
        match kind.as_ref() {
            "session_meta" => self.session_meta(at, payload, place),
            "response_item" => self.item(at, payload.get(), place),
            "compacted" => self.compacted(at, payload, &place),
            "event_msg" => {
                self.event(payload);
                Ok(())
            }
            _ => {
                self.turn_context(payload);
                Ok(())
            }
        }
    }

    /// The first one is the session's own; a fork repeats its parent's after it.
    fn session_meta(
        &mut self,
        at: At<'_>,
        payload: &RawValue,
        place: Place,
    ) -> Result<(), FormatError> {
        if self.base.is_some() {
            return Ok(());
        }
        self.base = Some(place.line);
        let members = Members::of(payload.get());
        self.reading.session_id = lenient(members.get("id")).map(String::from);
        if let Some(reads) = item::read(at, payload.get())?.filter(|reads| !reads.pieces.is_empty())
        {
            self.push(
                item::Reads {
                    id: None,
                    role: Role::System,
                    ..reads
                },
                place,
            );
        }
        Ok(())
    }

    fn item(&mut self, at: At<'_>, json: &str, place: Place) -> Result<(), FormatError> {
        if let Some(reads) = item::read(at, json)? {
            self.push(reads, place);
        }
        Ok(())
    }

    fn push(&mut self, reads: item::Reads<'_>, place: Place) {
        let item::Reads {
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
        let blocks = edit::blocks(pieces);
        let meta = Meta {
            kind,
            group,
            ..Meta::default()
        };
        self.reading.drafts.push(Draft {
            id,
            role,
            blocks,
            meta,
            place,
        });
    }

    /// A compaction: live, the history is the replacement; over the whole, only a summary is new.
    fn compacted(
        &mut self,
        at: At<'_>,
        payload: &RawValue,
        place: &Place,
    ) -> Result<(), FormatError> {
        let members = Members::of(payload.get());
        let history = members.get("replacement_history");
        self.run = None;
        if self.scope == Scope::Live {
            let base = self.base;
            self.reading
                .drafts
                .retain(|draft| survives(draft, base, history));
            self.live_from = place.line + 1;
        }
        let items = match history {
            Some(list) if is_list(list) => at.list("payload.replacement_history", list)?,
            Some(other) => {
                return Err(at.field("payload.replacement_history", "a list or null", other));
            }
            None => Vec::new(),
        };
        let before = self.reading.drafts.len();
        for (part, raw) in items.iter().enumerate() {
            if !is_object(raw) {
                return Err(at.field("payload.replacement_history[]", "an object", raw));
            }
            let span = span_in(payload.get(), raw.get());
            let span = place.span.start + span.start..place.span.start + span.end;
            self.item(
                at,
                raw.get(),
                Place {
                    line: place.line,
                    span,
                    part: Some(part),
                },
            )?;
        }
        if self.scope == Scope::Whole {
            let is_new = |draft: &Draft| {
                draft.meta.kind == EntryKind::ForeignSummary
                    || compact_core::summarize::frame::claim(&draft.blocks).is_some()
            };
            let replayed = self.reading.drafts.split_off(before);
            self.reading
                .drafts
                .extend(replayed.into_iter().filter(is_new));
        }
        self.compaction_message(at, payload, place, items.len(), before)
    }

    /// The summary of a compaction, if its items, which are the drafts from `first` on, do not say it.
    fn compaction_message(
        &mut self,
        at: At<'_>,
        payload: &RawValue,
        place: &Place,
        part: usize,
        first: usize,
    ) -> Result<(), FormatError> {
        let Some(raw) = Members::of(payload.get()).get("message") else {
            return Ok(());
        };
        let text = at.string("payload.message", raw)?;
        let says = |block: &Block| matches!(block, Block::Text(said) if said.contains(&text));
        let mut items = self.reading.drafts.iter().skip(first);
        if text.is_empty() || items.any(|draft| draft.blocks.iter().any(says)) {
            return Ok(());
        }
        let kind = frame::summary(&text).unwrap_or(EntryKind::ForeignSummary);
        let span = span_in(payload.get(), raw.get());
        let span = place.span.start + span.start..place.span.start + span.end;
        self.reading.drafts.push(Draft {
            id: None,
            role: Role::User,
            blocks: vec![Block::Text(text)],
            meta: Meta {
                kind,
                ..Meta::default()
            },
            place: Place {
                line: place.line,
                span,
                part: Some(part),
            },
        });
        Ok(())
    }

    /// A token count measures the request that made the latest response.
    fn event(&mut self, payload: &RawValue) {
        let members = Members::of(payload.get());
        if lenient(members.get("type")).as_deref() != Some("token_count") {
            return;
        }
        self.run = None;
        let info = members.get("info");
        let usage = info.and_then(|raw| UsageSource::Codex.of_entry(raw));
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

    fn turn_context(&mut self, payload: &RawValue) {
        let model = lenient(Members::of(payload.get()).get("model")).map(String::from);
        self.reading.model = model.or(self.reading.model.take());
    }
}

/// The base instructions stay in every context; without a replacement, so do the user's words and
/// the instructions before them.
fn survives(draft: &Draft, base: Option<usize>, history: Option<&RawValue>) -> bool {
    let is_base = Some(draft.place.line) == base && draft.place.part.is_none();
    let is_words = draft.role == Role::User && draft.meta.kind == EntryKind::Message;
    is_base || history.is_none() && (is_words || draft.role.is_instruction())
}
