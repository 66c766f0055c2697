//! A receipt as it is stored: JSON that this version or another one wrote.
//!
//! What is stored is kept as it is, fields that nobody here knows included. Each field is read by
//! itself, so that one which another version writes differently spoils none beside it.

use std::fmt;

use compact_core::policy::Policy;
use compact_core::receipt::{OrdinalSpan, Receipt};
use compact_core::token::Tokens;
use compact_core::verify::Retention;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::port::archive::PackId;

/// The receipt of a compaction with what the runtime added to it, or what stands for one where a
/// file was left by something else than a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredReceipt {
    json: Value,
}

/// What only the runtime knows of a compaction: no engine can recompute it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimeFields {
    /// Where the original is; `None` where there is no archive.
    pub archive: Option<ArchivedPacks>,
    /// Whether the archive holds the exact bytes, or redacted ones.
    pub exact: bool,
    /// When, as RFC 3339 in UTC.
    pub created_at: String,
    /// How long the compaction took, in milliseconds.
    pub elapsed_ms: u64,
    /// The window that the history was counted against.
    pub window: Tokens,
}

impl RuntimeFields {
    /// The names of these fields in a receipt's JSON.
    pub const NAMES: [&'static str; 5] = ["archive", "exact", "created_at", "elapsed_ms", "window"];
}

/// What the archive holds of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchivedPacks {
    /// The original.
    pub pack: PackId,
    /// Its size in bytes.
    pub plain_bytes: u64,
    /// The bytes that it takes in the store.
    pub stored_bytes: u64,
    /// The view that was made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<PackId>,
    /// What models said, if one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<PackId>,
}

/// What a compaction was made under.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiptTerms {
    /// The policy in force.
    pub policy: Policy,
    /// The name of the estimator.
    pub estimator: String,
}

/// The size of an archived original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedSize {
    /// Its size in bytes.
    pub plain_bytes: u64,
    /// The bytes that it takes in the store.
    pub stored_bytes: u64,
}

impl StoredReceipt {
    /// Adds what only the runtime knows to the engine's receipt.
    pub fn new(receipt: &Receipt, fields: &RuntimeFields) -> Result<Self, serde_json::Error> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            receipt: &'a Receipt,
            #[serde(flatten)]
            fields: &'a RuntimeFields,
        }
        let json = serde_json::to_value(Whole { receipt, fields })?;
        Ok(StoredReceipt { json })
    }

    /// Returns the JSON, field by field as it was stored.
    pub fn as_json(&self) -> &Value {
        &self.json
    }

    /// Returns the JSON itself.
    pub fn into_json(self) -> Value {
        self.json
    }

    /// The same receipt for a session that is called so; its id does not depend on that.
    #[must_use]
    pub(super) fn in_session(mut self, name: &str) -> StoredReceipt {
        if let Some(session) = self.json.get_mut("session_id") {
            *session = name.into();
        }
        self
    }

    /// The same receipt, recorded when another one was.
    #[must_use]
    pub(super) fn with_times_of(mut self, other: &StoredReceipt) -> StoredReceipt {
        for name in ["created_at", "elapsed_ms"] {
            if let (Some(time), Some(its)) = (self.json.get_mut(name), other.json.get(name)) {
                time.clone_from(its);
            }
        }
        self
    }

    /// Reads the engine's part whole; fails for one of a version with other fields.
    pub fn to_receipt(&self) -> Result<Receipt, serde_json::Error> {
        Receipt::deserialize(&self.json)
    }

    /// Returns the version of the engine that made it.
    pub fn engine(&self) -> Option<&str> {
        self.text("engine")
    }

    /// Returns what it was made under, if this version can read it.
    pub fn terms(&self) -> Option<ReceiptTerms> {
        Some(ReceiptTerms {
            policy: self.read("/policy")?,
            estimator: self.read("/estimator")?,
        })
    }

    /// Returns the name of the wire whose rules the view obeys.
    pub fn wire(&self) -> Option<&str> {
        self.text("wire")
    }

    /// Returns the model, when it was known.
    pub fn model(&self) -> Option<&str> {
        self.text("model")
    }

    /// Returns the fingerprint of the redaction that it was made under; earlier versions wrote none.
    pub fn redaction_fingerprint(&self) -> Option<&str> {
        self.text("redaction_fingerprint")
    }

    /// Returns when the compaction was recorded, as RFC 3339 in UTC.
    pub fn created_at(&self) -> Option<&str> {
        self.text("created_at")
    }

    /// Returns the person's wish for the compaction.
    pub fn note(&self) -> Option<&str> {
        self.text("note")
    }

    /// Returns what the view was allowed.
    pub fn budget(&self) -> Option<Tokens> {
        self.read("/budget")
    }

    /// Returns what the summary was promised.
    pub fn summary_limit(&self) -> Option<Tokens> {
        self.read("/summary_limit")
    }

    /// Returns the history's tokens before.
    pub fn tokens_before(&self) -> Option<Tokens> {
        self.read("/tokens_before")
    }

    /// Returns the history's tokens after.
    pub fn tokens_after(&self) -> Option<Tokens> {
        self.read("/tokens_after")
    }

    /// Returns the proof of what was kept.
    pub fn retention(&self) -> Option<Retention> {
        self.read("/retention")
    }

    /// Returns the share of anchors that was kept.
    pub fn retention_score(&self) -> Option<f64> {
        self.read("/retention/score")
    }

    /// Returns the ordinals of the view's history in its order.
    pub fn view_spans(&self) -> Vec<OrdinalSpan> {
        self.read("/view_spans").unwrap_or_default()
    }

    /// True unless the archive holds redacted bytes.
    pub fn is_exact(&self) -> bool {
        self.read("/exact") != Some(false)
    }

    /// True if the original is in an archive.
    pub fn is_archived(&self) -> bool {
        self.json
            .get("archive")
            .is_some_and(|field| !field.is_null())
    }

    /// Returns the size of the archived original.
    pub fn archived_size(&self) -> Option<ArchivedSize> {
        Some(ArchivedSize {
            plain_bytes: self.read("/archive/plain_bytes")?,
            stored_bytes: self.read("/archive/stored_bytes")?,
        })
    }

    /// Returns the pack of the view that was made; earlier versions archived none.
    pub fn view_pack(&self) -> Option<PackId> {
        self.read("/archive/view")
    }

    /// Returns the pack of what models said, if one was asked.
    pub fn advice_pack(&self) -> Option<PackId> {
        self.read("/archive/advice")
    }

    /// Returns how long the compaction took, in milliseconds.
    pub fn elapsed_ms(&self) -> Option<u64> {
        self.read("/elapsed_ms")
    }

    /// Returns the window that the history was counted against; earlier versions wrote none.
    pub fn window(&self) -> Option<Tokens> {
        self.read("/window")
    }

    /// Returns who left a file that was no compaction's: `hook` or `run`.
    pub fn origin(&self) -> Option<&str> {
        self.text("origin")
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.json.get(field)?.as_str()
    }

    fn read<T: DeserializeOwned>(&self, pointer: &str) -> Option<T> {
        T::deserialize(self.json.pointer(pointer)?).ok()
    }
}

impl From<Value> for StoredReceipt {
    fn from(json: Value) -> StoredReceipt {
        StoredReceipt { json }
    }
}

impl fmt::Display for StoredReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As another version may have written it.
    fn foreign() -> StoredReceipt {
        StoredReceipt::from(json!({
            "engine": "compact 9.0", "policy": "frugal", "estimator": "bytes/4", "budget": 900,
            "tokens_before": "many", "view_spans": [[0, 3]], "retention": {"score": 0.5},
            "archive": {"view": "no pack", "plain_bytes": 7, "stored_bytes": 3},
            "mood": {"later": [1.50, null]},
        }))
    }

    #[test]
    fn a_field_of_another_version_spoils_none_beside_it() {
        let receipt = foreign();
        assert_eq!(receipt.terms(), None);
        assert_eq!(receipt.tokens_before(), None);
        assert_eq!(receipt.retention(), None);
        assert_eq!(receipt.retention_score(), Some(0.5));
        assert_eq!(receipt.engine(), Some("compact 9.0"));
        assert_eq!(receipt.budget(), Some(Tokens(900)));
        assert_eq!(receipt.view_spans(), [(0, 3)]);
        assert_eq!(receipt.view_pack(), None);
        let size = ArchivedSize {
            plain_bytes: 7,
            stored_bytes: 3,
        };
        assert_eq!(receipt.archived_size(), Some(size));
        assert!(receipt.is_exact() && receipt.is_archived());
        assert!(receipt.to_receipt().is_err());
    }

    #[test]
    fn what_is_stored_stays_as_it_is() {
        let receipt = foreign();
        let text = serde_json::to_string(&receipt).unwrap();
        assert_eq!(text, receipt.to_string());
        assert_eq!(text, receipt.as_json().to_string());
        assert_eq!(
            serde_json::from_str::<StoredReceipt>(&text).unwrap(),
            receipt
        );
    }
}
