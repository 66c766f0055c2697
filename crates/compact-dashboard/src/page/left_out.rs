//! What a view does not say any more, each with the way back: what its compaction took away, apart from what earlier ones
//! had taken, and from what it shows as a part of a longer path.

use compact::overview::{AnchorKind, LeftOutName, NameLoss};
use compact::store::CompactionRecord;
use maud::{Markup, html};

use crate::Dashboard;
use crate::page::layout::section;
use crate::text::{clip_text, count, encode, foreign, group_digits};

/// How many names are shown at once, and how many on demand.
const OPEN: usize = 24;
const SHOWN: usize = 600;
/// How many of those are shown that an earlier compaction left out.
const EARLIER_SHOWN: usize = 200;
/// How many characters of a rule are shown.
const RULE_CHARS: usize = 140;
/// How many characters of a receipt a pointer has.
const RECEIPT_CHARS: usize = 12;

/// Shows what mattered and is in the archive only.
pub(crate) fn render_left_out(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    left_out: &[LeftOutName],
) -> Markup {
    if record.receipt.origin().is_some() {
        return html! {};
    }
    let of = |loss: NameLoss| left_out.iter().filter(move |name| name.loss == loss);
    let now: Vec<&LeftOutName> = of(NameLoss::Now).collect();
    let before: Vec<&LeftOutName> = of(NameLoss::Before).collect();
    let list = NameList { dashboard, record };
    let body = html! {
        (list.render_now(&now))
        (list.render_before(&before))
        (render_in_paths(of(NameLoss::InLongerPath).count()))
        @if now.len() < left_out.len() {
            p.quiet { "The receipt counts all of these together: " (group_digits(left_out.len() as u64)) "." }
        }
    };
    section("left-out", &html! { "What the view no longer says" }, &body)
}

/// Says how many names are there after all.
fn render_in_paths(names: usize) -> Markup {
    html! {
        @if names > 0 {
            p { (count(names as u64, "name", "names")) " more " @if names == 1 { "stands" } @else { "stand" } " in the view as a part of a longer path." }
        }
    }
}

/// Names with the way to the entries that say them.
struct NameList<'a> {
    dashboard: &'a Dashboard,
    record: &'a CompactionRecord,
}

impl NameList<'_> {
    /// Shows what this compaction took away.
    fn render_now(&self, names: &[&LeftOutName]) -> Markup {
        let (first, rest) = names.split_at(names.len().min(OPEN));
        html! {
            @if names.is_empty() {
                p { "Nothing that mattered: every name, number, decision and rule that went in stands in the summary or in what was kept." }
            } @else {
                p { (count(names.len() as u64, "name", "names")) " of what went in "
                    @if names.len() == 1 { "is" } @else { "are" }
                    " in no summary and in nothing that was kept. They are in the archive: follow one to the entry that says it, "
                    "let your agent search for it (" code { "recall" } "), or go back before this compaction." }
                ul.names { @for name in first { (self.render_name(name)) } }
                @if !rest.is_empty() {
                    details #more-names {
                        summary { (count(rest.len() as u64, "more", "more")) }
                        (self.render_part(rest, SHOWN))
                    }
                }
            }
        }
    }

    /// Shows what was missing before.
    fn render_before(&self, names: &[&LeftOutName]) -> Markup {
        html! {
            @if !names.is_empty() {
                details #earlier-names {
                    summary { (count(names.len() as u64, "name", "names")) " that an earlier compaction had left out already" }
                    (self.render_part(names, EARLIER_SHOWN))
                }
            }
        }
    }

    /// Shows the first of many, says that there are others, and how to find them.
    fn render_part(&self, names: &[&LeftOutName], most: usize) -> Markup {
        let record = self.record;
        html! {
            ul.names { @for name in names.iter().take(most) { (self.render_name(name)) } }
            @if names.len() > most {
                p { "These are " (group_digits(most as u64)) " of " (group_digits(names.len() as u64)) ", the most needed first. Search for any other one:" }
                form.search role="search" aria-label="In this session" action=(self.dashboard.link("/")) {
                    input type="hidden" name="session" value=(record.session_id);
                    div.field { input type="search" name="q" aria-label="Search what was said in this session" autocomplete="off"; button type="submit" { "Search" } }
                }
            }
        }
    }

    fn render_name(&self, name: &LeftOutName) -> Markup {
        let receipt: String = self.record.receipt_id.chars().take(RECEIPT_CHARS).collect();
        let pointer = encode(&format!("{receipt}#{}", name.ordinal));
        let address = self.dashboard.link(&format!("/entry?pointer={pointer}"));
        let text = clip_text(&name.text, RULE_CHARS);
        html! {
            li { a href=(address) {
                @match name.kind {
                    AnchorKind::Name => (foreign(&text)),
                    AnchorKind::Rule => { span.tag { "rule" } " " (foreign(&text)) },
                    AnchorKind::RevokedRule => { span.tag { "rule, taken back later" } " " s { (foreign(&text)) } },
                }
            } }
        }
    }
}
