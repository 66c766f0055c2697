//! The original of a session or a compaction, byte for byte, as a file.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
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
    viewer: Option<Extension<Viewer>>,
    Query(query): Query<OriginalQuery>,
) -> Response {
    let viewer = viewer.map(|Extension(viewer)| viewer).unwrap_or_default();
    match read(&dashboard, &viewer, &query).await {
        Ok(answer) => answer,
        Err(error) => error.into_page(&dashboard),
    }
}

async fn read(
    dashboard: &Dashboard,
    viewer: &Viewer,
    query: &OriginalQuery,
) -> Result<Response, PageError> {
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
    Ok((headers, original.bytes).into_response())
}
