//! `archive export` and `archive import`: everything, from one store to another.
//!
//! The other one is always a folder, laid out like a data directory: what is exported can be used as
//! one, and a data directory can be imported. A session that is called like another one there gets a
//! name of its own, which is said. A receipt whose packs are not there is left out and named (exit code 5).

use std::collections::BTreeMap;
use std::path::Path;

use compact::config::StorageConfig;
use compact::store::{CopiedStore, StorePair, Stores};
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::failure::{Failure, FailureCode};
use crate::report::number::{format_bytes, format_count};
use crate::report::text::one_line;

/// Copies everything into a folder.
pub(super) async fn export(app: &App, folder: &Path) -> Result<CommandAnswer, Failure> {
    let other = stores_in(folder)?;
    let target = StorePair {
        archive: other.open_archive()?,
        catalog: other.open_catalog()?,
    };
    let copied = app.compact().export_store(&target).await?;
    let place = app.stores().archive_location();
    Ok(report(&copied, &place, &other.archive_location()))
}

/// Copies everything from a folder.
pub(super) async fn import(app: &App, folder: &Path) -> Result<CommandAnswer, Failure> {
    let other = stores_in(folder)?;
    if !other.has_data() {
        let message = format!("there is no store in {}", folder.display());
        return Err(Failure::new(FailureCode::Input, message)
            .help("name a data directory, or a folder that `archive export` wrote"));
    }
    let source = StorePair {
        archive: other.open_archive()?,
        catalog: other.open_catalog_to_read()?,
    };
    let copied = app.compact().import_store(&source).await?;
    let place = app.stores().archive_location();
    Ok(report(&copied, &other.archive_location(), &place))
}

/// The store in a folder, in the clear as `archive export` writes it.
fn stores_in(folder: &Path) -> Result<Stores, Failure> {
    let stores = Stores::new(&StorageConfig::default(), folder);
    stores.map_err(|error| Failure::from_error(FailureCode::Usage, &error))
}

fn report(copied: &CopiedStore, source: &str, target: &str) -> CommandAnswer {
    let CopiedStore {
        packs,
        records,
        renames,
    } = copied;
    let json = json!({
        "from": source,
        "to": target,
        "packs": packs.packs,
        "bytes": packs.bytes,
        "sessions": records.sessions,
        "records": records.records,
        "renamed": renames.iter().collect::<BTreeMap<_, _>>(),
        "left_out": renames.lost_receipts(),
    });
    let mut human = format!(
        "copied {} ({}) and {} from {source} to {target}\n",
        format_count(packs.packs, "pack", "packs"),
        format_bytes(packs.bytes),
        format_count(records.records, "receipt", "receipts"),
    );
    for (session, name) in renames.iter() {
        let [session, name] = [session, name].map(|name| one_line(name, 80));
        human.push_str(&format!(
            "  session {session} is called {name} there: its name means something else\n"
        ));
    }
    let lost = renames.lost_receipts();
    if lost.is_empty() {
        return CommandAnswer::new(json, human);
    }
    for receipt in lost {
        let receipt = one_line(receipt, 80);
        human.push_str(&format!(
            "  receipt {receipt} is left out: {source} lacks packs that it names\n"
        ));
    }
    CommandAnswer::new(json, human).with_code(FailureCode::Check as u8)
}
