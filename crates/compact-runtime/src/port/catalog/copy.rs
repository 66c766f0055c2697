//! From one catalog to another: every session with its records, events and last attempt.
//!
//! Two people may call two sessions alike. What stands under a name stays what it was: the session that
//! comes gets another name.

use std::collections::BTreeMap;

use super::{CatalogError, CompactionRecord, SessionCatalog};

/// How many characters of a receipt tell a session from another of its name.
const MARK: usize = 8;

/// The sessions that are called otherwise in another catalog, with what they are called there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRenames(BTreeMap<String, String>);

impl SessionRenames {
    /// Finds those whose name another session has in `to`: one with which they share no receipt.
    /// A session that comes again gets the name that it got before.
    pub async fn find(
        from: &dyn SessionCatalog,
        to: &dyn SessionCatalog,
    ) -> Result<SessionRenames, CatalogError> {
        let mut renames = BTreeMap::new();
        for session in from.sessions().await? {
            let id = session.session_id;
            let known = to.session_records(&id).await?;
            let coming = from.session_records(&id).await?;
            let is_known =
                |record: &CompactionRecord| known.iter().any(|k| k.receipt_id == record.receipt_id);
            if let Some(first) = coming.first().filter(|_| !known.is_empty())
                && !coming.iter().any(is_known)
            {
                let mark: String = first.receipt_id.chars().take(MARK).collect();
                renames.insert(id.clone(), format!("{id}@{mark}"));
            }
        }
        Ok(SessionRenames(renames))
    }

    /// Those sessions, each with its new name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(old, new)| (old.as_str(), new.as_str()))
    }

    fn name_of<'a>(&'a self, session: &'a str) -> &'a str {
        self.0.get(session).map_or(session, String::as_str)
    }
}

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
    renames: &SessionRenames,
) -> Result<CopiedRecords, CatalogError> {
    let mut copied = CopiedRecords::default();
    for session in from.sessions().await? {
        let id = &session.session_id;
        let name = renames.name_of(id);
        let known = to.session_records(name).await?;
        for record in from.session_records(id).await? {
            if !known.iter().any(|k| k.receipt_id == record.receipt_id) {
                to.save_record(&record.in_session(name)).await?;
                copied.records += 1;
            }
        }
        // Events are only ever appended, so those that are there are the first ones.
        let there = to.events(name).await?.len();
        for event in from.events(id).await?.iter().skip(there) {
            to.save_event(name, event).await?;
            copied.events += 1;
        }
        copy_attempt(from, to, (id, name)).await?;
        copied.sessions += 1;
    }
    Ok(copied)
}

async fn copy_attempt(
    from: &dyn SessionCatalog,
    to: &dyn SessionCatalog,
    (session, name): (&str, &str),
) -> Result<(), CatalogError> {
    let Some(last) = from.last_attempt(session).await? else {
        return Ok(());
    };
    let is_known = to.last_attempt(name).await?.as_ref() == Some(&last);
    match is_known {
        true => Ok(()),
        false => to.save_attempt(name, &last).await,
    }
}
