//! The five founding behaviours as named bundles of policy values, and nothing else.
//!
//! A profile is data: choosing one sets defaults that a configuration file may still change. Which
//! configuration keys a profile accepts, deprecates or has removed stands here too.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{DuringCompaction, KeepRecent, OnSummaryFailure, Policy};
use crate::usage::{Formula, OnMissing, Semantics, UsagePolicy};
use crate::wire::Placement;

/// A trigger that is never reached.
const NEVER: f64 = 1.1;

/// A named bundle of policy values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Keep recent turns and one rolling summary in place.
    #[default]
    Rolling,
    /// Clear the history and continue from a summary in the system prompt.
    HardReset,
    /// Ask the agent for a checkpoint and start a new session from it; usage overwrites.
    CheckpointRestart,
    /// The same with usage accumulated from per-turn deltas.
    CheckpointRestartDelta,
    /// The host compacts; the engine archives and observes.
    NativeArchive,
}

impl Profile {
    /// All profiles, in the order people meet them.
    pub const ALL: [Profile; 5] = [
        Profile::Rolling,
        Profile::HardReset,
        Profile::CheckpointRestart,
        Profile::CheckpointRestartDelta,
        Profile::NativeArchive,
    ];

    /// The name in configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Rolling => "rolling",
            Profile::HardReset => "hard-reset",
            Profile::CheckpointRestart => "checkpoint-restart",
            Profile::CheckpointRestartDelta => "checkpoint-restart-delta",
            Profile::NativeArchive => "native-archive",
        }
    }

    /// The policy that this profile starts from.
    pub fn policy(self) -> Policy {
        let rolling = Policy::default();
        match self {
            Profile::Rolling => rolling,
            Profile::HardReset => Policy {
                trigger_pct: 0.80,
                trigger_inclusive: false,
                keep_recent: KeepRecent::None,
                placement: Placement::SystemSuffix,
                on_summary_failure: OnSummaryFailure::Fail,
                during_compaction: DuringCompaction::Reject,
                usage: UsagePolicy {
                    on_missing: OnMissing::Heuristic,
                    ..rolling.usage
                },
                ..rolling
            },
            Profile::CheckpointRestart | Profile::CheckpointRestartDelta => Policy {
                trigger_pct: 0.90,
                keep_recent: KeepRecent::None,
                placement: Placement::NewSessionPrompt,
                on_summary_failure: OnSummaryFailure::MinimalPrompt,
                usage: UsagePolicy {
                    semantics: Some(self.restart_semantics()),
                    formula: Formula::InputOutput,
                    on_missing: OnMissing::Disable,
                    ..rolling.usage
                },
                ..rolling
            },
            Profile::NativeArchive => Policy {
                // The host decides.
                trigger_pct: NEVER,
                on_summary_failure: OnSummaryFailure::Host,
                ..rolling
            },
        }
    }

    /// What usage means to the two founding behaviours that start new sessions.
    fn restart_semantics(self) -> Semantics {
        match self {
            Profile::CheckpointRestartDelta => Semantics::PerTurnDelta,
            _ => Semantics::Cumulative,
        }
    }

    /// How this profile treats a configuration key that is not one of the policy's own.
    pub fn key_status(self, key: &str) -> KeyStatus {
        use Profile::{CheckpointRestart, CheckpointRestartDelta, HardReset, NativeArchive};
        match (self, key) {
            (HardReset, "protected_turns" | "cooldown_seconds") => KeyStatus::Deprecated,
            (HardReset, "enabled") => KeyStatus::Switch {
                path: "policy.trigger_pct",
                off: NEVER,
            },
            (HardReset, "summarizer_model") => KeyStatus::Alias("summarizer.model"),
            (HardReset, "compaction_threshold")
            | (CheckpointRestart | CheckpointRestartDelta, "context_restart_threshold") => {
                KeyStatus::Alias("policy.trigger_pct")
            }
            (CheckpointRestart | CheckpointRestartDelta, "context_limit") => {
                KeyStatus::Alias("max_context_tokens")
            }
            (NativeArchive, "context_restart_threshold" | "context_limit") => KeyStatus::Removed,
            _ => KeyStatus::Unknown,
        }
    }
}

/// What becomes of a configuration key in a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyStatus {
    /// Another name for a key, given as its dotted path.
    Alias(&'static str),
    /// A switch: off sets the key at `path` to `off`, on changes nothing.
    Switch {
        /// The key's dotted path.
        path: &'static str,
        /// The value that turns it off.
        off: f64,
    },
    /// Accepted, ignored, with a warning.
    Deprecated,
    /// No longer a key: an error like any unknown one.
    Removed,
    /// Not a key of this profile.
    Unknown,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Profile::ALL
            .into_iter()
            .find(|p| p.as_str() == name)
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

/// A profile name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown profile '{0}': use one of rolling, hard-reset, checkpoint-restart, checkpoint-restart-delta, native-archive"
)]
pub struct UnknownProfile(pub String);
