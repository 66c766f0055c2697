//! From one catalog to another: every session with its records, events and last attempt.
//!
//! What is on record stays as it is: a session may come under another name, and a receipt that is known
//! keeps the record that it has. Who chooses the names is no business of this file.

use std::collections::{BTreeMap, BTreeSet};

use super::{CatalogError, CompactionRecord, SessionCatalog};

/// What sessions of one catalog are called in another, where it is not the same, which of them have
/// nothing to bring, and which receipts stay away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRenames {
    names: BTreeMap<String, String>,
    complete: BTreeSet<String>,
    lost: BTreeSet<String>,
}

impl SessionRenames {
    /// Gives a session another name there.
    pub fn rename(&mut self, session: &str, name: String) {
        if session != name {
            self.names.insert(session.to_owned(), name);
        }
    }

    /// Leaves a session out, since everything of it is there.
    pub fn leave_out(&mut self, session: &str) {
        self.complete.insert(session.to_owned());
    }

    /// Leaves a receipt out, since what it names is not there.
    pub fn leave_receipt_out(&mut self, receipt: &str) {
        self.lost.insert(receipt.to_owned());
    }

    /// The receipts that are left out, since what they name is not there.
    pub fn lost_receipts(&self) -> &BTreeSet<String> {
        &self.lost
    }

    /// The sessions that are called otherwise, each with its new name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.names.iter();
        names.map(|(old, new)| (old.as_str(), new.as_str()))
    }

    /// The name of a session there; `None` for one that is left out.
    pub fn name_of<'a>(&'a self, session: &'a str) -> Option<&'a str> {
        let name = self.names.get(session).map_or(session, String::as_str);
        (!self.complete.contains(session)).then_some(name)
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
        copied.sessions += 1;
        let id = &session.session_id;
        let Some(name) = renames.name_of(id) else {
            continue;
        };
        for record in find_missing_records(from, to, renames, id).await? {
            to.save_record(&record).await?;
            copied.records += 1;
        }
        // Events are only ever appended, so those that are there are the first ones.
        let there = to.events(name).await?.len();
        for event in from.events(id).await?.iter().skip(there) {
            to.save_event(name, event).await?;
            copied.events += 1;
        }
        copy_attempt(from, to, (id, name)).await?;
    }
    Ok(copied)
}

/// Returns the records that a session lacks under its name in `to`, as they are to be recorded there.
pub async fn find_missing_records(
    from: &dyn SessionCatalog,
    to: &dyn SessionCatalog,
    renames: &SessionRenames,
    session: &str,
) -> Result<Vec<CompactionRecord>, CatalogError> {
    let Some(name) = renames.name_of(session) else {
        return Ok(Vec::new());
    };
    let known = to.session_records(name).await?;
    let known: BTreeSet<&str> = known.iter().map(|record| &*record.receipt_id).collect();
    let mut missing = Vec::new();
    for record in from.session_records(session).await? {
        if known.contains(&*record.receipt_id) || renames.lost.contains(&record.receipt_id) {
            continue;
        }
        // A receipt names one input: what is on record of it counts, whatever somebody else says.
        let ours = to.find_record(&record.receipt_id).await?;
        let ours = ours.filter(|ours| ours.receipt_id == record.receipt_id);
        missing.push(ours.unwrap_or(record).in_session(name));
    }
    Ok(missing)
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
