//! What a caller says about a message beside its content: `meta`, of which no provider knows.
//!
//! A message of any format may carry an object `meta`; its truthy members are the entry's flags, one
//! of which protects it (`policy.protected_flag`). It stands beside `role` and `content`, or around
//! them where a transcript wraps its messages. Flags are read here for every format alike, they are
//! no part of what is said, and [`strip_own_members`] leaves them out of what is sent.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::value::RawValue;

use crate::body::is_beside;
use crate::json::{Members, Patch, is_object, is_true};
use crate::source::{self, TranscriptReading};

/// The members of a message that are for us alone.
pub(crate) const OWN_MEMBERS: [&str; 2] = ["meta", "protected"];

/// Where transcripts keep the message of a line.
const WRAPPED: [&str; 4] = ["message", "payload", "info", "data"];

/// Notes the flags of every entry; those of one message share them.
pub(crate) fn note_flags(source: &[u8], reading: &mut TranscriptReading) {
    for draft in reading.drafts.iter_mut().filter(|d| !is_beside(&d.place)) {
        let span = draft.place.span.clone();
        if source.get(span.clone()).is_some_and(may_have_flags)
            && let Ok(json) = source::span_text(source, span)
        {
            draft.meta.flags = read_flags(json);
        }
    }
}

/// Returns the flags of a message: truthy members of its `meta`, and `protected` beside it.
fn read_flags(json: &str) -> BTreeSet<String> {
    let mut flags = BTreeSet::new();
    if may_have_flags(json.as_bytes()) {
        let members = Members::from_json(json);
        collect_flags(&members, &mut flags);
        for wrapped in WRAPPED.iter().filter_map(|key| members.get(key)) {
            collect_flags(&Members::from_json(wrapped.get()), &mut flags);
        }
    }
    flags
}

fn collect_flags(members: &Members<'_>, flags: &mut BTreeSet<String>) {
    if let Some(meta) = members.get("meta").filter(|meta| is_object(meta)) {
        let said = Members::from_json(meta.get()).0.into_iter();
        flags.extend(
            said.filter(|m| is_truthy(m.value))
                .map(|m| m.key.into_owned()),
        );
    }
    if is_true(members.get("protected")) {
        flags.insert("protected".to_owned());
    }
}

fn is_truthy(raw: &RawValue) -> bool {
    !matches!(
        raw.get(),
        "null" | "false" | "0" | "0.0" | "\"\"" | "[]" | "{}"
    )
}

/// Returns false when no member can be ours: most messages are seen through without being read again. A name
/// may be written with escapes.
fn may_have_flags(json: &[u8]) -> bool {
    static SIGNS: LazyLock<[Finder<'static>; 3]> =
        LazyLock::new(|| ["\"meta\"", "\"protected\"", "\\u00"].map(Finder::new));
    SIGNS.iter().any(|sign| sign.find(json).is_some())
}

/// Returns a message as its provider takes it: the same bytes without what is for us alone.
pub(crate) fn strip_own_members(json: &str) -> Cow<'_, str> {
    if !may_have_flags(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let members = Members::from_json(json);
    let is_own = |key: &str| OWN_MEMBERS.contains(&key);
    if !members.0.iter().any(|m| is_own(&m.key)) {
        return Cow::Borrowed(json);
    }
    let mut patch = Patch::new(json);
    patch.remove_members(&members, |m| is_own(&m.key));
    Cow::Owned(patch.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_bare_without_what_is_ours() {
        let rows = [
            (
                r#"{"role":"user","content":"a"}"#,
                r#"{"role":"user","content":"a"}"#,
            ),
            (
                r#"{"meta":{"protected":true},"role":"user"}"#,
                r#"{"role":"user"}"#,
            ),
            (
                r#"{ "role": "user" , "meta": {} }"#,
                r#"{ "role": "user" }"#,
            ),
            (
                r#"{"a":1,"meta":1,"b":2,"protected":true}"#,
                r#"{"a":1,"b":2}"#,
            ),
            (r#"{"a":1,"m\u0065ta":{},"b":2}"#, r#"{"a":1,"b":2}"#),
            (
                r#"{"content":"\"meta\"","input":{"meta":1}}"#,
                r#"{"content":"\"meta\"","input":{"meta":1}}"#,
            ),
            (r#"{"meta":{"x":1}}"#, "{}"),
            ("[\"meta\"]", "[\"meta\"]"),
        ];
        let made = rows.map(|(json, _)| strip_own_members(json).into_owned());
        assert_eq!(made, rows.map(|(_, expected)| expected.to_owned()));
    }

    #[test]
    fn flags_stand_beside_what_is_said_or_around_it() {
        let rows = [
            (
                r#"{"meta":{"protected":true,"tool_name":"x","turn_id":0,"seen":false}}"#,
                "protected tool_name",
            ),
            (r#"{"protected":true}"#, "protected"),
            (r#"{"protected":"yes","meta":7}"#, ""),
            (r#"{"type":"user","message":{"meta":{"keep":1}}}"#, "keep"),
            (
                r#"{"type":"user","meta":{"keep":1},"message":{"meta":{"pin":[1]}}}"#,
                "keep pin",
            ),
            (r#"{"content":{"meta":{"protected":true}}}"#, ""),
            (r#"{"toolUseResult":{"meta":{"protected":true}}}"#, ""),
        ];
        let made = rows.map(|(json, _)| read_flags(json).into_iter().collect::<Vec<_>>().join(" "));
        assert_eq!(made, rows.map(|(_, expected)| expected.to_owned()));
    }
}
