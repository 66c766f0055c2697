//! How full a session's context is, by whatever its agent reports.
//!
//! Two readings, and the larger counts. One is the profile's own: its meaning of the numbers,
//! its formula. The other guards against a wrong meaning: the whole prompt of the last request, where
//! the agent declares that a report is of one request, with an estimate of what was said since.
//!
//! Beside them the totals: what all requests of the session cost, by whichever reports there are.

use compact_core::message::Entry;
use compact_core::token::{Estimator, EstimatorExt, Tokens, Units};
use compact_core::usage::{ContextUsage, OnMissing, Semantics, Usage, UsagePolicy};
use compact_formats::stream::UsageReport;

use super::session::SessionStart;

/// The readings of one session.
#[derive(Clone, Debug)]
pub(super) struct UsageGauge {
    policy: UsagePolicy,
    told: ContextUsage,
    last_prompt: Option<Tokens>,
    /// What was said since the last request.
    grown: Units,
    /// What was said in all.
    said: Units,
    reports: u64,
    missing: MissingUsage,
    totals: SessionTotals,
}

/// What the requests of a session cost in all. An agent tells it of each request, of each turn, of the
/// whole session, or of several of them; what is wider settles what was told before.
#[derive(Clone, Copy, Debug, Default)]
struct SessionTotals {
    /// What wider reports settled.
    settled: Usage,
    /// Requests that none of them covers yet.
    requests: Usage,
    /// The last of those: it is told again with every block of its answer.
    last_request: Usage,
    /// What a session that is taken up again had cost before, once it is known.
    before: Option<Usage>,
}

impl SessionTotals {
    fn new(start: SessionStart) -> SessionTotals {
        SessionTotals {
            before: (start == SessionStart::Fresh).then(Usage::default),
            ..SessionTotals::default()
        }
    }

    fn add(&mut self, report: Usage, measures: Semantics) {
        match measures {
            Semantics::None => return,
            Semantics::LastRequest => {
                let is_same = report.prompt_tokens().0 > 0
                    && Usage {
                        output_tokens: 0,
                        ..report
                    } == Usage {
                        output_tokens: 0,
                        ..self.last_request
                    };
                if is_same {
                    self.requests = self.requests.less(self.last_request);
                }
                self.requests = self.requests.plus(report);
                self.last_request = report;
                return;
            }
            Semantics::PerTurnDelta => self.settled = self.settled.plus(report),
            Semantics::Cumulative => {
                let seen = self.sum();
                let before = *self.before.get_or_insert_with(|| report.less(seen));
                self.settled = report.less(before);
            }
        }
        (self.requests, self.last_request) = (Usage::default(), Usage::default());
    }

    fn sum(&self) -> Usage {
        self.settled.plus(self.requests)
    }
}

/// Whether an agent that reports nothing was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingUsage {
    NotReported,
    Reported,
}

impl UsageGauge {
    pub(super) fn new(policy: UsagePolicy) -> UsageGauge {
        let semantics = policy.semantics.unwrap_or(Semantics::LastRequest);
        UsageGauge {
            policy,
            told: ContextUsage::new(semantics, policy.formula),
            last_prompt: None,
            grown: Units(0),
            said: Units(0),
            reports: 0,
            missing: MissingUsage::NotReported,
            totals: SessionTotals::new(SessionStart::Fresh),
        }
    }

    /// A new context: everything is zero, and tracking stays as it was.
    pub(super) fn reset(&mut self, start: SessionStart) {
        self.told.reset();
        *self = UsageGauge {
            told: self.told.clone(),
            missing: self.missing,
            totals: SessionTotals::new(start),
            ..UsageGauge::new(self.policy)
        };
    }

    /// Takes a report; says whether anything is read from it.
    pub(super) fn take_report(&mut self, report: &UsageReport) -> bool {
        self.reports += 1;
        self.add_to_totals(report);
        if self.policy.reenable_on_usage {
            self.told.enable_tracking();
        }
        let own = self.own_semantics();
        let counts = report.measures.is_none_or(|measures| measures == own);
        if counts {
            self.told.record(report.usage, own);
        }
        if report.measures == Some(Semantics::LastRequest) {
            self.last_prompt = Some(report.usage.prompt_tokens());
            self.grown = Units(0);
        }
        counts || report.measures == Some(Semantics::LastRequest)
    }

    /// Something was said that the next request carries.
    pub(super) fn grow(&mut self, entry: &Entry, estimator: &dyn Estimator) {
        let parts = entry.blocks.iter().flat_map(|block| block.text_parts());
        let units = parts.map(|part| estimator.count_units(part)).sum();
        self.grown += units;
        self.said += units;
    }

    /// A turn ended; true when its agent reports nothing, and nobody was told of that yet.
    pub(super) fn take_missing_notice(&mut self) -> bool {
        if self.reports > 0 {
            return false;
        }
        if self.policy.on_missing == OnMissing::Disable {
            self.told.disable_tracking();
        }
        std::mem::replace(&mut self.missing, MissingUsage::Reported) == MissingUsage::NotReported
    }

    /// What the next request would cost; zero where nothing is tracked.
    pub(super) fn tokens(&self, estimator: &dyn Estimator) -> Tokens {
        if !self.told.is_tracking_enabled() {
            return Tokens(0);
        }
        let guard = match self.last_prompt {
            Some(prompt) => prompt + estimator.to_tokens(self.grown),
            None if self.reports == 0 && self.policy.on_missing != OnMissing::Disable => {
                estimator.to_tokens(self.said)
            }
            None => Tokens(0),
        };
        guard.max(self.told.live_tokens())
    }

    /// Counts a report into the totals alone: what it measured is no part of the work.
    pub(super) fn add_to_totals(&mut self, report: &UsageReport) {
        let measures = report.measures.unwrap_or(self.own_semantics());
        self.totals.add(report.usage, measures);
    }

    /// What all requests of the session cost.
    pub(super) fn totals(&self) -> Usage {
        self.totals.sum()
    }

    /// The same, to be counted once.
    pub(super) fn take_totals(&mut self) -> Usage {
        std::mem::take(&mut self.totals).sum()
    }

    /// What reports measure that do not say it themselves.
    fn own_semantics(&self) -> Semantics {
        self.policy.semantics.unwrap_or(Semantics::LastRequest)
    }
}
