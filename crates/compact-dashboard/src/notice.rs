//! What was just done, for the page of its session that is shown next, once. An address names it by a number, so that no
//! link can put words into our mouth.

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
    kept: VecDeque<Notice>,
}

struct Notice {
    number: u64,
    session: String,
    words: String,
}

impl NoticeBoard {
    /// Keeps a notice and returns its number.
    pub(crate) fn add(&self, session: &str, words: String) -> u64 {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = notices.next;
        notices.next += 1;
        notices.kept.push_back(Notice {
            number,
            session: session.to_owned(),
            words,
        });
        if notices.kept.len() > KEPT {
            notices.kept.pop_front();
        }
        number
    }

    /// Returns the notice of a number if it is about that session, and forgets it.
    pub(crate) fn take(&self, number: Option<u64>, session: &str) -> Option<String> {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = notices.kept.iter();
        let at = kept.position(|n| Some(n.number) == number && n.session == session)?;
        Some(notices.kept.remove(at)?.words)
    }
}
