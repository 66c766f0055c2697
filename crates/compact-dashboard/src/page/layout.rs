//! What every page has: a head, the way home, what was just done, and sections that fold.

use maud::{DOCTYPE, Markup, html};

use crate::notice::{Notice, NoticeSubject, render_notice};
use crate::text::{foreign, group_digits, visible};
use crate::{ActionMode, Dashboard};

/// The frame of a page.
pub(crate) struct Layout<'a> {
    dashboard: &'a Dashboard,
    title: &'a str,
    notice: Option<&'a Notice>,
    /// The pages above this one, the highest first: their names and addresses.
    trail: Vec<(String, String)>,
    seen: Option<u64>,
}

impl<'a> Layout<'a> {
    /// Frames a page of that title.
    pub(crate) fn new(dashboard: &'a Dashboard, title: &'a str) -> Layout<'a> {
        Layout {
            dashboard,
            title,
            notice: None,
            trail: Vec::new(),
            seen: None,
        }
    }

    /// Keeps the page up to date, which was made when so much had changed: counted before anything was read for it.
    pub(crate) fn live_since(mut self, seen: u64) -> Layout<'a> {
        self.seen = Some(seen);
        self
    }

    /// Says what was just done.
    pub(crate) fn with_notice(mut self, notice: Option<&'a Notice>) -> Layout<'a> {
        self.notice = notice;
        self
    }

    /// Leads back to the page above this one; of several the highest is named first.
    pub(crate) fn below(mut self, name: &str, address: String) -> Layout<'a> {
        self.trail.push((name.to_owned(), address));
        self
    }

    /// Renders the page.
    pub(crate) fn page(&self, body: &Markup) -> Markup {
        let link = |path: &str| self.dashboard.link(path);
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (visible(self.title)) " · Compact" }
                    link rel="stylesheet" href=(link("/asset/style.css"));
                    link rel="icon" type="image/svg+xml" href=(link("/asset/icon.svg"));
                    script src=(link("/asset/page.js")) defer data-live=[self.seen.map(|seen| link(&format!("/live?seen={seen}")))] {}
                }
                body {
                    a.skip href="#content" { "Skip to content" }
                    header.top {
                        a.brand href=(link("/")) { "Compact" }
                        (self.navigation())
                        span.state #live role="status" { }
                    }
                    main #content tabindex="-1" {
                        (self.render_trail())
                        h1 { (foreign(self.title)) }
                        div #told { (render_notice(self.notice, &NoticeSubject::Page)) }
                        (body)
                    }
                }
            }
        }
    }

    fn render_trail(&self) -> Markup {
        html! {
            @if !self.trail.is_empty() {
                nav.trail aria-label="Where this is" {
                    ol { @for (name, address) in &self.trail { li { a href=(address) { (foreign(name)) } } } }
                }
            }
        }
    }

    fn navigation(&self) -> Markup {
        let link = |path: &str| self.dashboard.link(path);
        html! {
            nav.main aria-label="Pages" {
                a href=(link("/")) { "Sessions" }
                a href=(link("/money")) { "Money" }
                @if self.dashboard.chats.is_some() && self.dashboard.actions == ActionMode::Allowed { a href=(link("/chat")) { "Chat" } }
            }
        }
    }
}

/// A part of a page under a heading that folds it.
pub(crate) fn section(id: &str, title: &Markup, body: &Markup) -> Markup {
    html! {
        details.section id=(id) open {
            summary { h2 { (title) } }
            (body)
        }
    }
}

/// A button that does something; nothing where pages only show.
pub(crate) fn action_button(
    dashboard: &Dashboard,
    path: &str,
    label: &str,
    fields: &[(&str, &str)],
) -> Markup {
    if dashboard.actions == ActionMode::ReadOnly {
        return html! {};
    }
    html! {
        form.action method="post" action=(dashboard.link(path)) {
            input type="hidden" name="token" value=(dashboard.token.as_str());
            @for (name, value) in fields {
                input type="hidden" name=(name) value=(value);
            }
            button type="submit" { (label) }
        }
    }
}

/// The way through a list that is shown in parts.
pub(crate) struct ListPages<'a> {
    /// The page that is shown, from 0.
    pub(crate) page: usize,
    /// How many rows one has.
    pub(crate) rows: usize,
    /// How many rows there are.
    pub(crate) total: usize,
    /// What is said of the page before and the page after.
    pub(crate) words: (&'a str, &'a str),
}

impl ListPages<'_> {
    /// Shows it, where there is more than one page.
    pub(crate) fn render(&self, label: &str, address: impl Fn(usize) -> String) -> Markup {
        let first = self.page.saturating_mul(self.rows);
        let last = first.saturating_add(self.rows).min(self.total);
        let (before, after) = self.words;
        html! {
            @if self.total > self.rows {
                nav.pages aria-label=(label) {
                    @if self.page > 0 { a rel="prev" href=(address(self.page - 1)) { "← " (before) } }
                    span {
                        @if first < last { (group_digits(first as u64 + 1)) "–" (group_digits(last as u64)) }
                        @else { "nothing here" }
                        " of " (group_digits(self.total as u64))
                    }
                    @if last < self.total { a rel="next" href=(address(self.page + 1)) { (after) " →" } }
                }
            }
        }
    }
}
