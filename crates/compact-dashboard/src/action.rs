//! What a person does: a form that carries the token, and a page that says what came of it.

use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use compact::chart::describe_change;
use compact::manager::VerifiedBy;
use compact::store::CompactionRecord;
use compact::token::Tokens;
use serde::Deserialize;

use crate::page::PageError;
use crate::text::{clip_name, count, encode};
use crate::{Dashboard, Viewer};

/// The longest name of a new session.
const LONGEST_NAME: usize = 200;

/// The fields of all forms; which of them count depends on what is to be done.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ActionForm {
    token: String,
    /// The session.
    name: String,
    /// The compaction.
    receipt: String,
    /// The entry of its input.
    at: usize,
    /// The most tokens of a view; empty for the policy's.
    budget: String,
    /// The name of a new session.
    new: String,
}

/// What was done, and the session whose page tells of it.
struct ActionOutcome {
    session: String,
    words: String,
}

/// Does what the address names.
pub(crate) async fn perform(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Path(action): Path<String>,
    Form(form): Form<ActionForm>,
) -> Result<Redirect, PageError> {
    let outcome = find_and_perform(&dashboard, &viewer, &action, &form).await?;
    dashboard.changes.announce();
    let notice = dashboard.notices.add(&outcome.session, outcome.words);
    let address = format!("/session?name={}&done={notice}", encode(&outcome.session));
    Ok(Redirect::to(&dashboard.link(&address)))
}

async fn find_and_perform(
    dashboard: &Dashboard,
    viewer: &Viewer,
    action: &str,
    form: &ActionForm,
) -> Result<ActionOutcome, PageError> {
    check_token(dashboard, &form.token)?;
    if !viewer.may_see(&form.name) {
        return Err(PageError::not_found(&form.name));
    }
    let words = match action {
        "verify" => check_receipt(dashboard, viewer, form).await?,
        "compact" => compact_now(dashboard, form).await?,
        "retry" => retry(dashboard, form).await?,
        "pin" => pin(dashboard, viewer, form).await?,
        "unpin" => unpin(dashboard, viewer, form).await?,
        "undo" => return undo(dashboard, viewer, form).await,
        "start" => return start(dashboard, viewer, form).await,
        _ => return Err(PageError::not_found(action)),
    };
    Ok(ActionOutcome {
        session: form.name.clone(),
        words,
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
async fn check_receipt(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &ActionForm,
) -> Result<String, PageError> {
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
            let names = names.join(", ");
            format!("{short} is not what its archive says: {fields} not agree ({names}).")
        }
    })
}

fn not_a_budget(text: &str) -> String {
    format!("“{}” is no number of tokens", clip_name(text))
}

/// Compacts what is archived of a session.
async fn compact_now(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let budget = match form.budget.trim() {
        "" => None,
        text => {
            let plain: String = text.chars().filter(|c| !", _.".contains(*c)).collect();
            let tokens = plain
                .parse()
                .map_err(|_| PageError::wrong(&not_a_budget(text), "type one such as 8,000"))?;
            Some(Tokens(tokens))
        }
    };
    let made = dashboard
        .compact
        .compact_archived(&form.name, budget)
        .await?;
    Ok(match made {
        Some(receipt) => format!("Compacted: {}.", describe_change(&receipt)),
        None => "It fits as it is: nothing was compacted.".to_owned(),
    })
}

/// Tries again what failed.
async fn retry(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let known = dashboard.compact.describe_session(&form.name).await?;
    if known.is_none() {
        return Err(PageError::not_found(&form.name));
    }
    let made = dashboard.compact.retry_compaction(&form.name).await?;
    Ok(match made {
        Some(receipt) => format!("Compacted: {}.", describe_change(&receipt)),
        None => "What is archived of it fits as it is. Its own program may try again at once, too."
            .to_owned(),
    })
}

/// Makes a session that stands before a compaction.
async fn undo(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &ActionForm,
) -> Result<ActionOutcome, PageError> {
    let record = find_compaction(dashboard, viewer, &form.name, &form.receipt).await?;
    let records = dashboard.compact.session_records(&form.name).await?;
    let is_this = |other: &CompactionRecord| other.receipt_id == record.receipt_id;
    let number = records.iter().position(is_this).unwrap_or(0) + 1;
    let mut branch = format!("{}~before-{number}", form.name);
    let mut again = 2;
    loop {
        let made = dashboard
            .compact
            .branch_before(&form.name, &form.receipt, &branch);
        match made.await {
            Err(compact::Error::NameTaken(_)) => {
                branch = format!("{}~before-{number}-{again}", form.name);
                again += 1;
            }
            made => break made?,
        }
    }
    Ok(ActionOutcome {
        words: format!(
            "This is {} as it was before compaction {number}. The other session is as it was.",
            form.name
        ),
        session: branch,
    })
}

/// Begins a session with what another one knew.
async fn start(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &ActionForm,
) -> Result<ActionOutcome, PageError> {
    let new = form.new.trim();
    if new.is_empty() || !viewer.may_see(new) {
        return Err(PageError::wrong(
            "the new session needs a name of its own",
            "go back and type one",
        ));
    }
    if new.chars().count() > LONGEST_NAME {
        return Err(PageError::wrong(
            &format!("a name has at most {LONGEST_NAME} characters"),
            "go back and type a shorter one",
        ));
    }
    let started = dashboard
        .compact
        .start_session(&form.name, &form.receipt, new);
    started.await?;
    Ok(ActionOutcome {
        session: new.to_owned(),
        words: "The session is on record. Give its first message to your agent.".to_owned(),
    })
}

/// Protects an entry from now on.
async fn pin(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &ActionForm,
) -> Result<String, PageError> {
    let name = find_entry_name(dashboard, viewer, form).await?;
    dashboard.compact.protect_entry(&form.name, name).await?;
    Ok("Pinned: it stands byte for byte in every view from now on.".to_owned())
}

/// Lets a protected entry go.
async fn unpin(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &ActionForm,
) -> Result<String, PageError> {
    let name = find_entry_name(dashboard, viewer, form).await?;
    dashboard.compact.release_entry(&form.name, name).await?;
    Ok("Unpinned: it may leave the view.".to_owned())
}

async fn find_entry_name(
    dashboard: &Dashboard,
    viewer: &Viewer,
    form: &ActionForm,
) -> Result<compact::message::EntryHash, PageError> {
    let record = find_compaction(dashboard, viewer, &form.name, &form.receipt).await?;
    let reading = dashboard
        .compact
        .read_compaction(&record.receipt_id)
        .await?;
    let name = reading.entry_name(form.at);
    name.ok_or_else(|| {
        let reason = "an entry that says nothing cannot be pinned";
        PageError::wrong(reason, "choose another one")
    })
}
