//! What every page has: a head, the way home, what was just done, and a foot.

use maud::{DOCTYPE, Markup, html};

use crate::{ActionMode, Dashboard};

/// The frame of a page.
pub(crate) struct Layout<'a> {
    dashboard: &'a Dashboard,
    title: &'a str,
    notice: Option<&'a str>,
    trail: Option<(String, String)>,
    is_live: bool,
}

impl<'a> Layout<'a> {
    /// Frames a page of that title.
    pub(crate) fn new(dashboard: &'a Dashboard, title: &'a str) -> Layout<'a> {
        Layout {
            dashboard,
            title,
            notice: None,
            trail: None,
            is_live: true,
        }
    }

    /// Says that nothing on the page changes any more, so that nobody need look.
    pub(crate) fn without_updates(mut self) -> Layout<'a> {
        self.is_live = false;
        self
    }

    /// Says what was just done.
    pub(crate) fn with_notice(mut self, notice: Option<&'a str>) -> Layout<'a> {
        self.notice = notice;
        self
    }

    /// Leads back to the page above this one.
    pub(crate) fn below(mut self, name: String, address: String) -> Layout<'a> {
        self.trail = Some((name, address));
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
                    title { (self.title) " · Compact" }
                    link rel="stylesheet" href=(link("/asset/style.css"));
                    link rel="icon" type="image/svg+xml" href=(link("/asset/icon.svg"));
                    @if self.is_live {
                        script src=(link("/asset/live.js")) defer data-live=(link(&format!("/live?seen={}", self.dashboard.changes.count()))) {}
                    }
                }
                body {
                    a.skip href="#content" { "Skip to content" }
                    header.top {
                        a.brand href=(link("/")) { "Compact" }
                        (self.navigation())
                        span.state #live role="status" { }
                    }
                    main #content tabindex="-1" {
                        @if let Some((name, address)) = &self.trail {
                            nav.trail aria-label="Where this is" {
                                a href=(address) { "← " bdi { (name) } }
                            }
                        }
                        h1 { bdi { (self.title) } }
                        @if let Some(notice) = self.notice {
                            p.notice #notice role="status" { (notice) }
                        }
                        (body)
                    }
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
                @if self.dashboard.chats.is_some() { a href=(link("/chat")) { "Chat" } }
            }
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
