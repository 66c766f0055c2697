//! The original of a session or a compaction, byte for byte, or what came out of one, as a file.

use axum::response::IntoResponse;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::Deserialize;

use crate::page::PageError;
use crate::text::encode;
use crate::visit::{Asked, Visit};

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct OriginalQuery {
    name: String,
    receipt: Option<String>,
    #[serde(default)]
    part: CompactionPart,
}

/// Which side of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CompactionPart {
    /// What went in.
    #[default]
    Input,
    /// What came out.
    View,
}

impl Asked for OriginalQuery {
    fn session(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Answers with the bytes.
pub(crate) async fn download(
    visit: Visit<OriginalQuery>,
) -> Result<impl IntoResponse + use<>, PageError> {
    let (dashboard, query) = (&*visit.dashboard, &visit.asked);
    let records = dashboard.compact.session_records(&query.name).await?;
    let mut wanted = records.iter().rev();
    let wanted = match &query.receipt {
        Some(receipt) => wanted.find(|record| record.receipt_id == *receipt),
        None => wanted.next(),
    };
    let Some(record) = wanted else {
        let missing = query.receipt.as_ref().unwrap_or(&query.name);
        return Err(PageError::not_found(missing));
    };
    let compact = &dashboard.compact;
    let (bytes, what) = match (&query.receipt, query.part) {
        (Some(_), CompactionPart::View) => (compact.state_after(record).await?.bytes, "view"),
        (Some(_), CompactionPart::Input) => {
            (compact.restore(&record.receipt_id).await?.bytes, "original")
        }
        (None, _) => (compact.restore_session(record).await?.bytes, "original"),
    };
    let kind = match bytes.first() {
        Some(b'{') if bytes.contains(&b'\n') => "jsonl",
        _ => "json",
    };
    let file = format!(
        "attachment; filename=\"{what}.{kind}\"; filename*=UTF-8''{}-{what}.{kind}",
        encode(&query.name)
    );
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, file),
    ];
    Ok((headers, bytes))
}
