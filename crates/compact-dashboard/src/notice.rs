//! What was just done, for the page that is shown next. An address names it by a number, so that no link can put words
//! into our mouth.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many are kept; a page is fetched right after what it tells of.
const KEPT: usize = 64;

/// The newest notices.
#[derive(Default)]
pub(crate) struct NoticeBoard(Mutex<NumberedNotices>);

#[derive(Default)]
struct NumberedNotices {
    next: u64,
    kept: VecDeque<(u64, String)>,
}

impl NoticeBoard {
    /// Keeps a notice and returns its number.
    pub(crate) fn add(&self, words: String) -> u64 {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = notices.next;
        notices.next += 1;
        notices.kept.push_back((number, words));
        if notices.kept.len() > KEPT {
            notices.kept.pop_front();
        }
        number
    }

    /// Returns the notice of a number.
    pub(crate) fn find(&self, number: Option<u64>) -> Option<String> {
        let notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = notices.kept.iter();
        let (_, words) = kept.find(|(known, _)| Some(*known) == number)?;
        Some(words.clone())
    }
}
