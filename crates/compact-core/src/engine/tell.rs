//! Who speaks in the summary: the ledger, a model with the ledger behind it, or next to nobody.
//!
//! A model's words are worth their tokens only while the view shows about as many anchors with them
//! as without. They are offered a share of the summary, then less, then left out; so a summary by a
//! model is no worse than our own, however poor the model.

use crate::error::CompactError;
use crate::message::Entry;
use crate::plan::{Fate, Plan};
use crate::policy::KeepRecent;
use crate::prompt::{Prose, Source, Words};
use crate::receipt::ProseUse;
use crate::summarize::{self, Company, Request, Summary, prose};
use crate::token::{EstimatorExt, Tokens, Units};
use crate::verify::Retention;

use super::run::{Draft, Run};

/// Shares of the summary that a model's words are offered, one in so many.
const SHARES: [u64; 3] = [3, 6, 12];

/// Anchors that may give way to prose: one in so many, and at least one. Prose tells what no list
/// of names can.
const GIVE: u64 = 50;

/// The one sentence of a minimal summary.
const MINIMAL: &str = include_str!("../../templates/minimal.txt");

/// What one attempt at a summary is made of.
#[derive(Clone, Copy)]
pub(super) enum Told<'p> {
    Ledger,
    /// A model's words in this share of the body, then the ledger.
    Prose(&'p Prose, u64),
    Minimal,
    Nothing,
}

impl Told<'_> {
    /// What this may cost beside the summary's own limit.
    pub(super) fn extra(self) -> Tokens {
        match self {
            Told::Prose(prose, _) => prose.extra,
            Told::Ledger | Told::Minimal | Told::Nothing => Tokens(0),
        }
    }
}

impl<'a> Run<'_, 'a> {
    /// The view with the words that the input asks for, verified and repaired.
    pub(super) fn told(&self, plan: &Plan) -> Result<(Draft, Retention), CompactError> {
        let prose = match self.input.words {
            Words::Ledger => return self.proved(plan, Told::Ledger),
            Words::Minimal => return self.proved(plan, Told::Minimal),
            Words::Nothing => return self.proved(plan, Told::Nothing),
            Words::Prose(prose) => prose,
        };
        let own = self.proved(plan, Told::Ledger)?;
        for share in SHARES {
            let (draft, retention) = self.proved(plan, Told::Prose(prose, share))?;
            let give = own.1.kept.div_ceil(GIVE);
            if draft.prose > Units(0) && retention.kept + give >= own.1.kept {
                return Ok((draft, retention));
            }
        }
        Ok(own)
    }

    /// The view with a body of at most this allowance.
    pub(super) fn render(&self, plan: &Plan, told: Told<'_>, allowance: Units) -> Draft {
        let estimator = self.input.estimator;
        match told {
            Told::Ledger => self.draft(plan, self.rendered(plan, "", allowance)),
            Told::Nothing => self.draft(plan, Summary::default()),
            Told::Minimal => {
                let text = MINIMAL.trim_end().to_owned();
                let cost = estimator.units(&text);
                let body = Some(Summary { text, cost }).filter(|b| b.cost <= allowance);
                self.draft(plan, body.unwrap_or_default())
            }
            Told::Prose(prose, share) => {
                let limit = Units(allowance.0 / share);
                let Some(section) = prose::quoted(prose, limit, estimator) else {
                    return self.draft(plan, self.rendered(plan, "", allowance));
                };
                let cost = estimator.units(&section);
                // A fence of its own, where the ledger needs none, costs something too.
                let rest = allowance - cost - Units(estimator.units_per_token() * 16);
                let body = self.rendered(plan, &section, rest);
                let body = prose::joined(&body.text, &section, estimator);
                Draft {
                    prose: cost,
                    ..self.draft(plan, body)
                }
            }
        }
    }

    fn rendered(&self, plan: &Plan, prose: &str, budget: Units) -> Summary {
        summarize::render(&Request {
            ledger: self.input.ledger,
            ranking: self.ranking(),
            style: self.input.policy.strategy,
            budget,
            estimator: self.input.estimator,
            company: self.company(),
            visible: &self.visible(plan),
            prose,
        })
    }

    /// What the summary stands beside.
    fn company(&self) -> Company {
        let policy = self.input.policy;
        match (self.input.summary_limit, policy.keep_recent) {
            (Some(_), KeepRecent::Recent | KeepRecent::LastUserMessage) => Company::Turns,
            _ => Company::Alone,
        }
    }

    /// What leaves the view or is cut in it, for a model to tell.
    pub(super) fn remainder(&self) -> Result<Source<'a>, CompactError> {
        let plan = self.plan()?;
        let entries: &'a [Entry] = &self.input.conversation.entries;
        let gone = self.outline.units.iter().zip(&plan.fates);
        let gone = gone.filter(|(_, fate)| matches!(fate, Fate::Demoted | Fate::Clipped(_)));
        let places = gone.flat_map(|(unit, _)| unit.entries.clone());
        let first = self.outline.first_user();
        let goal = first.and_then(|unit| self.outline.units.get(unit));
        Ok(Source {
            entries: places
                .filter_map(|at| Some((*self.ordinals.get(at)?, entries.get(at)?)))
                .collect(),
            told: None,
            goal: goal.and_then(|unit| entries.get(unit.entries.start)),
            note: self.input.note,
            redactor: self.input.redactor,
            estimator: self.input.estimator,
        })
    }

    /// Who wrote the summary, as the receipt names them.
    pub(super) fn summarizer(&self, draft: &Draft) -> String {
        match self.input.words {
            Words::Prose(prose) if draft.prose > Units(0) => prose.author.clone(),
            Words::Prose(_) | Words::Ledger => "extractive".to_owned(),
            Words::Minimal => "minimal".to_owned(),
            Words::Nothing => "none".to_owned(),
        }
    }

    /// A model's part in the summary.
    pub(super) fn prose_use(&self, draft: &Draft) -> Option<ProseUse> {
        let Words::Prose(prose) = self.input.words else {
            return None;
        };
        Some(ProseUse {
            template: prose.template.clone(),
            coverage: prose.coverage,
            prose_tokens: self.input.estimator.tokens(draft.prose),
        })
    }

    /// What a person should know about the words of this summary.
    pub(super) fn notes_on_words(&self, draft: &Draft) -> Vec<String> {
        let Words::Prose(prose) = self.input.words else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        if draft.prose == Units(0) {
            notes.push(format!(
                "the words of {} were left out: with them the view would have shown fewer facts",
                prose.author
            ));
        }
        let coverage = prose.coverage;
        if coverage.chunks < coverage.of_chunks {
            notes.push(format!(
                "{} was shown {} of {} tokens that left the view; the ledger covers the rest",
                prose.author, coverage.tokens, coverage.of_tokens
            ));
        }
        notes
    }
}
