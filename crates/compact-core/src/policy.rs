//! What a user may decide: every knob of a compaction, with the defaults of the `rolling` profile.
//!
//! A policy is plain data. It is read by decide, plan, summarize and assemble; it never acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity::EntryHash;
use crate::message::Role;
use crate::summarize::Style;
use crate::token::Tokens;
use crate::usage::UsagePolicy;
use crate::wire::Placement;

/// Every knob of a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Compact when the estimate reaches this share of the window; above 1.0 means never.
    pub trigger_pct: f64,
    /// Whether reaching `trigger_pct` exactly is enough, or it must be exceeded.
    pub trigger_inclusive: bool,
    /// What `trigger_pct` is a share of.
    pub trigger_base: TriggerBase,
    /// Compact when fewer tokens than this are left in the window, whatever the share.
    pub trigger_tokens_left: Option<u64>,
    /// Start compacting in the background at this share of the window.
    pub soft_pct: Option<f64>,
    /// The share of the trigger point that a fresh view may fill, system and tools included. The newest
    /// messages are never cut for it.
    pub target_of_trigger: f64,
    /// The tokens that a fresh view may fill, system and tools included, instead of `target_of_trigger`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_tokens: Option<u64>,
    /// The share of a view that its summary may take before earlier turns are kept beside it. It does not
    /// apply to a budget that you give.
    pub summary_share: f64,
    /// The most tokens that a summary may take, whatever room there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u64>,
    /// Your own instructions for a model that summarizes, instead of those of `strategy`; `{tokens}` in them
    /// is replaced by the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_prompt: Option<String>,
    /// Tokens of the window reserved for the next user or tool step.
    pub hard_cap_buffer: u64,
    /// How many of the last turns keep their user and assistant messages verbatim.
    pub keep_recent_turns: u32,
    /// How many of the last tool exchanges stay verbatim.
    pub keep_tool_io_pairs: u32,
    /// Which recent messages a compaction keeps.
    pub keep_recent: KeepRecent,
    /// Which part of the history is dropped first.
    pub prune: Prune,
    /// Roles whose entries are never pruned.
    pub roles_never_prune: Vec<Role>,
    /// The key of a message's `meta` that protects it when it is truthy.
    pub protected_flag: String,
    /// Regular expressions; an entry is protected if the user's or the model's text matches one. Tool
    /// results are not searched, so that no tool can protect itself.
    pub protected_patterns: Vec<String>,
    /// Hashes of protected entries, usually set by `protect`.
    #[schemars(with = "Vec<String>")]
    pub protected_entries: Vec<EntryHash>,
    /// The style of the summary.
    pub strategy: Style,
    /// Where the summary is put, if the provider allows it there.
    pub placement: Placement,
    /// What happens when a summarizer fails.
    pub on_summary_failure: OnSummaryFailure,
    /// Failed attempts allowed in one turn before the next success, growth or manual retry.
    pub attempts_per_turn: u32,
    /// Compact a session in the background when it was idle for so many seconds and is above the soft
    /// threshold or, without one, half of the trigger.
    pub idle_seconds: Option<u64>,
    /// How many seconds a call at the trigger waits for a compaction that runs in the background.
    pub wait_seconds: u64,
    /// What happens to input that arrives while a session is compacted.
    pub during_compaction: DuringCompaction,
    /// How pressure is read from what providers report.
    pub usage: UsagePolicy,
    /// Whether the price of cached prompts decides when to compact.
    #[serde(skip_serializing_if = "EconomyPolicy::is_default")]
    pub economy: EconomyPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            trigger_pct: 0.85,
            trigger_inclusive: true,
            trigger_base: TriggerBase::Window,
            trigger_tokens_left: None,
            soft_pct: None,
            target_of_trigger: 0.5,
            target_tokens: None,
            summary_share: 0.4,
            summary_tokens: None,
            summary_prompt: None,
            hard_cap_buffer: 1024,
            keep_recent_turns: 6,
            keep_tool_io_pairs: 4,
            keep_recent: KeepRecent::Recent,
            prune: Prune::Recency,
            roles_never_prune: vec![Role::System, Role::Developer],
            protected_flag: "protected".to_owned(),
            protected_patterns: Vec::new(),
            protected_entries: Vec::new(),
            strategy: Style::TaskState,
            placement: Placement::AssistantMessage,
            on_summary_failure: OnSummaryFailure::Deterministic,
            attempts_per_turn: 1,
            idle_seconds: None,
            wait_seconds: 30,
            during_compaction: DuringCompaction::Queue,
            usage: UsagePolicy::default(),
            economy: EconomyPolicy::default(),
        }
    }
}

/// Whether the price of cached prompts decides when to compact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EconomyMode {
    /// It does not.
    #[default]
    Off,
    /// Decisions only say what it would do.
    Observe,
    /// A compaction that pays is made, also far below the trigger.
    Act,
}

/// How the price of cached prompts decides. A policy that sets nothing of it is as one that never knew it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EconomyPolicy {
    /// Whether it decides when to compact; unset, it does not.
    pub mode: Option<EconomyMode>,
    /// After so many seconds without a request the provider's cache is taken to be cold; unset, 300.
    pub cache_seconds: Option<u64>,
    /// How many more requests a session is expected to make; unset, what earlier sessions of its project did, or
    /// as many as it made so far.
    pub expected_requests: Option<u64>,
    /// The share of what a view leaves out that the agent is expected to read again, at the full price;
    /// unset, 0.05.
    pub rework_share: Option<f64>,
}

impl EconomyPolicy {
    /// True when nothing was set.
    pub fn is_default(&self) -> bool {
        *self == EconomyPolicy::default()
    }

    /// Whether it decides.
    pub fn mode(&self) -> EconomyMode {
        self.mode.unwrap_or_default()
    }

    /// How long a cache holds a prompt that nobody asks for again.
    pub fn cache_seconds(&self) -> u64 {
        self.cache_seconds.unwrap_or(300)
    }

    /// The tokens that are expected to be read again of so many that a view leaves out.
    pub fn rework(&self, left_out: Tokens) -> f64 {
        left_out.0 as f64 * self.rework_share.unwrap_or(0.05)
    }

    /// How many requests are expected after `made`, where other sessions are `measured` to make so many more. A
    /// session that went on for long goes on for long: where nothing else is known, half of its life is still
    /// ahead.
    pub fn further_requests(&self, made: u64, measured: Option<f64>) -> f64 {
        let expected = self.expected_requests.map(|expected| expected as f64);
        expected.or(measured).unwrap_or(made as f64)
    }
}

/// What a trigger ratio is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerBase {
    /// The whole window.
    #[default]
    Window,
    /// The window less `hard_cap_buffer`.
    Budget,
}

/// What of the recent part survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepRecent {
    /// Nothing but the pending request: the summary must be enough.
    None,
    /// The latest user message and what follows it.
    LastUserMessage,
    /// The last turns and tool exchanges.
    #[default]
    Recent,
}

/// Which part of the history is dropped first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prune {
    /// Oldest first: the newest turns stay whole.
    Fifo,
    /// The last turns keep their messages, the last exchanges their tool output.
    #[default]
    Recency,
    /// As `recency`, but the exchanges kept are the last of each tool before the last of all.
    StageAware,
    /// As `recency`, but of exchanges that say nearly the same only the last is kept.
    Semantic,
}

/// What happens to input that arrives while a session is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DuringCompaction {
    /// It is part of the history at once and stands behind the new view.
    #[default]
    Queue,
    /// It is refused with an error that says to try again.
    Reject,
}

/// What happens when a summarizer fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnSummaryFailure {
    /// The deterministic summary takes its place, with an event.
    #[default]
    Deterministic,
    /// The remainder is pruned without a summary, with a warning event.
    PruneOnly,
    /// Nothing changes and the compaction fails.
    Fail,
    /// A minimal continuation prompt takes its place.
    MinimalPrompt,
    /// The host goes on by itself.
    Host,
}
