//! Asking models before the engine runs: what units are about, and the prose of the summary.
//!
//! The engine decides alone what it makes of the answers. They are archived beside the original, so
//! that a receipt can be proved again without asking anybody. A model that fails costs the quality
//! that it would have added, or, where the policy says so, the compaction; never the history.

#[cfg(test)]
mod tests;

use compact_core::engine::{self, MeaningVector};
use compact_core::event::{EventKind, EventScope, FailedModel, Substitute};
use compact_core::message::{Block, Conversation};
use compact_core::outline::Outline;
use compact_core::policy::{OnSummaryFailure, Prune};
use compact_core::prompt::{ModelProse, SummaryContent};
use compact_core::redact::RedactionCounts;
use compact_core::token::Tokens;
use serde::{Deserialize, Serialize};

use super::{ArchiveMode, Manager, MeasuredRequest};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;
use crate::port::summarizer::Summarizer;
use crate::summary_request::{self, ModelSummary, SummaryError, SummaryRequest};

/// What models said about a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAdvice {
    /// What the summary is made of.
    pub words: SummaryContent,
    /// What each unit is about.
    pub meaning: Option<Vec<MeaningVector>>,
}

/// Whether the engine is to run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AdviceVerdict {
    Go,
    /// The host goes on by itself, for this reason.
    LeaveToHost(String),
}

/// The share of a summary that prose is asked for, one in so many: the engine allows as much.
const PROSE_SHARE: u64 = 3;
/// No prose is longer than this, however large the summary may be.
const LONGEST_PROSE: Tokens = Tokens(2_000);

/// The most bytes of a unit that are embedded: what it is about is said at its beginning.
const EMBEDDED_BYTES: usize = 4_000;

impl Manager {
    /// Asks whoever is there to be asked. Fails only where the policy says that a compaction without
    /// a model's summary must not be.
    pub(super) async fn ask_models(
        &self,
        measured: &mut MeasuredRequest<'_>,
        scope: &EventScope,
    ) -> Result<AdviceVerdict, Error> {
        if measured.account.history <= measured.budget {
            return Ok(AdviceVerdict::Go);
        }
        self.emit(scope, EventKind::Started);
        self.embed_units(measured, scope).await;
        let Some(summarizer) = &self.summarizer else {
            return Ok(AdviceVerdict::Go);
        };
        match self.request_prose(&**summarizer, measured).await {
            Ok(None) => Ok(AdviceVerdict::Go),
            Ok(Some(told)) => self.accept_summary(measured, scope, told).await,
            Err(untold) => self.handle_summary_error(measured, scope, &untold).await,
        }
    }

    /// The prose for what this input's view leaves out; `None` when nothing is, or no view can be.
    async fn request_prose(
        &self,
        summarizer: &dyn Summarizer,
        measured: &MeasuredRequest<'_>,
    ) -> Result<Option<ModelSummary>, SummaryError> {
        let Ok(mut source) = engine::summary_source(&self.engine_input(measured)) else {
            // The engine will say why.
            return Ok(None);
        };
        if source.entries.is_empty() {
            return Ok(None);
        }
        let request = measured.request;
        source.host_rendering = request.host_rendering;
        let allowance = measured.summary_limit.unwrap_or(measured.budget);
        // A limit that nobody asked for leaves room for what somebody did.
        let extra = match (request.budget, measured.summary_limit) {
            (None, Some(limit)) => Tokens(limit.0 / 2),
            _ => Tokens(0),
        };
        let limit = Tokens((allowance + extra).min(measured.budget).0 / PROSE_SHARE);
        let limit = limit.min(LONGEST_PROSE);
        let question = SummaryRequest {
            extra,
            own_prompt: self.policy.summary_prompt.as_deref(),
            model: request.conversation.model.as_deref(),
            conversation: Some(summary_request::WireConversation {
                format: request.format,
                body: &request.original,
            }),
            ..SummaryRequest::new(source, self.policy.strategy, limit, self.window)
        };
        summary_request::request_summary(summarizer, &question)
            .await
            .map(Some)
    }

    /// Takes the prose; part of it only where our own words may stand in for the rest.
    async fn accept_summary(
        &self,
        measured: &mut MeasuredRequest<'_>,
        scope: &EventScope,
        told: ModelSummary,
    ) -> Result<AdviceVerdict, Error> {
        if let Some(untold) = &told.stopped {
            if self.policy.on_summary_failure != OnSummaryFailure::Deterministic {
                return self.handle_summary_error(measured, scope, untold).await;
            }
            self.emit_fallback(scope, untold, Substitute::Deterministic);
        }
        measured.advice.words = SummaryContent::Prose(self.redact_prose(told.prose));
        Ok(AdviceVerdict::Go)
    }

    /// What the policy says about a summarizer that failed.
    async fn handle_summary_error(
        &self,
        measured: &mut MeasuredRequest<'_>,
        scope: &EventScope,
        untold: &SummaryError,
    ) -> Result<AdviceVerdict, Error> {
        let (taken, words) = match self.policy.on_summary_failure {
            OnSummaryFailure::Deterministic => (Substitute::Deterministic, SummaryContent::Ledger),
            OnSummaryFailure::PruneOnly => (Substitute::PruneOnly, SummaryContent::Nothing),
            OnSummaryFailure::MinimalPrompt => (Substitute::MinimalPrompt, SummaryContent::Minimal),
            OnSummaryFailure::Host => {
                self.emit_fallback(scope, untold, Substitute::Host);
                return Ok(AdviceVerdict::LeaveToHost(untold.to_string()));
            }
            OnSummaryFailure::Fail => {
                let error = Error::Summary {
                    summarizer: self.summarizer_name(),
                    reason: untold.to_string(),
                };
                let told = format!("the summarizer failed: {}", untold.kind());
                self.note_failed_attempt(scope, measured, "failed", &told)
                    .await;
                return Err(error);
            }
        };
        self.emit_fallback(scope, untold, taken);
        measured.advice.words = words;
        Ok(AdviceVerdict::Go)
    }

    /// Emits who took the summarizer's place, and why.
    fn emit_fallback(&self, scope: &EventScope, untold: &SummaryError, fallback: Substitute) {
        let failed = EventKind::Fallback {
            failed: FailedModel::Summarizer(self.summarizer_name()),
            reason: untold.kind(),
            fallback,
        };
        self.emit(scope, failed);
    }

    fn summarizer_name(&self) -> String {
        let name = self.summarizer.as_ref().map(|s| s.describe().name);
        name.unwrap_or_default()
    }

    /// A model may repeat what it should not have been shown; what is archived is what was used.
    fn redact_prose(&self, mut prose: ModelProse) -> ModelProse {
        for part in &mut prose.parts {
            let mut text = self
                .redactor
                .redact(part, &mut RedactionCounts::new())
                .into_owned();
            if let ArchiveMode::Redacted(redactor) = &self.archive_mode {
                text = redactor
                    .redact(&text, &mut RedactionCounts::new())
                    .into_owned();
            }
            *part = text;
        }
        prose
    }

    /// Embeds what the policy wants compared; without an answer the engine goes by words.
    async fn embed_units(&self, measured: &mut MeasuredRequest<'_>, scope: &EventScope) {
        let Some(embedder) = self.embedder.as_ref() else {
            return;
        };
        if self.policy.prune != Prune::Semantic {
            return;
        }
        let texts = self.unit_texts(&measured.conversation);
        let reason = match embedder.embed(&texts).await {
            Ok(vectors) if vectors.len() == texts.len() => {
                measured.advice.meaning = Some(vectors.iter().map(|v| rounded(v)).collect());
                return;
            }
            Ok(vectors) => format!("{} vectors for {} texts", vectors.len(), texts.len()),
            Err(error) => error.kind(),
        };
        let failed = EventKind::Fallback {
            failed: FailedModel::Embedder(embedder.name()),
            reason,
            fallback: Substitute::Words,
        };
        self.emit(scope, failed);
    }

    /// The words of each unit of the outline, redacted.
    fn unit_texts(&self, conversation: &Conversation) -> Vec<String> {
        let text = |blocks: Vec<&Block>| {
            let parts = blocks.into_iter().flat_map(Block::text_parts);
            let text = parts
                .filter(|p| !p.is_empty())
                .collect::<Vec<_>>()
                .join("\n");
            let text = self
                .redactor
                .redact(&text, &mut RedactionCounts::new())
                .into_owned();
            let end = text.floor_char_boundary(EMBEDDED_BYTES);
            match text.get(..end) {
                // Some servers refuse an empty text.
                None | Some("") => "(nothing)".to_owned(),
                Some(opening) => opening.to_owned(),
            }
        };
        let outline = Outline::from_conversation(conversation);
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
    pub(super) async fn advice_of(&self, record: &CompactionRecord) -> Result<ModelAdvice, Error> {
        let (Some(archive), Some(pack)) = (&self.archive, record.advice_pack()) else {
            return Ok(ModelAdvice::default());
        };
        let bytes = archive.get(&pack).await?;
        serde_json::from_slice(&bytes).map_err(|source| Error::Record {
            receipt: record.receipt_id.clone(),
            source,
        })
    }
}

/// Only angles matter: a vector in whole steps of its largest number is a fraction of the size.
fn rounded(vector: &[f32]) -> MeaningVector {
    let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let step = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    vector.iter().map(|x| (x * step).round()).collect()
}
