//! The proof in numbers: how many anchors of the dropped span the view shows, and where the others are.

use crate::redact::{RedactionCounts, Redactor};
use crate::verify::{Anchor, Retention};

use super::{CompactionInput, Originals};

/// Stands between anchors that are redacted in one go; no rule's pattern reaches across it.
const BETWEEN: &str = "\n\u{0}\n";

/// Counts the anchors that the view showed `before` its repair and shows `after` it.
pub(super) fn count_retention(
    input: &CompactionInput<'_>,
    anchors: &[Anchor],
    before: &[bool],
    after: &[bool],
) -> Retention {
    let missing = anchors
        .iter()
        .zip(after)
        .filter(|(_, shown)| !**shown)
        .map(|(anchor, _)| anchor.text.as_str());
    let mut retention = Retention {
        anchors: anchors.len() as u64,
        kept: after.iter().filter(|shown| **shown).count() as u64,
        repaired: before
            .iter()
            .zip(after)
            .filter(|(b, a)| !**b && **a)
            .count() as u64,
        redacted: count_redacted(missing.collect(), input.redactor),
        ..Retention::default()
    };
    let gone = retention.anchors - retention.kept - retention.redacted;
    match input.originals {
        Originals::Archived | Originals::Redacted(_) => retention.recoverable = gone,
        Originals::Gone => retention.lost = gone,
    }
    retention.score = retention.share_kept();
    retention
}

/// How many of these texts a redaction rule would replace.
fn count_redacted(texts: Vec<&str>, redactor: &Redactor) -> u64 {
    let redacted = redactor
        .redact(&texts.join(BETWEEN), &mut RedactionCounts::new())
        .into_owned();
    let pairs = texts.into_iter().zip(redacted.split(BETWEEN));
    pairs.filter(|(a, b)| a != b).count() as u64
}
