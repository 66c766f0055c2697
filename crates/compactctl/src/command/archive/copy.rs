//! `archive export` and `archive import`: everything, from one store to another.
//!
//! The other one is always a folder, laid out like a data directory: what is exported can be used as
//! one, and a data directory can be imported. Originals go first, so that no receipt ever names one
//! that is not there.

use std::path::Path;

use compact_adapters::config::Storage;
use compact_adapters::store::Stores;
use compact_runtime::port::{archive, catalog};
use serde_json::json;

use crate::answer::Answer;
use crate::failure::{Code, Failure};
use crate::report::number::{bytes, count};
use crate::world::{Store, World};

/// Copies everything into a folder.
pub async fn export(store: &Store, world: &World, folder: &Path) -> Result<Answer, Failure> {
    let other = stores_in(folder)?;
    let target = Store {
        archive: other.archive()?,
        catalog: other.catalog()?,
    };
    let place = world.stores().archive_place();
    copy(store, &target, &place, &other.archive_place()).await
}

/// Copies everything from a folder.
pub async fn import(world: &World, folder: &Path) -> Result<Answer, Failure> {
    let other = stores_in(folder)?;
    if !other.exist() {
        let message = format!("there is no store in {}", folder.display());
        return Err(Failure::new(Code::Input, message)
            .help("name a data directory, or a folder that `archive export` wrote"));
    }
    let source = Store {
        archive: other.archive()?,
        catalog: other.catalog()?,
    };
    let target = world.store_to_write()?;
    let place = world.stores().archive_place();
    copy(&source, &target, &other.archive_place(), &place).await
}

/// The store in a folder, in the clear as `archive export` writes it.
fn stores_in(folder: &Path) -> Result<Stores, Failure> {
    let stores = Stores::new(&Storage::default(), folder);
    stores.map_err(|error| Failure::of(Code::Usage, &error))
}

async fn copy(from: &Store, to: &Store, source: &str, target: &str) -> Result<Answer, Failure> {
    let packs = archive::copy(&*from.archive, &*to.archive).await?;
    let records = catalog::copy(&*from.catalog, &*to.catalog).await?;
    let json = json!({
        "from": source,
        "to": target,
        "packs": packs.packs,
        "bytes": packs.bytes,
        "sessions": records.sessions,
        "records": records.records,
    });
    let human = format!(
        "copied {} ({}) and {} from {source} to {target}\n",
        count(packs.packs, "pack", "packs"),
        bytes(packs.bytes),
        count(records.records, "receipt", "receipts"),
    );
    Ok(Answer::new(json, human))
}
