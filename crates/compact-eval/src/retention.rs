//! Future-reference retention of every method, on every cut of every session.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::entity::{ClassedEntity, MinDigits};

use crate::baseline;
use crate::compaction::EvalEngine;
use crate::dataset::Dataset;
use crate::method::Method;
use crate::metric::need::{EntityMention, FutureNeed, find_contexts, find_need};
use crate::metric::score::{RetentionScore, bound_share, kept_share, strict_share};
use crate::metric::{EventVoice, MetricEvent, MetricSession};
use crate::oracle;
use crate::text::count_tokens;

/// The methods, cuts and budgets to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct RetentionOptions {
    /// The points at which sessions are cut.
    pub cuts: CutPoints,
    /// The methods to compare.
    pub methods: Vec<Method>,
    /// Cuts with a smaller budget do not count: no summary fits.
    pub least_budget: usize,
}

/// Where sessions are cut.
#[derive(Clone, Debug, PartialEq)]
pub enum CutPoints {
    /// At shares of a session's tokens, each with budgets that are shares of the prefix.
    Shares {
        /// The cuts, as shares of the tokens.
        at: Vec<f64>,
        /// The budgets, as shares of what is compacted.
        budgets: Vec<f64>,
    },
    /// Where the agent itself compacted, at the size of its own summary.
    Real,
}

/// One method at one cut and budget.
#[derive(Clone, Debug, PartialEq)]
pub struct CutResult {
    /// The file of the session.
    pub file: PathBuf,
    /// Which session of the dataset.
    pub session: usize,
    /// The share of the session before the cut, or of events at a real compaction.
    pub cut: f64,
    /// The budget as a share of the prefix; `None` for the size of the real summary.
    pub budget: Option<f64>,
    /// The method that was measured.
    pub method: Method,
    /// Tokens before the cut.
    pub prefix: usize,
    /// The budget in tokens.
    pub allowed: usize,
    /// Tokens of the method's text; `None` where it failed.
    pub kept: Option<usize>,
    /// How many entities were needed, by the wide and the strict count.
    pub needed: (usize, usize),
    /// What it kept of them.
    pub score: RetentionScore,
}

impl CutResult {
    /// Returns whether the text is larger than allowed.
    pub fn is_over_budget(&self) -> bool {
        let is_bound = !matches!(self.method, Method::Real | Method::Whole);
        is_bound && self.kept.is_some_and(|kept| kept > self.allowed)
    }
}

/// Measures all methods on every session of a dataset.
pub fn measure_dataset(
    dataset: &Dataset,
    options: &RetentionOptions,
    engine: &EvalEngine,
) -> Vec<CutResult> {
    let mut cuts: Vec<SessionCut<'_>> = Vec::new();
    for (i, (file, session)) in dataset.sessions.iter().enumerate() {
        let place = (i, file, session);
        match &options.cuts {
            CutPoints::Shares { at, .. } => {
                cuts.extend(at.iter().filter_map(|s| SessionCut::at_share(place, *s)))
            }
            CutPoints::Real => cuts.extend(SessionCut::at_compactions(place)),
        }
    }
    let rows = map_on_all_cores(&cuts, |cut| cut.score_cut(options, engine, dataset.digits));
    rows.into_iter().flatten().collect()
}

/// A session cut in two.
struct SessionCut<'s> {
    place: (usize, &'s PathBuf, &'s MetricSession),
    share: f64,
    before: Range<usize>,
    after: Range<usize>,
    /// The genuine summary between the two.
    summary: Option<String>,
}

/// A session of a dataset: its number, its file and itself.
type DatasetSession<'s> = (usize, &'s PathBuf, &'s MetricSession);

/// The fewest entities that must be needed.
const FEWEST: usize = 3;
/// The smallest window whose real compaction counts.
const LEAST_WINDOW: usize = 4000;

impl<'s> SessionCut<'s> {
    fn at_share(place: DatasetSession<'s>, share: f64) -> Option<SessionCut<'s>> {
        let session = place.2;
        let (at, end) = (session.cut_index(share), session.events.len());
        (at + 1 < end).then_some(SessionCut {
            place,
            share,
            before: 0..at,
            after: at..end,
            summary: None,
        })
    }

    /// Returns the genuine compactions: window, summary, next window.
    fn at_compactions(place: DatasetSession<'s>) -> Vec<SessionCut<'s>> {
        let events = &place.2.events;
        let boundary = |(_, e): &(usize, &MetricEvent)| e.voice == EventVoice::Boundary;
        let places = events.iter().enumerate().filter(boundary).map(|(i, _)| i);
        let places: Vec<usize> = places.chain([events.len()]).collect();
        let mut start = 0;
        let mut cuts = Vec::new();
        for pair in places.windows(2) {
            let &[at, end] = pair else { continue };
            let behind = events.get(at + 1..).unwrap_or_default();
            let summary = behind.iter().take_while(|e| e.voice == EventVoice::Summary);
            let summary: Vec<&str> = summary.map(|e| e.text.as_str()).collect();
            let next = at + 1 + summary.len();
            if !summary.is_empty() && next < end {
                cuts.push(SessionCut {
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

    fn score_cut(
        &self,
        options: &RetentionOptions,
        engine: &EvalEngine,
        digits: MinDigits,
    ) -> Vec<CutResult> {
        let session = self.place.2;
        let need = find_need(session, self.before.clone(), self.after.clone());
        let prefix = CutPrefix::from_events(session, self.before.clone(), self.summary.is_some());
        if !self.is_usable(&need, session) {
            return Vec::new();
        }
        let trial = CutTrial {
            cut: self,
            contexts: find_contexts(session, self.before.clone(), &need.strict),
            need,
            prefix,
            digits,
        };
        trial.score_budgets(options, engine)
    }

    fn is_usable(&self, need: &FutureNeed<'_>, session: &MetricSession) -> bool {
        match self.summary {
            None => need.all.len() >= FEWEST,
            Some(_) => {
                let window = session.tokens.get(self.before.clone()).unwrap_or_default();
                need.strict.len() >= FEWEST && window.iter().sum::<usize>() > LEAST_WINDOW
            }
        }
    }
}

/// The part of a session before a cut, as a method gets it.
struct CutPrefix<'s> {
    events: Vec<MetricEvent>,
    entities: Vec<&'s [ClassedEntity]>,
    tokens: usize,
}

impl<'s> CutPrefix<'s> {
    /// Boundaries say nothing; summaries belong to the window only where compactions are real.
    fn from_events(
        session: &'s MetricSession,
        range: Range<usize>,
        with_summaries: bool,
    ) -> CutPrefix<'s> {
        let mut prefix = CutPrefix {
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
            let is_summary = event.voice == EventVoice::Summary;
            if event.voice == EventVoice::Boundary || (is_summary && !with_summaries) {
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
struct CutTrial<'c, 's> {
    cut: &'c SessionCut<'s>,
    need: FutureNeed<'s>,
    contexts: HashMap<&'s str, Vec<EntityMention>>,
    prefix: CutPrefix<'s>,
    digits: MinDigits,
}

impl CutTrial<'_, '_> {
    fn score_budgets(&self, options: &RetentionOptions, engine: &EvalEngine) -> Vec<CutResult> {
        let budgets: Vec<(Option<f64>, f64)> = match (&options.cuts, &self.cut.summary) {
            (CutPoints::Shares { budgets, .. }, _) => {
                let allowed = |share: f64| self.prefix.tokens as f64 * share;
                budgets.iter().map(|b| (Some(*b), allowed(*b))).collect()
            }
            (CutPoints::Real, summary) => {
                vec![(None, summary.as_deref().map_or(0, count_tokens) as f64)]
            }
        };
        let mut rows = Vec::new();
        for (budget, allowed) in budgets {
            if allowed < options.least_budget as f64 {
                continue;
            }
            for method in &options.methods {
                rows.extend(self.score_method(*method, budget, allowed as usize, engine));
            }
        }
        rows
    }

    fn score_method(
        &self,
        method: Method,
        budget: Option<f64>,
        allowed: usize,
        engine: &EvalEngine,
    ) -> Option<CutResult> {
        if method == Method::Real && self.cut.summary.is_none() {
            return None;
        }
        let made = self.run_method(method, allowed, engine);
        let text = made.as_deref().unwrap_or_default();
        let (session, file, _) = self.cut.place;
        Some(CutResult {
            file: file.clone(),
            session,
            cut: self.cut.share,
            budget,
            method,
            prefix: self.prefix.tokens,
            allowed,
            needed: (self.need.all.len(), self.need.strict.len()),
            score: RetentionScore {
                all: kept_share(&self.need.all, text),
                strict: strict_share(&self.need.strict, text),
                bound: bound_share(&self.contexts, text),
            },
            kept: made.as_deref().map(count_tokens),
        })
    }

    /// Returns what a method makes of the prefix; `None` when it fails.
    fn run_method(&self, method: Method, budget: usize, engine: &EvalEngine) -> Option<String> {
        let CutPrefix {
            events, entities, ..
        } = &self.prefix;
        Some(match method {
            Method::Compact => engine.compact(events, budget).ok()?,
            Method::CompactLlm => engine.compact_with_prose(events, budget).ok()?,
            Method::KeepLast => baseline::keep_last(baseline::event_texts(events), budget),
            Method::HeadTail => baseline::head_tail(events, budget),
            Method::TrimTools => baseline::trim_tools(events, budget),
            Method::EntityLedger => {
                baseline::identifier_list(events, entities, budget, self.digits)
            }
            Method::Real => self.cut.summary.clone()?,
            Method::Whole => baseline::keep_all(events),
            Method::Oracle => {
                oracle::pack_excerpts(self.cut.place.2, &self.need.strict, &self.contexts, budget)
            }
        })
    }
}
