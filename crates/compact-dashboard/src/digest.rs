//! Curves of sessions that were looked at, kept until their sessions go on: counting one takes reading all of its
//! transcript.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use compact::overview::SessionCurve;
use compact::store::CompactionRecord;
use compact::{Compact, Error};

/// How many curves are kept.
const KEPT: usize = 64;

/// The curves that were counted last, the newest at the end, each by the receipt that it ends with.
#[derive(Default)]
pub(crate) struct CurveCache(Mutex<VecDeque<(CurveKey, Arc<SessionCurve>)>>);

/// A session as of its last receipt.
#[derive(Clone, PartialEq, Eq)]
struct CurveKey {
    session: String,
    receipt: String,
}

impl CurveCache {
    /// Returns the curve of a session with these records.
    pub(crate) async fn curve_of(
        &self,
        compact: &Compact,
        records: &[CompactionRecord],
    ) -> Result<Arc<SessionCurve>, Error> {
        let Some(latest) = records.last() else {
            return Ok(Arc::default());
        };
        let key = CurveKey {
            session: latest.session_id.clone(),
            receipt: latest.receipt_id.clone(),
        };
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let curve = Arc::new(compact.session_curve(records).await?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((key, Arc::clone(&curve)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(curve)
    }

    fn find(&self, key: &CurveKey) -> Option<Arc<SessionCurve>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == key);
        found.map(|(_, curve)| Arc::clone(curve))
    }
}
