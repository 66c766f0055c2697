//! What a session has established, fact by fact: who said it, and where.

use std::iter::repeat;

use compact::message::Ledger;
use compact::overview::{RuleStanding, rule_standings};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::Dashboard;
use crate::page::PageError;
use crate::page::layout::{Layout, section};
use crate::page::list::session_address;
use crate::text::{clip_text, count, encode, foreign};
use crate::visit::{Asked, Visit};

/// How many facts of a kind are shown, the newest first.
const SHOWN: usize = 60;

/// How many characters of a fact are shown.
const LONGEST_FACT: usize = 400;

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct LedgerQuery {
    name: String,
}

impl Asked for LedgerQuery {
    fn session(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Shows the ledger.
pub(crate) async fn show(visit: Visit<LedgerQuery>) -> Result<Markup, PageError> {
    let (dashboard, name) = (&*visit.dashboard, visit.asked.name.as_str());
    let receipt = dashboard.compact.carried_memory(name).await?.receipt;
    let memory = dashboard.compact.remember(&receipt).await?;
    let body = render_ledger(dashboard, &memory.ledger, &receipt);
    let layout = Layout::new(dashboard, "What it remembers")
        .live_since(visit.seen)
        .below("Sessions", dashboard.link("/"))
        .below(name, session_address(dashboard, name));
    Ok(layout.page(&body))
}

/// A fact as it is shown.
struct ShownFact {
    ordinal: u64,
    voice: String,
    text: String,
    standing: RuleStanding,
}

fn render_ledger(dashboard: &Dashboard, ledger: &Ledger, receipt: &str) -> Markup {
    let facts = serde_json::to_value(&ledger.facts).unwrap_or_default();
    let kinds = [
        ("rules", "Rules"),
        ("open", "Still to do"),
        ("decisions", "Decisions"),
        ("done", "Done"),
        ("made", "Made"),
        ("files", "Files"),
        ("runs", "Commands"),
        ("requests", "Requests"),
    ];
    html! {
        p.lead { "Summaries are written from these facts and never from the last summary. Each leads to the entry that it was said in." }
        @for (kind, title) in kinds {
            @let found = read_facts(&facts, kind, ledger);
            @if !found.is_empty() {
                (section(kind, &html! { (title) " " span.quiet { (count(found.len() as u64, "fact", "facts")) } }, &html! {
                    ol.facts-list { @for fact in found.iter().rev().take(SHOWN) { (render_fact(dashboard, receipt, fact)) } }
                    @if found.len() > SHOWN { p.quiet { "The newest " (SHOWN) "." } }
                }))
            }
        }
    }
}

/// Reads the facts of a kind. What was only quoted is no rule.
fn read_facts(facts: &Value, kind: &str, ledger: &Ledger) -> Vec<ShownFact> {
    let standings = match kind {
        "rules" => rule_standings(ledger),
        _ => Vec::new(),
    };
    let standings = standings.into_iter().chain(repeat(RuleStanding::Holds));
    let list = facts.get(kind).and_then(Value::as_array);
    let list = list.into_iter().flatten().zip(standings);
    let list = list.filter(|(_, standing)| *standing != RuleStanding::Quoted);
    let facts = list.filter_map(|(fact, standing)| {
        let text = fact.get("text").or_else(|| fact.get("path"))?.as_str()?;
        let voice = fact.get("voice").or_else(|| fact.get("act"));
        Some(ShownFact {
            ordinal: fact.get("ordinal")?.as_u64()?,
            voice: voice
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_lowercase(),
            text: text.to_owned(),
            standing,
        })
    });
    facts.collect()
}

fn render_fact(dashboard: &Dashboard, receipt: &str, fact: &ShownFact) -> Markup {
    let pointer = format!("{receipt}#{}", fact.ordinal);
    let address = dashboard.link(&format!("/entry?pointer={}", encode(&pointer)));
    let shown = clip_text(&fact.text, LONGEST_FACT);
    html! {
        li {
            p { @if fact.standing == RuleStanding::Revoked { s { (foreign(&shown)) } } @else { (foreign(&shown)) } }
            p.source {
                @if fact.standing == RuleStanding::Revoked { strong { "taken back later" } " · " }
                @if !fact.voice.is_empty() { (fact.voice) " · " }
                a href=(address) { "entry #" (fact.ordinal) }
            }
        }
    }
}
