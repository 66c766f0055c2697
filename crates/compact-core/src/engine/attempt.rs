//! Who speaks in the summary: the ledger, a model with the ledger behind it, or next to nobody.
//!
//! A model's words are worth their tokens only while the view shows about as many anchors with them
//! as without. They are offered a share of the summary, then less, then left out; so a summary by a
//! model is no worse than our own, however poor the model.

use crate::error::CompactError;
use crate::message::Entry;
use crate::plan::{Plan, UnitFate};
use crate::policy::KeepRecent;
use crate::prompt::{ModelProse, SummaryContent, SummarySource};
use crate::receipt::{ProseUse, ReceiptNote};
use crate::summarize::{self, RenderRequest, SummaryBody, SummaryNeighbours, prose};
use crate::token::{EstimatorExt, Tokens, Units};
use crate::verify::Retention;

use super::run::{CompactionRun, ViewDraft};

/// Shares of the summary that a model's words are offered, one in so many.
const SHARES: [u64; 3] = [3, 6, 12];

/// Anchors that may give way to prose: one in so many, and at least one. Prose tells what no list
/// of names can.
const GIVE: u64 = 50;

/// The one sentence of a minimal summary.
const MINIMAL: &str = include_str!("../../templates/minimal.txt");

/// What one attempt at a summary is made of.
#[derive(Clone, Copy)]
pub(super) enum SummaryAttempt<'p> {
    Ledger,
    /// A model's words in this share of the body, then the ledger.
    Prose(&'p ModelProse, u64),
    Minimal,
    Nothing,
}

impl SummaryAttempt<'_> {
    /// What this may cost beside the summary's own limit.
    pub(super) fn extra(self) -> Tokens {
        match self {
            SummaryAttempt::Prose(prose, _) => prose.extra,
            SummaryAttempt::Ledger | SummaryAttempt::Minimal | SummaryAttempt::Nothing => Tokens(0),
        }
    }
}

impl<'a> CompactionRun<'_, 'a> {
    /// The view with the words that the input asks for, verified and repaired.
    pub(super) fn summarize_plan(
        &self,
        plan: &Plan,
    ) -> Result<(ViewDraft, Retention), CompactError> {
        let prose = match self.input.words {
            SummaryContent::Ledger => return self.render_and_verify(plan, SummaryAttempt::Ledger),
            SummaryContent::Minimal => {
                return self.render_and_verify(plan, SummaryAttempt::Minimal);
            }
            SummaryContent::Nothing => {
                return self.render_and_verify(plan, SummaryAttempt::Nothing);
            }
            SummaryContent::Prose(prose) => prose,
        };
        let own = self.render_and_verify(plan, SummaryAttempt::Ledger)?;
        for share in SHARES {
            let (draft, retention) =
                self.render_and_verify(plan, SummaryAttempt::Prose(prose, share))?;
            let give = own.1.kept.div_ceil(GIVE);
            if draft.prose > Units(0) && retention.kept + give >= own.1.kept {
                return Ok((draft, retention));
            }
        }
        Ok(own)
    }

    /// The view with a body of at most this allowance.
    pub(super) fn render_attempt(
        &self,
        plan: &Plan,
        told: SummaryAttempt<'_>,
        allowance: Units,
    ) -> ViewDraft {
        let estimator = self.input.estimator;
        match told {
            SummaryAttempt::Ledger => self.draft(plan, self.render_ledger(plan, "", allowance)),
            SummaryAttempt::Nothing => self.draft(plan, SummaryBody::default()),
            SummaryAttempt::Minimal => {
                let text = MINIMAL.trim_end().to_owned();
                let cost = estimator.count_units(&text);
                let body = Some(SummaryBody { text, cost }).filter(|b| b.cost <= allowance);
                self.draft(plan, body.unwrap_or_default())
            }
            SummaryAttempt::Prose(prose, share) => {
                let limit = Units(allowance.0 / share);
                let Some(section) =
                    prose::quote_prose(&prose.author, &prose.parts, limit, estimator)
                else {
                    return self.draft(plan, self.render_ledger(plan, "", allowance));
                };
                let cost = estimator.count_units(&section);
                // A fence of its own, where the ledger needs none, costs something too.
                let rest = allowance - cost - Units(estimator.units_per_token() * 16);
                let body = self.render_ledger(plan, &section, rest);
                let body = prose::join_prose(&body.text, &section, estimator);
                ViewDraft {
                    prose: cost,
                    ..self.draft(plan, body)
                }
            }
        }
    }

    fn render_ledger(&self, plan: &Plan, prose: &str, budget: Units) -> SummaryBody {
        summarize::render_body(&RenderRequest {
            ledger: self.input.ledger,
            ranking: self.ranking(),
            style: self.input.policy.strategy,
            budget,
            estimator: self.input.estimator,
            company: self.summary_neighbours(),
            visible: &self.visible(plan),
            prose,
        })
    }

    /// What the summary stands beside.
    fn summary_neighbours(&self) -> SummaryNeighbours {
        let policy = self.input.policy;
        match (self.input.summary_limit, policy.keep_recent) {
            (Some(_), KeepRecent::Recent | KeepRecent::LastUserMessage) => SummaryNeighbours::Turns,
            _ => SummaryNeighbours::Alone,
        }
    }

    /// What leaves the view or is cut in it, for a model to tell.
    pub(super) fn summary_source(&self) -> Result<SummarySource<'a>, CompactError> {
        let plan = self.make_plan()?;
        let entries: &'a [Entry] = &self.input.conversation.entries;
        let gone = self.outline.units.iter().zip(&plan.fates);
        let gone =
            gone.filter(|(_, fate)| matches!(fate, UnitFate::Demoted | UnitFate::Clipped(_)));
        let places = gone.flat_map(|(unit, _)| unit.entries.clone());
        let first = self.outline.first_user();
        let goal = first.and_then(|unit| self.outline.units.get(unit));
        Ok(SummarySource {
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
    pub(super) fn summarizer(&self, draft: &ViewDraft) -> String {
        match self.input.words {
            SummaryContent::Prose(prose) if draft.prose > Units(0) => prose.author.clone(),
            SummaryContent::Prose(_) | SummaryContent::Ledger => "extractive".to_owned(),
            SummaryContent::Minimal => "minimal".to_owned(),
            SummaryContent::Nothing => "none".to_owned(),
        }
    }

    /// A model's part in the summary.
    pub(super) fn prose_use(&self, draft: &ViewDraft) -> Option<ProseUse> {
        let SummaryContent::Prose(prose) = self.input.words else {
            return None;
        };
        Some(ProseUse {
            template: prose.template.clone(),
            coverage: prose.coverage,
            prose_tokens: self.input.estimator.to_tokens(draft.prose),
        })
    }

    /// What a person should know about the words of this summary.
    pub(super) fn notes_on_words(&self, draft: &ViewDraft) -> Vec<ReceiptNote> {
        let SummaryContent::Prose(prose) = self.input.words else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        if draft.prose == Units(0) {
            notes.push(ReceiptNote::ProseLeftOut {
                author: prose.author.clone(),
            });
        }
        let coverage = prose.coverage;
        if coverage.chunks < coverage.of_chunks {
            notes.push(ReceiptNote::ProseOfPart {
                author: prose.author.clone(),
                shown: coverage.tokens,
                of: coverage.of_tokens,
            });
        }
        notes
    }
}
