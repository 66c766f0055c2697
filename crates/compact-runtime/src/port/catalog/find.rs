//! What a person's name for something stands for: a receipt or a session, whole or by its beginning.
//!
//! Every command and binding that takes a name goes by this one order, so that a name means the same
//! everywhere. A whole id comes before the beginning of another.

use super::{CatalogError, CompactionRecord, MIN_PREFIX, SessionCatalog};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedRecord {
    /// A receipt: its compaction.
    Receipt(CompactionRecord),
    /// A session: its last compaction.
    Session(CompactionRecord),
}

impl NamedRecord {
    /// The compaction that is meant, whichever way it was named.
    pub fn into_record(self) -> CompactionRecord {
        match self {
            NamedRecord::Receipt(record) | NamedRecord::Session(record) => record,
        }
    }
}

/// Finds the receipt or the session that a name stands for: a whole receipt id, a whole session id, or
/// at least [`MIN_PREFIX`] characters with which one receipt or else one session begins.
pub async fn find_named_record(
    catalog: &dyn SessionCatalog,
    name: &str,
) -> Result<Option<NamedRecord>, CatalogError> {
    let by_receipt = catalog.find_record(name).await;
    if let Ok(Some(record)) = &by_receipt
        && record.receipt_id == name
    {
        return Ok(Some(NamedRecord::Receipt(record.clone())));
    }
    if let Some(record) = catalog.latest_record(name).await? {
        return Ok(Some(NamedRecord::Session(record)));
    }
    if let Some(record) = by_receipt? {
        return Ok(Some(NamedRecord::Receipt(record)));
    }
    let Some(session) = session_that_begins(catalog, name).await? else {
        return Ok(None);
    };
    Ok(catalog
        .latest_record(&session)
        .await?
        .map(NamedRecord::Session))
}

/// The id of the only session that begins so.
async fn session_that_begins(
    catalog: &dyn SessionCatalog,
    prefix: &str,
) -> Result<Option<String>, CatalogError> {
    if prefix.chars().count() < MIN_PREFIX {
        return Ok(None);
    }
    let sessions = catalog.sessions().await?.into_iter();
    let mut ids = sessions.map(|info| info.session_id);
    let first = ids.find(|id| id.starts_with(prefix));
    match ids.any(|id| id.starts_with(prefix)) {
        true => Err(CatalogError::Ambiguous {
            prefix: prefix.to_owned(),
        }),
        false => Ok(first),
    }
}
