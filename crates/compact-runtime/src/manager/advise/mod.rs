//! Asking models before the engine runs: what units are about, and the prose of the summary.
//!
//! The engine decides alone what it makes of the answers. They are archived beside the original, so
//! that a receipt can be proved again without asking anybody. A model that fails costs the quality
//! that it would have added, or, where the policy says so, the compaction; never the history.

#[cfg(test)]
mod tests;

use compact_core::engine;
use compact_core::event::{EventKind, Scope};
use compact_core::message::{Block, Conversation};
use compact_core::outline::Outline;
use compact_core::policy::{OnSummaryFailure, Prune};
use compact_core::prompt::{Prose, Words};
use compact_core::prune::meaning::Vector;
use compact_core::redact::Counts;
use compact_core::token::Tokens;
use serde::{Deserialize, Serialize};

use super::{Manager, Measured, Storing, now};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;
use crate::port::summarizer::Summarizer;
use crate::tell::{self, Telling, Told, Untold};

/// What models said about a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// What the summary is made of.
    pub words: Words,
    /// What each unit is about.
    pub meaning: Option<Vec<Vector>>,
}

/// Whether the engine is to run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Advised {
    Go,
    /// The host goes on by itself, for this reason.
    Leave(String),
}

/// The share of a summary that prose is asked for, one in so many: the engine allows as much.
const SHARE: u64 = 3;
/// No prose is longer than this, however large the summary may be.
const LONGEST: Tokens = Tokens(2_000);

/// The most bytes of a unit that are embedded: what it is about is said at its beginning.
const LOOK: usize = 4_000;

impl Manager {
    /// Asks whoever is there to be asked. Fails only where the policy says that a compaction without
    /// a model's summary must not be.
    pub(super) async fn advise(
        &self,
        measured: &mut Measured<'_>,
        scope: &Scope,
    ) -> Result<Advised, Error> {
        if measured.account.history <= measured.budget {
            return Ok(Advised::Go);
        }
        self.emit(scope.event(EventKind::Started, &now()));
        self.embed(measured, scope).await;
        let Some(summarizer) = &self.summarizer else {
            return Ok(Advised::Go);
        };
        match self.prose(&**summarizer, measured).await {
            Ok(None) => Ok(Advised::Go),
            Ok(Some(told)) => self.told(measured, scope, told).await,
            Err(untold) => self.untold(measured, scope, &untold).await,
        }
    }

    /// The prose for what this input's view leaves out; `None` when nothing is, or no view can be.
    async fn prose(
        &self,
        summarizer: &dyn Summarizer,
        measured: &Measured<'_>,
    ) -> Result<Option<Told>, Untold> {
        let Ok(mut source) = engine::remainder(&self.input(measured)) else {
            // The engine will say why.
            return Ok(None);
        };
        if source.entries.is_empty() {
            return Ok(None);
        }
        let request = measured.request;
        source.told = request.told;
        let allowance = measured.summary_limit.unwrap_or(measured.budget);
        // A limit that nobody asked for leaves room for what somebody did.
        let extra = match (request.budget, measured.summary_limit) {
            (None, Some(limit)) => Tokens(limit.0 / 2),
            _ => Tokens(0),
        };
        let telling = Telling {
            source,
            style: self.policy.strategy,
            limit: Tokens((allowance + extra).min(measured.budget).0 / SHARE).min(LONGEST),
            extra,
            model: request.conversation.model.as_deref(),
            window: self.window,
            conversation: Some(tell::Conversation {
                format: request.format,
                body: &request.original,
            }),
        };
        tell::tell(summarizer, &telling).await.map(Some)
    }

    /// Takes the prose; part of it only where our own words may stand in for the rest.
    async fn told(
        &self,
        measured: &mut Measured<'_>,
        scope: &Scope,
        told: Told,
    ) -> Result<Advised, Error> {
        if let Some(untold) = &told.stopped {
            if self.policy.on_summary_failure != OnSummaryFailure::Deterministic {
                return self.untold(measured, scope, untold).await;
            }
            self.fell_back(scope, untold, "deterministic");
        }
        measured.advice.words = Words::Prose(self.redacted(told.prose));
        Ok(Advised::Go)
    }

    /// What the policy says about a summarizer that failed (C-10).
    async fn untold(
        &self,
        measured: &mut Measured<'_>,
        scope: &Scope,
        untold: &Untold,
    ) -> Result<Advised, Error> {
        let (name, words) = match self.policy.on_summary_failure {
            OnSummaryFailure::Deterministic => ("deterministic", Words::Ledger),
            OnSummaryFailure::PruneOnly => ("prune_only", Words::Nothing),
            OnSummaryFailure::MinimalPrompt => ("minimal_prompt", Words::Minimal),
            OnSummaryFailure::Host => {
                self.fell_back(scope, untold, "host");
                return Ok(Advised::Leave(untold.to_string()));
            }
            OnSummaryFailure::Fail => {
                let error = Error::Summary {
                    summarizer: self.summarizer_name(),
                    reason: untold.to_string(),
                };
                let told = format!("the summarizer failed: {}", untold.kind());
                self.failed(scope, measured, &told).await;
                return Err(error);
            }
        };
        self.fell_back(scope, untold, name);
        measured.advice.words = words;
        Ok(Advised::Go)
    }

    /// A truthful word about who took the summarizer's place, and why.
    fn fell_back(&self, scope: &Scope, untold: &Untold, taken: &str) {
        self.emit(
            scope
                .event(EventKind::Fallback, &now())
                .with("summarizer", self.summarizer_name())
                .with("reason", untold.kind())
                .with("fallback", taken),
        );
    }

    fn summarizer_name(&self) -> String {
        let name = self.summarizer.as_ref().map(|s| s.about().name);
        name.unwrap_or_default()
    }

    /// A model may repeat what it should not have been shown; what is archived is what was used.
    fn redacted(&self, mut prose: Prose) -> Prose {
        for part in &mut prose.parts {
            let mut text = self.redactor.redact(part, &mut Counts::new()).into_owned();
            if let Storing::Redacted(redactor) = &self.storing {
                text = redactor.redact(&text, &mut Counts::new()).into_owned();
            }
            *part = text;
        }
        prose
    }

    /// Embeds what the policy wants compared; without an answer the engine goes by words.
    async fn embed(&self, measured: &mut Measured<'_>, scope: &Scope) {
        let Some(embedder) = self.embedder.as_ref() else {
            return;
        };
        if self.policy.prune != Prune::Semantic {
            return;
        }
        let texts = self.unit_texts(&measured.conversation);
        match embedder.embed(&texts).await {
            Ok(vectors) if vectors.len() == texts.len() => {
                measured.advice.meaning = Some(vectors.iter().map(|v| rounded(v)).collect());
            }
            Ok(vectors) => self.unembedded(
                scope,
                &format!("{} vectors for {} texts", vectors.len(), texts.len()),
            ),
            Err(error) => self.unembedded(scope, &error.kind()),
        }
    }

    fn unembedded(&self, scope: &Scope, reason: &str) {
        let name = self.embedder.as_ref().map(|e| e.name());
        self.emit(
            scope
                .event(EventKind::Fallback, &now())
                .with("embedder", name)
                .with("reason", reason)
                .with("fallback", "words"),
        );
    }

    /// The words of each unit of the outline, redacted.
    fn unit_texts(&self, conversation: &Conversation) -> Vec<String> {
        let text = |blocks: Vec<&Block>| {
            let parts = blocks.into_iter().flat_map(Block::text_parts);
            let text = parts
                .filter(|p| !p.is_empty())
                .collect::<Vec<_>>()
                .join("\n");
            let text = self.redactor.redact(&text, &mut Counts::new()).into_owned();
            let end = text.floor_char_boundary(LOOK);
            match text.get(..end) {
                // Some servers refuse an empty text.
                None | Some("") => "(nothing)".to_owned(),
                Some(opening) => opening.to_owned(),
            }
        };
        let outline = Outline::of(conversation);
        let units = outline.units.iter();
        let entries = units.map(|u| conversation.entries.get(u.entries.clone()));
        entries
            .map(|e| {
                text(
                    e.unwrap_or_default()
                        .iter()
                        .flat_map(|e| &e.blocks)
                        .collect(),
                )
            })
            .collect()
    }

    /// What models said when this record was made.
    pub(super) async fn advice_of(&self, record: &CompactionRecord) -> Result<Advice, Error> {
        let (Some(archive), Some(pack)) = (&self.archive, record.advice_pack()) else {
            return Ok(Advice::default());
        };
        let bytes = archive.get(&pack).await?;
        serde_json::from_slice(&bytes).map_err(|source| Error::Record {
            receipt: record.receipt_id.clone(),
            source,
        })
    }
}

/// Only angles matter: a vector in whole steps of its largest number is a fraction of the size.
fn rounded(vector: &[f32]) -> Vector {
    let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let step = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    vector.iter().map(|x| (x * step).round()).collect()
}
