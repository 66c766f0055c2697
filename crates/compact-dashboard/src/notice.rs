//! What was just done, for the page that is shown next, once, in the place where somebody asked for it. An address names it
//! by a number, so that no link can put words into our mouth.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use maud::{Markup, html};

use crate::text::{foreign, visible};

/// How many are kept; a page is fetched right after what it tells of.
const KEPT: usize = 64;

/// The newest notices.
#[derive(Default)]
pub(crate) struct NoticeBoard(Mutex<NumberedNotices>);

#[derive(Default)]
struct NumberedNotices {
    next: u64,
    kept: VecDeque<(u64, Notice)>,
}

/// What is told.
pub(crate) struct Notice {
    /// The session whose page tells it.
    pub(crate) session: String,
    /// What it is about, and so where on the page it stands.
    pub(crate) subject: NoticeSubject,
    /// The words.
    pub(crate) words: String,
    /// A session to go on to.
    pub(crate) leads_to: Option<NextSession>,
}

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoticeSubject {
    /// All that the page shows.
    Page,
    /// A row of a table: the compaction of that receipt.
    Compaction(String),
    /// One of several entries: its place.
    Entry(usize),
}

/// A session that a notice leads to.
pub(crate) struct NextSession {
    pub(crate) name: String,
    pub(crate) address: String,
}

impl NoticeBoard {
    /// Keeps a notice and returns its number.
    pub(crate) fn add(&self, notice: Notice) -> u64 {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = notices.next;
        notices.next += 1;
        notices.kept.push_back((number, notice));
        if notices.kept.len() > KEPT {
            notices.kept.pop_front();
        }
        number
    }

    /// Returns the notice of a number if it is about that session, and forgets it.
    pub(crate) fn take(&self, number: Option<u64>, session: &str) -> Option<Notice> {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = notices.kept.iter();
        let at =
            kept.position(|(known, notice)| Some(*known) == number && notice.session == session)?;
        Some(notices.kept.remove(at)?.1)
    }
}

/// Shows a notice in the place of its subject, and nothing in any other.
pub(crate) fn render_notice(notice: Option<&Notice>, place: &NoticeSubject) -> Markup {
    html! {
        @if let Some(notice) = notice.filter(|notice| notice.subject == *place) {
            p.notice #notice role="status" tabindex="-1" {
                (visible(&notice.words))
                @if let Some(next) = &notice.leads_to { " " a href=(next.address) { "Open " (foreign(&next.name)) } }
            }
        }
    }
}
