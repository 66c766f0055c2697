//! The original of a session or a compaction, byte for byte, as a file.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::Deserialize;

use crate::page::PageError;
use crate::text::encode;
use crate::{Dashboard, Viewer};

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct OriginalQuery {
    name: String,
    receipt: Option<String>,
}

/// Answers with the bytes.
pub(crate) async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<OriginalQuery>,
) -> Result<impl IntoResponse, PageError> {
    if !viewer.may_see(&query.name) {
        return Err(PageError::not_found(&query.name));
    }
    let records = dashboard.compact.session_records(&query.name).await?;
    let mut wanted = records.iter().rev();
    let wanted = match &query.receipt {
        Some(receipt) => wanted.find(|record| record.receipt_id == *receipt),
        None => wanted.next(),
    };
    let Some(record) = wanted else {
        return Err(PageError::not_found(&query.name));
    };
    let original = match query.receipt {
        Some(_) => dashboard.compact.restore(&record.receipt_id).await?,
        None => dashboard.compact.restore_session(record).await?,
    };
    let kind = match original.bytes.first() {
        Some(b'{') if original.bytes.contains(&b'\n') => "jsonl",
        _ => "json",
    };
    let file = format!(
        "attachment; filename=\"original.{kind}\"; filename*=UTF-8''{}.{kind}",
        encode(&query.name)
    );
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, file),
    ];
    Ok((headers, original.bytes))
}
