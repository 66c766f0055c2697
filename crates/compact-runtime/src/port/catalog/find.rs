//! What a person's name for something stands for: a receipt or a session, whole or by its beginning.
//!
//! Every command and binding that takes a name goes by this one order, so that a name means the same
//! everywhere. A session may be called like a receipt or the beginning of one, by chance or by somebody who
//! wants to stand for it: such a name is refused, but in a pointer, which names a receipt wherever we write one. What
//! always works says what it names: `receipt:ID`, `session:NAME`, and `history:ID` for all that a session held up to a
//! receipt.

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

/// What stands before a receipt's id and says that it is one.
pub(crate) const RECEIPT_SIGN: &str = "receipt:";
/// What stands before the receipt that the history ends with that is meant.
pub(crate) const HISTORY_SIGN: &str = "history:";
/// What stands before a session's whole id and says that it is one.
pub(crate) const SESSION_SIGN: &str = "session:";

/// Finds the receipt or the session that a name stands for: a whole receipt id, a whole session id, or
/// at least [`MIN_PREFIX`] characters with which one receipt or else one session begins. A name may say which:
/// `receipt:ID` and `history:ID` are the receipt, `session:NAME` is the session that is called just so.
pub async fn find_named_record(
    catalog: &dyn SessionCatalog,
    name: &str,
) -> Result<Option<NamedRecord>, CatalogError> {
    let signed = [RECEIPT_SIGN, HISTORY_SIGN].map(|sign| name.strip_prefix(sign));
    for id in signed.into_iter().flatten() {
        if let Some(receipt) = catalog.find_record(id).await? {
            let namesake = catalog.latest_record(name).await?;
            return one_of_two(name, receipt, namesake.as_ref()).map(Some);
        }
    }
    if let Some(session) = name.strip_prefix(SESSION_SIGN)
        && let Some(latest) = catalog.latest_record(session).await?
    {
        return refuse_namesake(catalog, name, latest).await.map(Some);
    }
    find_unsigned(catalog, name).await
}

/// A receipt, unless a session is called by all of its name.
fn one_of_two(
    name: &str,
    receipt: CompactionRecord,
    session: Option<&CompactionRecord>,
) -> Result<NamedRecord, CatalogError> {
    match session {
        None => Ok(NamedRecord::Receipt(receipt)),
        Some(_) => Err(CatalogError::ReceiptOrSession {
            name: name.to_owned(),
            receipt: receipt.receipt_id,
        }),
    }
}

/// The session that a signed name stands for, unless another one is called by all of the name.
async fn refuse_namesake(
    catalog: &dyn SessionCatalog,
    name: &str,
    latest: CompactionRecord,
) -> Result<NamedRecord, CatalogError> {
    match catalog.latest_record(name).await? {
        None => Ok(NamedRecord::Session(latest)),
        Some(other) => Err(CatalogError::TwoSessions {
            name: name.to_owned(),
            receipt: other.receipt_id,
            session: latest.session_id,
            latest: latest.receipt_id,
        }),
    }
}

async fn find_unsigned(
    catalog: &dyn SessionCatalog,
    name: &str,
) -> Result<Option<NamedRecord>, CatalogError> {
    match (
        catalog.find_record(name).await?,
        catalog.latest_record(name).await?,
    ) {
        (Some(receipt), session) => one_of_two(name, receipt, session.as_ref()).map(Some),
        (None, Some(latest)) => Ok(Some(NamedRecord::Session(latest))),
        (None, None) => find_by_beginning(catalog, name).await,
    }
}

/// Finds what the name in a pointer stands for: a receipt before a session that is called like the
/// beginning of its id.
pub async fn find_pointed_record(
    catalog: &dyn SessionCatalog,
    name: &str,
) -> Result<Option<CompactionRecord>, CatalogError> {
    if let Some(receipt) = catalog.find_record(name).await? {
        return Ok(Some(receipt));
    }
    let named = find_named_record(catalog, name).await?;
    Ok(named.map(NamedRecord::into_record))
}

/// Finds the only session that begins so.
async fn find_by_beginning(
    catalog: &dyn SessionCatalog,
    name: &str,
) -> Result<Option<NamedRecord>, CatalogError> {
    let Some(session) = session_that_begins(catalog, name).await? else {
        return Ok(None);
    };
    let latest = catalog.latest_record(&session).await?;
    Ok(latest.map(NamedRecord::Session))
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
