//! From one catalog to another: every session with its records, events and last attempt.

use super::{CatalogError, SessionCatalog};

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedRecords {
    /// Sessions that were looked at.
    pub sessions: u64,
    /// Records that the other catalog did not have.
    pub records: u64,
    /// Events that it did not have.
    pub events: u64,
}

/// Copies what `to` does not have; repeating it copies only what came since.
pub async fn copy_catalog(
    from: &dyn SessionCatalog,
    to: &dyn SessionCatalog,
) -> Result<CopiedRecords, CatalogError> {
    let mut copied = CopiedRecords::default();
    for session in from.sessions().await? {
        let id = &session.session_id;
        let known = to.session_records(id).await?;
        for record in from.session_records(id).await? {
            if !known.iter().any(|k| k.receipt_id == record.receipt_id) {
                to.save_record(&record).await?;
                copied.records += 1;
            }
        }
        // Events are only ever appended, so those that are there are the first ones.
        let there = to.events(id).await?.len();
        for event in from.events(id).await?.iter().skip(there) {
            to.save_event(id, event).await?;
            copied.events += 1;
        }
        copy_attempt(from, to, id).await?;
        copied.sessions += 1;
    }
    Ok(copied)
}

async fn copy_attempt(
    from: &dyn SessionCatalog,
    to: &dyn SessionCatalog,
    session: &str,
) -> Result<(), CatalogError> {
    let Some(last) = from.last_attempt(session).await? else {
        return Ok(());
    };
    let is_known = to.last_attempt(session).await?.as_ref() == Some(&last);
    match is_known {
        true => Ok(()),
        false => to.save_attempt(session, &last).await,
    }
}
