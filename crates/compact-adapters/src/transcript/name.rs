//! Names of files, made from session ids that may be anything.
//!
//! An id of plain characters is its own name, as people expect. Any other is told by a hash behind
//! what is plain of it: no separator, no dot file, no device, and no two ids with one name.

use compact_runtime::port::transcript::Artifact;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The longest id that is its own name; file systems take 255 bytes for all of it.
const LONGEST: usize = 120;

/// How much of an odd id its name shows.
const SHOWN: usize = 40;

/// Returns the file of a session's transcript.
pub(super) fn transcript_file_name(session: &str) -> String {
    format!("transcript-{}.jsonl", plain_name(session))
}

/// Returns the name of an artifact, without its extension.
pub(super) fn artifact_file_stem(artifact: Artifact, session: &str, at: Timestamp) -> String {
    let at = at.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S%.6fZ");
    format!("{}-{}-{at}", artifact.as_str(), plain_name(session))
}

/// Returns a session's name in a file's name.
pub fn plain_name(session: &str) -> String {
    let is_plain = !session.is_empty()
        && session.len() <= LONGEST
        && session.chars().all(is_plain_char)
        && !session.starts_with('.');
    if is_plain {
        return session.to_owned();
    }
    let shown: String = session
        .chars()
        .filter(|c| is_plain_char(*c))
        .take(SHOWN)
        .collect();
    let hash = blake3::hash(session.as_bytes()).to_hex();
    // `~` is in no plain id, so no plain id is the name of an odd one.
    format!("{shown}~{}", hash.chars().take(32).collect::<String>())
}

/// Returns where names ignore case, capitals are no plain characters: `A` and `a` are two sessions.
fn is_plain_char(c: char) -> bool {
    const IGNORES_CASE: bool = cfg!(any(target_os = "macos", windows));
    matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.')
        || (c.is_ascii_uppercase() && !IGNORES_CASE)
}
