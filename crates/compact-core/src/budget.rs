//! Budget: what a view may cost where nobody says.
//!
//! A share of the trigger point, so that a fresh view does not trigger again; more where what was said
//! last would not fit beside a memory worth having, up to all that the window allows. Only numbers
//! come in; what is kept within a budget is the plan's business.

use crate::policy::Policy;
use crate::token::{TokenAccount, Tokens};
use crate::trigger;

/// Tokens that hold the orders, the open work and the latest steps of most sessions: a summary of
/// so many may take most of a small view.
const SMALL_SUMMARY: u64 = 4_096;

/// A view of fewer tokens is what was said last and the summary: what the user stated is worth more than turns.
pub(crate) const SMALL_VIEW: Tokens = Tokens(512);

/// The smallest summary that is worth its frame.
const LEAST_SUMMARY: Tokens = Tokens(200);

/// What bounds a view.
#[derive(Clone, Copy, Debug)]
pub struct ViewBounds<'a> {
    /// What the model takes, in the estimator's tokens.
    pub window: Tokens,
    /// The user's decisions.
    pub policy: &'a Policy,
    /// System and tools, which the host re-sends.
    pub fixed: Tokens,
    /// What somebody wants instead of the policy's target, if that is less.
    pub wanted: Option<Tokens>,
}

impl<'a> ViewBounds<'a> {
    /// The bounds of a conversation that was counted.
    pub fn from_account(window: Tokens, policy: &'a Policy, account: &TokenAccount) -> Self {
        ViewBounds {
            window,
            policy,
            fixed: account.system + account.tools,
            wanted: None,
        }
    }

    /// The policy's tokens or its share of the trigger point, or less.
    pub fn target(self) -> Tokens {
        let point = trigger::trigger_point(self.window, self.policy);
        let share = Tokens((point.0 as f64 * self.policy.target_of_trigger) as u64);
        let named = self.policy.target_tokens.map(Tokens);
        let target = named.map_or(share, |named| named.min(point - Tokens(1))) - self.fixed;
        self.wanted.map_or(target, |wanted| wanted.min(target))
    }

    /// The most that a view may cost: the window less the buffer.
    pub fn largest(self) -> Tokens {
        self.window - Tokens(self.policy.hard_cap_buffer) - self.fixed
    }

    /// What a view may cost that must hold `claims`: the target; where the claims leave less than most
    /// of that for everything else, as much more as stays below the trigger; and the claims themselves
    /// beside the smallest summary, of `summary` tokens but half of the target at most, while the window holds them.
    pub fn budget_for(self, claims: Tokens, summary: Tokens) -> Tokens {
        let target = self.target();
        let below_trigger = trigger::trigger_point(self.window, self.policy) - Tokens(1);
        let roomy = (claims + Tokens(target.0 * 4 / 5)).min(below_trigger - self.fixed);
        // Rules without end would fill every new view up to the window, and the next call would overflow it.
        let summary = summary.min(Tokens(target.0 / 2));
        let wanted = target.max(roomy).max(claims + LEAST_SUMMARY.max(summary));
        wanted.min(self.largest().max(target))
    }

    /// What the summary of a view of this budget may take before earlier turns are kept.
    pub fn summary_limit(self, budget: Tokens) -> Tokens {
        let share = (budget.0 as f64 * self.policy.summary_share) as u64;
        let most = match budget < SMALL_VIEW {
            true => budget.0,
            false => budget.0 * 4 / 5,
        };
        let limit = share.max(SMALL_SUMMARY.min(most));
        Tokens(limit.min(self.policy.summary_tokens.unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(policy: &Policy) -> ViewBounds<'_> {
        ViewBounds {
            window: Tokens(100_000),
            policy,
            fixed: Tokens(2_000),
            wanted: None,
        }
    }

    #[test]
    fn a_budget_is_half_of_the_trigger_and_grows_with_what_was_said_last() {
        let policy = Policy::default();
        let bounds = bounds(&policy);
        let beside = |claims, summary| bounds.budget_for(Tokens(claims), Tokens(summary)).0;
        let around = |claims| beside(claims, 0);
        assert_eq!(bounds.target(), Tokens(40_500));
        assert_eq!(bounds.largest(), Tokens(96_976));
        assert_eq!(around(0), 40_500);
        assert_eq!(around(8_100), 40_500);
        assert_eq!(around(30_000), 62_400, "most of the target beside it");
        assert_eq!(around(70_000), 82_999, "below the trigger");
        assert_eq!(around(90_000), 90_200, "and beyond it where it must");
        assert_eq!(beside(90_000, 700), 90_700, "and for the user's rules");
        assert_eq!(
            beside(70_000, 30_000),
            90_250,
            "but not for rules without end"
        );
        assert_eq!(around(200_000), 96_976);
    }

    #[test]
    fn a_summary_may_take_most_of_a_small_view_and_its_share_of_a_large_one() {
        let policy = Policy {
            summary_share: 0.25,
            ..Policy::default()
        };
        let of = |budget| bounds(&policy).summary_limit(Tokens(budget)).0;
        assert_eq!([of(1_000), of(10_000), of(40_000)], [800, 4_096, 10_000]);
    }

    #[test]
    fn tokens_that_somebody_names_rule_instead_of_shares() {
        let policy = Policy {
            target_tokens: Some(30_000),
            summary_tokens: Some(900),
            ..Policy::default()
        };
        let limits = bounds(&policy);
        assert_eq!(limits.target(), Tokens(28_000));
        assert_eq!(limits.summary_limit(Tokens(28_000)), Tokens(900));
        let policy = Policy {
            target_tokens: Some(99_000),
            ..policy
        };
        assert_eq!(
            bounds(&policy).target(),
            Tokens(82_999),
            "below the trigger"
        );
    }
}
