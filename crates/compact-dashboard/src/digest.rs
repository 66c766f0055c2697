//! What is known of sessions that were looked at, kept until they go on: counting one takes reading all of its transcript,
//! and its rules are drawn from all of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use compact::overview::SessionCurve;
use compact::store::CompactionRecord;
use compact::token::EstimatorExt;
use compact::{Compact, Error};

use crate::composition::{WindowPart, largest_parts};
use crate::text::clip_text;

/// How many sessions are kept.
const KEPT: usize = 64;
/// How many characters of a rule name it.
const RULE_CHARS: usize = 120;

/// What was counted last, the newest at the end, each by the receipt that it ends with.
#[derive(Default)]
pub(crate) struct DigestCache(Mutex<VecDeque<(DigestKey, Arc<SessionDigest>)>>);

/// A session in numbers.
#[derive(Default)]
pub(crate) struct SessionDigest {
    /// What each call was sent.
    pub(crate) curve: SessionCurve,
    /// What its rules cost, the longest first.
    pub(crate) rules: Vec<WindowPart>,
}

/// A session as of its last receipt.
#[derive(Clone, PartialEq, Eq)]
struct DigestKey {
    session: String,
    receipt: String,
}

impl DigestCache {
    /// Returns what is known of a session with these records.
    pub(crate) async fn digest_of(
        &self,
        compact: &Compact,
        records: &[CompactionRecord],
    ) -> Result<Arc<SessionDigest>, Error> {
        let Some(latest) = records.last() else {
            return Ok(Arc::default());
        };
        let key = DigestKey {
            session: latest.session_id.clone(),
            receipt: latest.receipt_id.clone(),
        };
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let digest = Arc::new(SessionDigest {
            curve: compact.session_curve(records).await?,
            rules: count_rules(compact, latest).await,
        });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((key, Arc::clone(&digest)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(digest)
    }

    fn find(&self, key: &DigestKey) -> Option<Arc<SessionDigest>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == key);
        found.map(|(_, digest)| Arc::clone(digest))
    }
}

/// Counts the rules that a session has established; none where nothing was compacted.
async fn count_rules(compact: &Compact, latest: &CompactionRecord) -> Vec<WindowPart> {
    let Ok(memory) = compact.remember(&latest.receipt_id).await else {
        return Vec::new();
    };
    let estimator = compact.estimator(latest.receipt.model());
    let rules = memory.ledger.facts.rules.iter().map(|rule| {
        (
            clip_text(&rule.text, RULE_CHARS),
            estimator.to_tokens(estimator.count_units(&rule.text)).0,
        )
    });
    largest_parts(rules)
}
