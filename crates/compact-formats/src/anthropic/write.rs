//! Views to messages.

use std::borrow::Cow;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::{Edit, View, ViewItem};
use serde_json::value::RawValue;

use super::read::{Message, split, system_pieces};
use crate::Document;
use crate::body::{self, Member, is_beside};
use crate::edit::{self, Edits, arguments};
use crate::error::FormatError;
use crate::json::{At, quote};
use crate::list;
use crate::source::Place;
use crate::wire::{Page, Shown};

pub(super) fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let messages = Writer::write(page, &view.items)?;
    body::emit(page.document, &messages, system(page, view)?)
}

pub(super) fn extend(
    first: &Document,
    later: &Page<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let items: Vec<ViewItem> = (from..later.document.places.len())
        .map(|entry| ViewItem::Kept { entry })
        .collect();
    let added = Writer::write(later, &items)?;
    let added: Vec<&str> = added.iter().map(AsRef::as_ref).collect();
    Ok(list::extend(first, &added))
}

/// Messages as they come; the entries of one message are written together.
struct Writer<'a> {
    page: &'a Page<'a>,
    messages: Vec<Cow<'a, str>>,
    open: Option<Open<'a>>,
}

/// A message of which some entries have been seen.
struct Open<'a> {
    line: usize,
    item: &'a str,
    ranges: Vec<std::ops::Range<usize>>,
    shown: Vec<usize>,
    edits: Vec<(usize, Edit)>,
}

impl<'a> Writer<'a> {
    fn write(page: &'a Page<'a>, items: &'a [ViewItem]) -> Result<Vec<Cow<'a, str>>, FormatError> {
        let mut writer = Writer {
            page,
            messages: Vec::with_capacity(items.len()),
            open: None,
        };
        for item in items {
            match page.shown(item)? {
                Shown::New(entry) if entry.role.is_instruction() => {}
                Shown::New(entry) => {
                    writer.close()?;
                    writer.messages.extend(compose(entry).map(Cow::Owned));
                }
                Shown::Kept { place, .. } | Shown::Edited { place, .. } if is_beside(place) => {}
                Shown::Kept { place, item } => writer.entry(place, item, Edits(&[]))?,
                Shown::Edited { place, item, edits } => writer.entry(place, item, edits)?,
            }
        }
        writer.close()?;
        Ok(writer.messages)
    }

    fn at(&self) -> At<'a> {
        At {
            source: self.page.bytes(),
            offset: 0,
        }
    }

    fn entry(&mut self, place: &Place, item: &'a str, edits: Edits<'_>) -> Result<(), FormatError> {
        let part = place.part.unwrap_or(0);
        let goes_on = self
            .open
            .as_ref()
            .is_some_and(|open| open.line == place.line && !open.shown.contains(&part));
        if !goes_on {
            self.close()?;
            self.open = Some(Open::new(self.at(), place, item)?);
        }
        if let Some(open) = &mut self.open {
            open.add(part, edits);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), FormatError> {
        if let Some(open) = self.open.take() {
            self.messages.extend(open.finish(self.at())?);
        }
        Ok(())
    }
}

impl<'a> Open<'a> {
    fn new(at: At<'_>, place: &Place, item: &'a str) -> Result<Self, FormatError> {
        // Only the entry of a whole message has no part, and only it needs no second look.
        let ranges = match place.part {
            None => std::iter::once(0..usize::MAX).collect(),
            Some(_) => {
                let message = Message::of(at, item)?;
                split(message.role(), &edit::blocks(message.pieces(at)?))
            }
        };
        Ok(Open {
            line: place.line,
            item,
            ranges,
            shown: Vec::new(),
            edits: Vec::new(),
        })
    }

    fn add(&mut self, part: usize, edits: Edits<'_>) {
        let start = self.ranges.get(part).map_or(0, |range| range.start);
        let moved = edits.0.iter().map(|(at, edit)| (start + at, edit.clone()));
        self.edits.extend(moved);
        self.shown.push(part);
    }

    fn finish(mut self, at: At<'_>) -> Result<Option<Cow<'a, str>>, FormatError> {
        let hidden = (0..self.ranges.len()).filter(|part| !self.shown.contains(part));
        let dropped = hidden.filter_map(|part| self.ranges.get(part).cloned());
        self.edits
            .extend(dropped.flatten().map(|block| (block, Edit::Drop)));
        if self.edits.is_empty() {
            return Ok(Some(Cow::Borrowed(self.item)));
        }
        let message = Message::of(at, self.item)?;
        let pieces = message.pieces(at)?;
        let edited = edit::apply(self.item, &pieces, Edits(&self.edits), &text_block);
        Ok(edited.map(Cow::Owned))
    }
}

/// The system prompt, when the view changes it.
fn system(page: &Page<'_>, view: &View) -> Result<Option<Member>, FormatError> {
    let at = At {
        source: page.bytes(),
        offset: 0,
    };
    let mut blocks: Vec<Cow<'_, str>> = Vec::new();
    let mut kept = 0;
    let mut is_same = true;
    for item in &view.items {
        match page.shown(item)? {
            Shown::New(entry) if entry.role.is_instruction() => {
                is_same = false;
                blocks.push(Cow::Owned(text_block(&entry.plain_text())));
            }
            Shown::Kept { place, item } if is_beside(place) => {
                kept += 1;
                blocks.push(as_block(item));
            }
            Shown::Edited { place, item, edits } if is_beside(place) => {
                is_same = false;
                let raw: &RawValue = at.read(item)?;
                let edited = edit::apply(item, &system_pieces(at, raw)?, edits, &text_block);
                blocks.extend(edited.map(|item| Cow::Owned(as_block(&item).into_owned())));
            }
            _ => {}
        }
    }
    let all = page.document.places.iter().filter(|p| is_beside(p)).count();
    let member = Member {
        key: "system",
        json: format!("[{}]", blocks.join(",")),
    };
    Ok((!is_same || kept < all).then_some(member))
}

/// A string of the system prompt as a block.
fn as_block(item: &str) -> Cow<'_, str> {
    if item.starts_with('"') {
        return Cow::Owned(format!("{{\"type\":\"text\",\"text\":{item}}}"));
    }
    Cow::Borrowed(item)
}

fn text_block(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// A new entry as a message: results first, because the provider wants them there.
pub(crate) fn compose(entry: &Entry) -> Option<String> {
    let role = match entry.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let is_answer = |b: &&Block| matches!(b, Block::ToolResult { .. });
    let answers = entry.blocks.iter().filter(is_answer);
    let others = entry.blocks.iter().filter(|b| !is_answer(b));
    let blocks: Vec<String> = answers.chain(others).filter_map(block).collect();
    let text = match entry.blocks.as_slice() {
        [Block::Text(text)] if !text.trim().is_empty() => Some(quote(text)),
        _ => None,
    };
    let content = text.unwrap_or_else(|| format!("[{}]", blocks.join(",")));
    (!blocks.is_empty()).then(|| format!("{{\"role\":\"{role}\",\"content\":{content}}}"))
}

/// A block as JSON; blank texts and what cannot be said anew have none.
fn block(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) if text.trim().is_empty() => None,
        Block::Text(text) => Some(text_block(text)),
        Block::ToolCall {
            id,
            name,
            arguments: text,
        } => Some(format!(
            "{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{}}}",
            quote(id),
            quote(name),
            arguments(text)
        )),
        Block::ToolResult {
            call,
            content,
            is_error,
        } => {
            let error = if *is_error { ",\"is_error\":true" } else { "" };
            Some(format!(
                "{{\"type\":\"tool_result\",\"tool_use_id\":{},\"content\":{}{error}}}",
                quote(call),
                quote(content)
            ))
        }
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}
