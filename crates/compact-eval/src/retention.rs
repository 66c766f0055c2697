//! Future-reference retention of every method, on every cut of every session.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use crate::baseline;
use crate::compaction::Engine;
use crate::dataset::Dataset;
use crate::method::Method;
use crate::metric::entity::{Entity, MinDigits};
use crate::metric::need::{Mention, Need, contexts, need};
use crate::metric::score::{Score, bound_share, share, strict_share};
use crate::metric::{Event, Session, Voice};
use crate::text::tokens;
use crate::{oracle, parallel};

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where sessions are cut.
    pub cuts: Cuts,
    /// The methods.
    pub methods: Vec<Method>,
    /// Cuts with a smaller budget do not count: no summary fits.
    pub least_budget: usize,
}

/// Where sessions are cut.
#[derive(Clone, Debug, PartialEq)]
pub enum Cuts {
    /// At shares of a session's tokens, each with budgets that are shares of the prefix.
    Shares {
        /// The cuts.
        at: Vec<f64>,
        /// The budgets.
        budgets: Vec<f64>,
    },
    /// Where the agent itself compacted, at the size of its own summary.
    Real,
}

/// One method at one cut and budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The session's file.
    pub file: PathBuf,
    /// Which session of the dataset.
    pub session: usize,
    /// The share of the session before the cut, or of events at a real compaction.
    pub cut: f64,
    /// The budget as a share of the prefix; `None` for the size of the real summary.
    pub budget: Option<f64>,
    /// The method.
    pub method: Method,
    /// Tokens before the cut.
    pub prefix: usize,
    /// Tokens allowed.
    pub allowed: usize,
    /// Tokens of the method's text; `None` where it failed.
    pub kept: Option<usize>,
    /// How many entities were needed, by the wide and the strict count.
    pub needed: (usize, usize),
    /// What it kept of them.
    pub score: Score,
}

impl Row {
    /// True when the text is larger than allowed.
    pub fn is_over(&self) -> bool {
        let is_bound = !matches!(self.method, Method::Real | Method::Whole);
        is_bound && self.kept.is_some_and(|kept| kept > self.allowed)
    }
}

/// Measures a dataset.
pub fn measure(dataset: &Dataset, options: &Options, engine: &Engine) -> Vec<Row> {
    let mut cuts: Vec<Cut<'_>> = Vec::new();
    for (i, (file, session)) in dataset.sessions.iter().enumerate() {
        let place = (i, file, session);
        match &options.cuts {
            Cuts::Shares { at, .. } => cuts.extend(at.iter().filter_map(|s| Cut::at(place, *s))),
            Cuts::Real => cuts.extend(Cut::real(place)),
        }
    }
    let rows = parallel::map(&cuts, |cut| cut.rows(options, engine, dataset.digits));
    rows.into_iter().flatten().collect()
}

/// A session cut in two.
struct Cut<'s> {
    place: (usize, &'s PathBuf, &'s Session),
    share: f64,
    before: Range<usize>,
    after: Range<usize>,
    /// The genuine summary between the two.
    summary: Option<String>,
}

/// A session of a dataset: its number, its file and itself.
type Place<'s> = (usize, &'s PathBuf, &'s Session);

/// The fewest entities that must be needed.
const FEWEST: usize = 3;
/// The smallest window whose real compaction counts.
const LEAST_WINDOW: usize = 4000;

impl<'s> Cut<'s> {
    fn at(place: Place<'s>, share: f64) -> Option<Cut<'s>> {
        let session = place.2;
        let (at, end) = (session.cut(share), session.events.len());
        (at + 1 < end).then_some(Cut {
            place,
            share,
            before: 0..at,
            after: at..end,
            summary: None,
        })
    }

    /// The genuine compactions: window, summary, next window.
    fn real(place: Place<'s>) -> Vec<Cut<'s>> {
        let events = &place.2.events;
        let boundary = |(_, e): &(usize, &Event)| e.voice == Voice::Boundary;
        let places = events.iter().enumerate().filter(boundary).map(|(i, _)| i);
        let places: Vec<usize> = places.chain([events.len()]).collect();
        let mut start = 0;
        let mut cuts = Vec::new();
        for pair in places.windows(2) {
            let &[at, end] = pair else { continue };
            let behind = events.get(at + 1..).unwrap_or_default();
            let summary = behind.iter().take_while(|e| e.voice == Voice::Summary);
            let summary: Vec<&str> = summary.map(|e| e.text.as_str()).collect();
            let next = at + 1 + summary.len();
            if !summary.is_empty() && next < end {
                cuts.push(Cut {
                    place,
                    share: at as f64 / events.len() as f64,
                    before: start..at,
                    after: next..end,
                    summary: Some(summary.join("\n")),
                });
            }
            start = at + 1;
        }
        cuts
    }

    fn rows(&self, options: &Options, engine: &Engine, digits: MinDigits) -> Vec<Row> {
        let session = self.place.2;
        let need = need(session, self.before.clone(), self.after.clone());
        let prefix = Prefix::of(session, self.before.clone(), self.summary.is_some());
        if !self.counts(&need, session) {
            return Vec::new();
        }
        let trial = Trial {
            cut: self,
            contexts: contexts(session, self.before.clone(), &need.strict),
            need,
            prefix,
            digits,
        };
        trial.rows(options, engine)
    }

    fn counts(&self, need: &Need<'_>, session: &Session) -> bool {
        match self.summary {
            None => need.all.len() >= FEWEST,
            Some(_) => {
                let window = session.tokens.get(self.before.clone()).unwrap_or_default();
                need.strict.len() >= FEWEST && window.iter().sum::<usize>() > LEAST_WINDOW
            }
        }
    }
}

/// What a method is given.
struct Prefix<'s> {
    events: Vec<Event>,
    entities: Vec<&'s [Entity]>,
    tokens: usize,
}

impl<'s> Prefix<'s> {
    /// Boundaries say nothing; summaries belong to the window only where compactions are real.
    fn of(session: &'s Session, range: Range<usize>, with_summaries: bool) -> Prefix<'s> {
        let mut prefix = Prefix {
            events: Vec::new(),
            entities: Vec::new(),
            tokens: 0,
        };
        let all = session
            .events
            .iter()
            .zip(&session.entities)
            .zip(&session.tokens);
        for ((event, entities), tokens) in all.take(range.end).skip(range.start) {
            let is_summary = event.voice == Voice::Summary;
            if event.voice == Voice::Boundary || (is_summary && !with_summaries) {
                continue;
            }
            prefix.events.push(event.clone());
            prefix.entities.push(entities);
            prefix.tokens += tokens;
        }
        prefix
    }
}

/// A cut with everything that its methods are judged by.
struct Trial<'c, 's> {
    cut: &'c Cut<'s>,
    need: Need<'s>,
    contexts: HashMap<&'s str, Vec<Mention>>,
    prefix: Prefix<'s>,
    digits: MinDigits,
}

impl Trial<'_, '_> {
    fn rows(&self, options: &Options, engine: &Engine) -> Vec<Row> {
        let budgets: Vec<(Option<f64>, f64)> = match (&options.cuts, &self.cut.summary) {
            (Cuts::Shares { budgets, .. }, _) => {
                let allowed = |share: f64| self.prefix.tokens as f64 * share;
                budgets.iter().map(|b| (Some(*b), allowed(*b))).collect()
            }
            (Cuts::Real, summary) => {
                vec![(None, summary.as_deref().map_or(0, tokens) as f64)]
            }
        };
        let mut rows = Vec::new();
        for (budget, allowed) in budgets {
            if allowed < options.least_budget as f64 {
                continue;
            }
            for method in &options.methods {
                rows.extend(self.row(*method, budget, allowed as usize, engine));
            }
        }
        rows
    }

    fn row(
        &self,
        method: Method,
        budget: Option<f64>,
        allowed: usize,
        engine: &Engine,
    ) -> Option<Row> {
        if method == Method::Real && self.cut.summary.is_none() {
            return None;
        }
        let made = self.text(method, allowed, engine);
        let text = made.as_deref().unwrap_or_default();
        let (session, file, _) = self.cut.place;
        Some(Row {
            file: file.clone(),
            session,
            cut: self.cut.share,
            budget,
            method,
            prefix: self.prefix.tokens,
            allowed,
            needed: (self.need.all.len(), self.need.strict.len()),
            score: Score {
                all: share(&self.need.all, text),
                strict: strict_share(&self.need.strict, text),
                bound: bound_share(&self.contexts, text),
            },
            kept: made.as_deref().map(tokens),
        })
    }

    /// What a method makes of the prefix; `None` when it fails.
    fn text(&self, method: Method, budget: usize, engine: &Engine) -> Option<String> {
        let Prefix {
            events, entities, ..
        } = &self.prefix;
        Some(match method {
            Method::Compact => engine.compact(events, budget).ok()?,
            Method::CompactLlm => engine.compact_told(events, budget).ok()?,
            Method::KeepLast => baseline::keep_last(baseline::texts(events), budget),
            Method::HeadTail => baseline::head_tail(events, budget),
            Method::TrimTools => baseline::trim_tools(events, budget),
            Method::EntityLedger => {
                baseline::identifier_list(events, entities, budget, self.digits)
            }
            Method::Real => self.cut.summary.clone()?,
            Method::Whole => baseline::whole(events),
            Method::Oracle => {
                oracle::pack(self.cut.place.2, &self.need.strict, &self.contexts, budget)
            }
        })
    }
}
