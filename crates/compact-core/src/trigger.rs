//! Decide: from tokens and window to a verdict with its reason.
//!
//! Only numbers come in; nothing here knows where they were counted or what a compaction does.

pub mod economy;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{Policy, TriggerBase};
use crate::token::Tokens;
use crate::usage::window_share;

/// How close below a trigger a warning starts, as a share of the window.
const WARN_MARGIN: f64 = 0.05;

/// What to do now.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There is room.
    Stay,
    /// There is room, but not for long.
    Warn,
    /// The soft threshold is reached: compact in the background.
    CompactSoon,
    /// Compact before the next call.
    CompactNow,
    /// The context is larger than the window: the next call would fail.
    Exceeded,
}

impl Verdict {
    /// True when the next call should see a compacted view.
    pub fn is_now(self) -> bool {
        self >= Verdict::CompactNow
    }
}

/// Why there is to be a compaction: the few words that reports count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionCause {
    /// The trigger's share of the window was reached.
    Threshold,
    /// Too few tokens are left.
    TokensLeft,
    /// The soft threshold was reached.
    SoftThreshold,
    /// The context is larger than the window.
    Exceeded,
    /// Somebody asked for it.
    Asked,
    /// The session was idle.
    Idle,
    /// The provider refused the prompt.
    Overflow,
    /// It saves more than it costs.
    Economy,
}

impl CompactionCause {
    /// Its name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            CompactionCause::Threshold => "threshold",
            CompactionCause::TokensLeft => "tokens_left",
            CompactionCause::SoftThreshold => "soft_threshold",
            CompactionCause::Exceeded => "exceeded",
            CompactionCause::Asked => "asked",
            CompactionCause::Idle => "idle",
            CompactionCause::Overflow => "overflow",
            CompactionCause::Economy => "economy",
        }
    }
}

/// A verdict with the numbers it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriggerDecision {
    /// What to do.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// Why, in a word; `None` while nothing is to be done.
    #[serde(skip)]
    pub cause: Option<CompactionCause>,
    /// Tokens over window.
    pub pressure: f64,
    /// What the next request would cost.
    pub tokens: Tokens,
    /// What the model takes.
    pub window: Tokens,
}

/// Judges `tokens` against `window`.
pub fn decide(tokens: Tokens, window: Tokens, policy: &Policy) -> TriggerDecision {
    let pressure = window_share(tokens, window);
    let (verdict, reason) = judge(tokens, window, pressure, policy);
    TriggerDecision {
        cause: cause(verdict, tokens, window, policy),
        verdict,
        reason,
        pressure,
        tokens,
        window,
    }
}

/// The decision of a person or program that asked for a compaction.
pub fn decide_manual(tokens: Tokens, window: Tokens, note: &str) -> TriggerDecision {
    TriggerDecision {
        verdict: Verdict::CompactNow,
        reason: format!("asked for: {note}"),
        cause: Some(CompactionCause::Asked),
        pressure: window_share(tokens, window),
        tokens,
        window,
    }
}

/// The decision where pressure is not tracked: nothing is known, so nothing is done.
pub fn decide_untracked(window: Tokens) -> TriggerDecision {
    TriggerDecision {
        verdict: Verdict::Stay,
        reason: "the provider reports no usage: pressure is not tracked".to_owned(),
        cause: None,
        pressure: 0.0,
        tokens: Tokens(0),
        window,
    }
}

fn judge(tokens: Tokens, window: Tokens, pressure: f64, policy: &Policy) -> (Verdict, String) {
    if policy.trigger_pct > 1.0 && policy.trigger_tokens_left.is_none() && policy.soft_pct.is_none()
    {
        return (Verdict::Stay, "the host decides when to compact".to_owned());
    }
    if tokens > window {
        return (
            Verdict::Exceeded,
            format!("{tokens} tokens do not fit the window of {window}"),
        );
    }
    let left = window - tokens;
    if let Some(least) = policy.trigger_tokens_left.filter(|least| left.0 <= *least) {
        return (
            Verdict::CompactNow,
            format!("{left} tokens left, at most {least} trigger"),
        );
    }
    let share = window_share(tokens, base(window, policy));
    if reaches(share, policy.trigger_pct, policy.trigger_inclusive) {
        return (
            Verdict::CompactNow,
            describe_share(share, policy.trigger_pct, "trigger"),
        );
    }
    if let Some(soft) = policy.soft_pct.filter(|soft| reaches(share, *soft, true)) {
        return (
            Verdict::CompactSoon,
            describe_share(share, soft, "soft threshold"),
        );
    }
    let next = policy.soft_pct.unwrap_or(policy.trigger_pct);
    if share >= next - WARN_MARGIN {
        return (
            Verdict::Warn,
            describe_share(share, next, "threshold ahead"),
        );
    }
    (
        Verdict::Stay,
        format!("{:.1} % of the window", pressure * 100.0),
    )
}

fn cause(
    verdict: Verdict,
    tokens: Tokens,
    window: Tokens,
    policy: &Policy,
) -> Option<CompactionCause> {
    let left = policy.trigger_tokens_left;
    Some(match verdict {
        Verdict::Stay | Verdict::Warn => return None,
        Verdict::CompactSoon => CompactionCause::SoftThreshold,
        Verdict::CompactNow if left.is_some_and(|least| (window - tokens).0 <= least) => {
            CompactionCause::TokensLeft
        }
        Verdict::CompactNow => CompactionCause::Threshold,
        Verdict::Exceeded => CompactionCause::Exceeded,
    })
}

fn describe_share(share: f64, threshold: f64, name: &str) -> String {
    format!("{:.1} % ({name} {:.1} %)", share * 100.0, threshold * 100.0)
}

fn reaches(share: f64, threshold: f64, inclusive: bool) -> bool {
    share > threshold || (inclusive && share >= threshold)
}

fn base(window: Tokens, policy: &Policy) -> Tokens {
    match policy.trigger_base {
        TriggerBase::Window => window,
        TriggerBase::Budget => window - Tokens(policy.hard_cap_buffer),
    }
}

/// The tokens at which the trigger fires: where a fresh view must stay well below.
pub fn trigger_point(window: Tokens, policy: &Policy) -> Tokens {
    let by_share = (base(window, policy).0 as f64 * policy.trigger_pct.clamp(0.0, 1.0)) as u64;
    let by_rest = policy
        .trigger_tokens_left
        .map_or(u64::MAX, |least| window.0.saturating_sub(least));
    Tokens(by_share.min(by_rest))
}

#[cfg(test)]
mod tests;
