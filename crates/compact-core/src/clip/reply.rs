//! A model's reply that is too long: its first passage, and those that tell most for their length, in their order.
//!
//! Head and tail of a plan or a report are its title and a courtesy; what was found and decided stands between them.

use super::{ClipPointer, clip_message, cut_until_fitting, marker};
use crate::reply::passages;
use crate::token::{Estimator, Units};

/// Passages of a reply that has a middle to choose from.
const LEAST_PASSAGES: usize = 4;
/// Bytes of a reply that is read for them: a longer one is no reply but a document.
const LONGEST: usize = 1 << 16;
/// A passage of so many characters more is no dearer: what is short is not better for it.
const SMALL: usize = 24;
/// Stands where passages are left out.
const GAP: &str = "… ";

/// Reply cut to at most `limit` units; `None` when it fits as it is.
pub(super) fn clip_reply(
    whole: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let plain = clip_message(whole, limit, estimator, pointer)?;
    if whole.len() > LONGEST {
        return Some(plain);
    }
    let reply = LongReply::new(whole, pointer);
    if reply.passages.len() < LEAST_PASSAGES {
        return Some(plain);
    }
    let chars = plain.chars().count();
    let cut = cut_until_fitting(plain, chars, limit, estimator, |chars| reply.cut_to(chars));
    Some(cut)
}

struct LongReply<'r> {
    total: usize,
    passages: Vec<RankedPassage>,
    /// The places of passages, the best bargain first.
    order: Vec<usize>,
    pointer: ClipPointer<'r>,
}

struct RankedPassage {
    text: String,
    chars: usize,
    worth: f64,
}

impl<'r> LongReply<'r> {
    fn new(whole: &str, pointer: ClipPointer<'r>) -> Self {
        let passages: Vec<RankedPassage> = passages(whole)
            .into_iter()
            .map(|passage| RankedPassage {
                chars: passage.text.chars().count(),
                worth: passage.factor(true),
                text: passage.text,
            })
            .collect();
        let bargain = |at: &usize| {
            let passage = passages.get(*at);
            passage.map_or(0.0, |p| p.worth / (p.chars + SMALL) as f64)
        };
        let mut order: Vec<usize> = (1..passages.len()).collect();
        order.sort_by(|a, b| bargain(b).total_cmp(&bargain(a)).then(a.cmp(b)));
        // What a reply is about stands first.
        order.insert(0, 0);
        LongReply {
            total: whole.chars().count(),
            passages,
            order,
            pointer,
        }
    }

    /// Passages of so many characters together; `None` where there is no room for two.
    fn cut_to(&self, chars: usize) -> Option<String> {
        let marked = marker(self.total, self.pointer).chars().count();
        let mut left = chars.checked_sub(marked)?;
        let joint = GAP.chars().count() + 1;
        let fits = |at: &usize| {
            let cost = self.passages.get(*at).map_or(0, |p| p.chars + joint);
            let fits = cost <= left;
            left -= if fits { cost } else { 0 };
            fits
        };
        let mut kept: Vec<usize> = self.order.iter().copied().filter(fits).collect();
        kept.sort_unstable();
        (kept.len() > 1).then(|| self.write(&kept))
    }

    fn write(&self, kept: &[usize]) -> String {
        let mut out = String::new();
        let mut shown = 0;
        let mut next = 0;
        for at in kept.iter().copied() {
            let Some(passage) = self.passages.get(at) else {
                continue;
            };
            if !out.is_empty() {
                out.push('\n');
            }
            if at > next {
                out.push_str(GAP);
            }
            out.push_str(&passage.text);
            shown += passage.chars;
            next = at + 1;
        }
        let mark = marker(self.total.saturating_sub(shown), self.pointer);
        out.push('\n');
        out.push_str(mark.trim());
        out
    }
}
