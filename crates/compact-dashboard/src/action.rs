//! What a person does: each a form that carries the token, and a page that says what came of it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, State};
use axum::response::{IntoResponse, Redirect, Response};
use compact::manager::VerifiedBy;
use compact::store::CompactionRecord;
use serde::Deserialize;

use crate::page::PageError;
use crate::text::{count, encode};
use crate::{Dashboard, Viewer};

/// A form about a compaction.
#[derive(Debug, Deserialize)]
pub(crate) struct CompactionForm {
    token: String,
    name: String,
    receipt: String,
}

/// Finds the compaction that a form or an address is about.
pub(crate) async fn find_compaction(
    dashboard: &Dashboard,
    viewer: &Viewer,
    name: &str,
    receipt: &str,
) -> Result<CompactionRecord, PageError> {
    if !viewer.may_see(name) {
        return Err(PageError::not_found(name));
    }
    let records = dashboard.compact.session_records(name).await?;
    let mut records = records.into_iter();
    let found = records.find(|record| record.receipt_id == receipt);
    found.ok_or_else(|| PageError::not_found(receipt))
}

/// Recomputes a receipt from the archive.
pub(crate) async fn verify(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Option<Extension<Viewer>>,
    Form(form): Form<CompactionForm>,
) -> Response {
    let viewer = viewer.map(|Extension(viewer)| viewer).unwrap_or_default();
    match check_receipt(&dashboard, &viewer, &form).await {
        Ok(words) => back_to_session(&dashboard, &form.name, &words),
        Err(error) => error.into_page(&dashboard),
    }
}

async fn check_receipt(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &CompactionForm,
) -> Result<String, PageError> {
    check_token(dashboard, &form.token)?;
    let record = find_compaction(dashboard, viewer, &form.name, &form.receipt).await?;
    let report = dashboard.compact.verify(&record.receipt_id).await?;
    let by = match report.by {
        VerifiedBy::Engine => "the engine made the same view from the archived original again",
        VerifiedBy::View(_) => "the archived original and view agree with the receipt",
        VerifiedBy::Original(_) => "the archived original is whole",
    };
    let short: String = record.receipt_id.chars().take(12).collect();
    Ok(match report.mismatches.len() {
        0 => format!("Verified {short}: {by}."),
        wrong => {
            let names: Vec<&str> = report.mismatches.iter().map(|m| m.field.as_str()).collect();
            let fields = count(wrong as u64, "field does", "fields do");
            format!(
                "{short} is not what its archive says: {fields} not agree ({}).",
                names.join(", ")
            )
        }
    })
}

/// Refuses a form that is not one of ours.
pub(crate) fn check_token(dashboard: &Dashboard, token: &str) -> Result<(), PageError> {
    match dashboard.token.matches(token) {
        true => Ok(()),
        false => Err(PageError::refused(
            "the form is not one of this dashboard's",
        )),
    }
}

/// Leads back to a session with what was done.
pub(crate) fn back_to_session(dashboard: &Dashboard, name: &str, words: &str) -> Response {
    let notice = dashboard.notices.add(words.to_owned());
    let address = format!("/session?name={}&done={notice}", encode(name));
    Redirect::to(&dashboard.link(&address)).into_response()
}
