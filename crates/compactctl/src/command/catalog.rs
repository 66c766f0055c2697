//! `catalog`: the database of receipts, and copies of it from one place to another.

use std::path::Path;
use std::sync::Arc;

use compact_adapters::config::Storage;
use compact_adapters::store::Stores;
use compact_runtime::port::catalog::{SessionCatalog, copy};
use serde_json::json;

use crate::answer::Answer;
use crate::args::{Catalog, CatalogCopy};
use crate::failure::{Code, Failure};
use crate::report::number::count;
use crate::world::{World, block_on};

/// Runs what was asked of the catalog.
pub fn run(command: &Catalog, world: &World) -> Result<Answer, Failure> {
    match command {
        Catalog::Migrate => migrate(world),
        Catalog::Copy(args) => copied(args, world),
    }
}

fn migrate(world: &World) -> Result<Answer, Failure> {
    let place = world.stores().catalog_place();
    let versions = match world.stores().shared_catalog() {
        Some(shared) => Some(block_on(async { Ok(shared.migrate().await?) })?),
        // Opening a file brings it up to date, and there is nobody to tell from which version.
        None => world.stores().catalog().map(|_| None)?,
    };
    let human = match versions {
        Some((before, now)) if before < now => format!("{place}: schema {before} → {now}\n"),
        Some((_, now)) => format!("{place}: schema {now}, nothing to do\n"),
        None => format!("{place}: up to date\n"),
    };
    let json = json!({
        "catalog": place,
        "schema_before": versions.map(|(before, _)| before),
        "schema": versions.map(|(_, now)| now),
    });
    Ok(Answer::new(json, human))
}

fn copied(args: &CatalogCopy, world: &World) -> Result<Answer, Failure> {
    let own = world.stores().clone();
    let (from, to) = match (&args.from, &args.to) {
        (Some(from), _) => (other(from)?, own),
        (None, Some(to)) => (own, other(to)?),
        (None, None) => (own.clone(), own),
    };
    let (from_place, to_place) = (from.catalog_place(), to.catalog_place());
    if from_place == to_place {
        return Err(Failure::usage(
            format!("{from_place} would be copied onto itself"),
            "name the other catalog with --from or --to, and the own one in storage.catalog",
        ));
    }
    let copied = block_on(async {
        let (from, to) = (read(&from)?, to.catalog()?);
        Ok(copy(&*from, &*to).await?)
    })?;
    let json = json!({
        "from": from_place,
        "to": to_place,
        "sessions": copied.sessions,
        "records": copied.records,
        "events": copied.events,
    });
    let human = format!(
        "copied {} of {} from {from_place} to {to_place}\n",
        count(copied.records, "compaction", "compactions"),
        count(copied.sessions, "session", "sessions"),
    );
    Ok(Answer::new(json, human))
}

/// A catalog that must be there already.
fn read(stores: &Stores) -> Result<Arc<dyn SessionCatalog>, Failure> {
    if !stores.exist() {
        let place = stores.catalog_place();
        return Err(Failure::new(
            Code::Input,
            format!("there is no catalog at {place}"),
        ));
    }
    Ok(stores.catalog()?)
}

/// The catalog in a folder or at an address.
fn other(place: &str) -> Result<Stores, Failure> {
    let mut storage = Storage::default();
    if place.contains("://") {
        let address = place.parse::<compact_adapters::postgres::Address>();
        address.map_err(|error| Failure::of(Code::Usage, &error).about("the address"))?;
        storage.catalog = Some(place.to_owned());
    }
    let stores = Stores::new(&storage, Path::new(place));
    stores.map_err(|error| Failure::of(Code::Usage, &error))
}
