//! What happened: one variant for each kind of event, with the numbers of that kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Severity;
use super::hook::HookReport;
use super::run::RunReport;
use crate::redact::RedactionBoundary;
use crate::reset::ResetEvent;
use crate::token::{TokenAccount, Tokens};
use crate::trigger::Verdict;

/// What happened. Texts are names and reasons, never a conversation's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum EventKind {
    /// The context was counted.
    #[serde(rename = "compact.token_estimate")]
    TokenEstimate {
        /// The parts, where a compaction follows.
        #[serde(flatten)]
        tokens: Option<CategoryTokens>,
    },
    /// A verdict was reached.
    #[serde(rename = "compact.trigger_decision")]
    TriggerDecision {
        /// What to do.
        verdict: Verdict,
        /// Why, in words.
        reason: String,
        /// Tokens over window.
        pressure: f64,
    },
    /// A summary was written.
    #[serde(rename = "compact.summary_created")]
    SummaryCreated {
        /// N of the rolling summary.
        version: u32,
        /// Who wrote it.
        summarizer: String,
        /// Anchors that the view shows, of those that it should; unknown when there was none.
        retention: Option<f64>,
    },
    /// Entries left the view.
    #[serde(rename = "compact.pruned_messages")]
    PrunedMessages,
    /// A policy decided what stays.
    #[serde(rename = "compact.policy_applied")]
    PolicyApplied {
        /// How far down the ladder the plan went.
        rung: String,
    },
    /// A compaction began.
    #[serde(rename = "compact.started")]
    Started,
    /// A compaction ended with a new view.
    #[serde(rename = "compact.completed")]
    Completed {
        /// History tokens before.
        tokens_before: Tokens,
        /// History tokens after.
        tokens_after: Tokens,
        /// Tokens by category before.
        before: CategoryTokens,
        /// Tokens by category after.
        after: CategoryTokens,
        /// Anchors that the view shows, of those that it should; unknown when there was none.
        retention: Option<f64>,
        /// Milliseconds from its start to its record.
        duration_ms: f64,
    },
    /// A compaction ended without one; nothing changed.
    #[serde(rename = "compact.failed")]
    Failed {
        /// Why.
        error: String,
    },
    /// A model failed and another took its place.
    #[serde(rename = "compact.fallback")]
    Fallback {
        /// Which model.
        #[serde(flatten)]
        failed: FailedModel,
        /// The kind of its failure.
        reason: String,
        /// Who took its place.
        fallback: Substitute,
    },
    /// The original is in the archive.
    #[serde(rename = "compact.archived")]
    Archived {
        /// Its pack.
        pack: String,
        /// What that takes in the store.
        stored_bytes: u64,
    },
    /// Something archived was asked for.
    #[serde(rename = "compact.recalled")]
    Recalled {
        /// Milliseconds that it took.
        duration_ms: f64,
        /// How much was found.
        #[serde(flatten)]
        found: RecallCounts,
    },
    /// A call ended, such as `before_model_call`. The other events of the call carry the same
    /// `span_id`.
    #[serde(rename = "compact.call_ended")]
    CallEnded {
        /// Which call.
        call: String,
        /// How it ended.
        outcome: CallOutcome,
        /// Milliseconds that it took.
        duration_ms: f64,
    },
    /// An original was not archived because there is no archive.
    #[serde(rename = "compact.not_archived")]
    NotArchived,
    /// Malformed tool messages were left out of a view.
    #[serde(rename = "compact.repaired")]
    Repaired,
    /// A compaction was due and waits for the next call: the newest step has malformed tool messages.
    #[serde(rename = "compact.skipped")]
    Skipped {
        /// So many.
        malformed: u64,
    },
    /// A gateway sent a request as it came, because something of ours failed.
    #[serde(rename = "compact.failed_open")]
    FailedOpen {
        /// What failed, in a word.
        reason: String,
        /// The same in whole words, where there is more to say.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// A gateway told a client that its prompt cost more than its provider reported, as its user asked for.
    #[serde(rename = "compact.client_nudged")]
    ClientNudged {
        /// What the provider reported.
        reported_tokens: Tokens,
        /// What the client was told.
        shown_tokens: Tokens,
    },
    /// What was said last did not fit the window and was cut.
    #[serde(rename = "compact.newest_cut")]
    NewestCut {
        /// So many entries of it.
        entries: u64,
    },
    /// Redaction is off.
    #[serde(rename = "compact.redaction_disabled")]
    RedactionDisabled {
        /// Where.
        boundary: RedactionBoundary,
    },
    /// A transcript or an artifact of a reset could not be written or read.
    #[serde(rename = "compact.transcript_failed")]
    TranscriptFailed {
        /// Why.
        error: String,
    },
    /// A compaction began beside the session.
    #[serde(rename = "compact.scheduled")]
    Scheduled,
    /// A view that was made beside the session took its place.
    #[serde(rename = "compact.swapped")]
    Swapped {
        /// Entries that came meanwhile and stand behind it.
        appended: u64,
    },
    /// A view that was made beside the session came too late and was thrown away.
    #[serde(rename = "compact.discarded")]
    Discarded {
        /// Why.
        reason: String,
        /// How long the session waited for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_seconds: Option<u64>,
    },
    /// A provider refused a prompt because of its size.
    #[serde(rename = "compact.overflowed")]
    Overflowed {
        /// What the prompt costs, where the provider said it.
        tokens: Option<Tokens>,
        /// What the model takes, where the provider said it.
        limit: Option<Tokens>,
        /// What is done about it.
        answer: OverflowAnswer,
    },
    /// The window will be full in a few calls.
    #[serde(rename = "compact.forecast")]
    Forecast {
        /// In so many.
        calls_left: u64,
        /// What a call adds.
        tokens_per_call: Tokens,
        /// Whether a call adds more than a fresh view leaves free.
        outruns_budget: bool,
    },
    /// A provider reported its usage.
    #[serde(rename = "compact.usage")]
    Usage(UsageReport),
    /// A provider reported no usage.
    #[serde(rename = "compact.usage_missing")]
    UsageMissing(UsageReport),
    /// Usage is counted from zero, because the context is a new one.
    #[serde(rename = "compact.usage_reset")]
    UsageReset,
    /// A request found less in the provider's cache than the one before it had left there.
    #[serde(rename = "compact.cache_missed")]
    CacheMissed(CacheMiss),
    /// A reset began or ended. Seed 001 has a `type` for it, which is its name here too.
    #[serde(untagged)]
    Reset(ResetEvent),
    /// Something happened in a run.
    #[serde(untagged)]
    Run(RunReport),
    /// A hook did something.
    #[serde(untagged)]
    Hook(HookReport),
}

/// Tokens by category; memory, user input and tool results are parts of the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryTokens {
    /// Leading system and developer entries.
    pub system: Tokens,
    /// Tool schemas.
    pub tools: Tokens,
    /// The rewritable history.
    pub history: Tokens,
    /// Summaries.
    pub memory: Tokens,
    /// The user's latest message; not counted after a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_input: Option<Tokens>,
    /// Tool results; not counted after a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<Tokens>,
}

/// A model that failed, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailedModel {
    /// One that writes summaries.
    Summarizer(String),
    /// One that compares meanings.
    Embedder(String),
}

/// Who takes the place of a model that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Substitute {
    /// The summary that needs no model.
    Deterministic,
    /// Nobody: entries are left out without a summary.
    PruneOnly,
    /// A few words that the work goes on.
    MinimalPrompt,
    /// The host, which goes on by itself.
    Host,
    /// Words in common, instead of meanings.
    Words,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// With a new view.
    Compacted,
    /// Without one.
    Unchanged,
    /// With an error.
    Failed,
}

/// What is done about a prompt that a provider refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverflowAnswer {
    /// A smaller view is made.
    Smaller,
    /// Nothing: the smaller one was refused too.
    GivenUp,
}

/// How much a recall found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RecallCounts {
    /// What a search found.
    Search {
        /// Entries.
        hits: u64,
        /// Terms that were looked for.
        terms: u64,
        /// How well the best answers.
        best_score: Option<f64>,
    },
    /// What a pointer led to.
    Expansion {
        /// Entries.
        entries: u64,
    },
}

/// What a provider reported: of the last request, and in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// Fresh prompt tokens of the last request.
    pub turn_input: u64,
    /// Its answer.
    pub turn_output: u64,
    /// What it read from a cache.
    pub turn_cache_read: u64,
    /// Fresh prompt tokens in all.
    pub input_tokens: u64,
    /// Answers in all.
    pub output_tokens: u64,
    /// Tokens read from a cache in all.
    pub cache_read_tokens: u64,
    /// Tokens written to a cache in all.
    pub cache_creation_tokens: u64,
    /// What the last request wrote to a cache.
    pub turn_cache_creation: u64,
    /// What the last request cost in USD, where the model's prices are known.
    pub turn_cost_usd: Option<f64>,
    /// Whether pressure is tracked.
    pub tracking: bool,
    /// Tokens over window.
    pub pressure: f64,
}

/// What a provider's cache did not have, and why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheMiss {
    /// Tokens of the request before, which the cache should have held.
    pub expected_tokens: Tokens,
    /// What was read from it.
    pub read_tokens: Tokens,
    /// Seconds between the two requests.
    pub idle_seconds: u64,
    /// Who is behind it.
    pub origin: MissOrigin,
    /// The first byte that differs, where the prompt was changed.
    #[serde(flatten)]
    pub change: Option<PromptChange>,
    /// What the request cost more than it would have, where the model's prices are known.
    pub extra_usd: Option<f64>,
}

/// Who is behind a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissOrigin {
    /// Nobody asked for longer than the cache keeps a prompt.
    Expired,
    /// The agent sent other words than before.
    Agent,
    /// A compaction replaced the history.
    Compaction,
    /// The provider: the prompt goes on from the one before, and was not found.
    Provider,
}

/// Where a prompt begins to differ from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptChange {
    /// The part of the prompt.
    pub part: PromptPart,
    /// Which message, from 1, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<u64>,
    /// The byte within the part, from 0.
    pub at_byte: u64,
}

/// A part of a prompt, in the order in which providers cache them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    /// The tools that are offered.
    Tools,
    /// The instructions.
    Instructions,
    /// A message.
    Message,
}

impl EventKind {
    /// Its name in the JSON, such as `compact.failed`.
    pub fn name(&self) -> String {
        let fields = self.all_fields();
        let name = fields.get("event").or_else(|| fields.get("type"));
        name.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// What its JSON has beside what every event has.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let mut fields = self.all_fields();
        fields.retain(|name, _| name != "event" && name != "model");
        fields
    }

    fn all_fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }

    /// How much a reader should care.
    pub fn severity(&self) -> Severity {
        match self {
            // Over its limit and not compacted, a session is dead.
            EventKind::Reset(ResetEvent::ContextCompactionFailed {
                context_exceeded: true,
                ..
            }) => Severity::Error,
            EventKind::Run(report) => report.severity(),
            EventKind::Hook(report) => report.severity(),
            EventKind::RedactionDisabled { .. } | EventKind::FailedOpen { .. } => Severity::High,
            EventKind::Failed { .. }
            | EventKind::Fallback { .. }
            | EventKind::NotArchived
            | EventKind::TranscriptFailed { .. }
            | EventKind::Reset(ResetEvent::ContextCompactionFailed { .. })
            | EventKind::Discarded { .. }
            | EventKind::Overflowed { .. }
            | EventKind::Forecast { .. }
            | EventKind::UsageMissing(_)
            | EventKind::NewestCut { .. }
            | EventKind::Skipped { .. }
            | EventKind::Repaired => Severity::Warning,
            _ => Severity::Info,
        }
    }

    /// Every name of a run or a session: whoever looks it up must find it.
    pub(super) fn names_mut(&mut self) -> Vec<&mut String> {
        match self {
            EventKind::Run(report) => report.names_mut(),
            _ => Vec::new(),
        }
    }

    /// Every text that is not an id of ours: what redaction looks at.
    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            EventKind::TriggerDecision { reason, .. } | EventKind::Discarded { reason, .. } => {
                vec![reason]
            }
            EventKind::FailedOpen { reason, detail } => vec![reason, detail],
            EventKind::SummaryCreated { summarizer, .. } => vec![summarizer],
            EventKind::PolicyApplied { rung } => vec![rung],
            EventKind::Failed { error } | EventKind::TranscriptFailed { error } => vec![error],
            EventKind::Fallback { failed, reason, .. } => vec![failed.name_mut(), reason],
            EventKind::CallEnded { call, .. } => vec![call],
            EventKind::Reset(event) => event.texts_mut(),
            EventKind::Run(report) => report.texts_mut(),
            EventKind::Hook(report) => report.texts_mut(),
            EventKind::TokenEstimate { .. }
            | EventKind::PrunedMessages
            | EventKind::Started
            | EventKind::Completed { .. }
            | EventKind::Archived { .. }
            | EventKind::Recalled { .. }
            | EventKind::NotArchived
            | EventKind::Repaired
            | EventKind::Skipped { .. }
            | EventKind::NewestCut { .. }
            | EventKind::RedactionDisabled { .. }
            | EventKind::Scheduled
            | EventKind::Swapped { .. }
            | EventKind::Overflowed { .. }
            | EventKind::Forecast { .. }
            | EventKind::Usage(_)
            | EventKind::UsageMissing(_)
            | EventKind::UsageReset
            | EventKind::CacheMissed(_)
            | EventKind::ClientNudged { .. } => Vec::new(),
        }
    }
}

impl CategoryTokens {
    /// What was counted of a conversation.
    pub fn from_account(account: &TokenAccount) -> CategoryTokens {
        CategoryTokens {
            system: account.system,
            tools: account.tools,
            history: account.history,
            memory: account.memory,
            user_input: Some(account.user_input),
            tool_results: Some(account.tool_results),
        }
    }

    /// The counted categories by their names.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, Tokens)> {
        let all = [
            ("system", Some(self.system)),
            ("tools", Some(self.tools)),
            ("history", Some(self.history)),
            ("memory", Some(self.memory)),
            ("user_input", self.user_input),
            ("tool_results", self.tool_results),
        ];
        all.into_iter()
            .filter_map(|(name, tokens)| Some((name, tokens?)))
    }
}

impl Substitute {
    /// Its name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Substitute::Deterministic => "deterministic",
            Substitute::PruneOnly => "prune_only",
            Substitute::MinimalPrompt => "minimal_prompt",
            Substitute::Host => "host",
            Substitute::Words => "words",
        }
    }
}

impl CallOutcome {
    /// Its name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            CallOutcome::Compacted => "compacted",
            CallOutcome::Unchanged => "unchanged",
            CallOutcome::Failed => "failed",
        }
    }
}

impl FailedModel {
    /// The model's name.
    pub fn name(&self) -> &str {
        match self {
            FailedModel::Summarizer(name) | FailedModel::Embedder(name) => name,
        }
    }

    fn name_mut(&mut self) -> &mut String {
        match self {
            FailedModel::Summarizer(name) | FailedModel::Embedder(name) => name,
        }
    }
}
