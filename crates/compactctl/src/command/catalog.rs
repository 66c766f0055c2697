//! `catalog`: the database of receipts, and copies of it from one place to another.

use std::path::Path;
use std::sync::Arc;

use compact::config::StorageConfig;
use compact::store::{SessionCatalog, SessionRenames, Stores, copy_catalog};
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::{App, block_on};
use crate::args::{CatalogCommand, CatalogCopyArgs};
use crate::failure::{Failure, FailureCode};
use crate::report::number::format_count;

/// Runs what was asked of the catalog.
pub(super) fn run(command: &CatalogCommand, app: &App) -> Result<CommandAnswer, Failure> {
    match command {
        CatalogCommand::Migrate => migrate(app),
        CatalogCommand::Copy(args) => copy_receipts(args, app),
    }
}

fn migrate(app: &App) -> Result<CommandAnswer, Failure> {
    let place = app.stores().catalog_location();
    let versions = match app.stores().shared_catalog() {
        Some(shared) => Some(block_on(async { Ok(shared.migrate().await?) })?),
        // Opening a file brings it up to date, and there is nobody to tell from which version.
        None => app.stores().open_catalog().map(|_| None)?,
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
    Ok(CommandAnswer::new(json, human))
}

fn copy_receipts(args: &CatalogCopyArgs, app: &App) -> Result<CommandAnswer, Failure> {
    let own = app.stores().clone();
    let (from, to) = match (&args.from, &args.to) {
        (Some(from), _) => (stores_at(from)?, own),
        (None, Some(to)) => (own, stores_at(to)?),
        (None, None) => (own.clone(), own),
    };
    let (from_place, to_place) = (from.catalog_location(), to.catalog_location());
    if from_place == to_place {
        return Err(Failure::usage(
            format!("{from_place} would be copied onto itself"),
            "name the other catalog with --from or --to; storage.catalog names this one",
        ));
    }
    let copied = block_on(async {
        let (from, to) = (open_existing_catalog(&from)?, to.open_catalog()?);
        Ok(copy_catalog(&*from, &*to, &SessionRenames::default()).await?)
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
        format_count(copied.records, "compaction", "compactions"),
        format_count(copied.sessions, "session", "sessions"),
    );
    Ok(CommandAnswer::new(json, human))
}

/// A catalog that must be there already.
fn open_existing_catalog(stores: &Stores) -> Result<Arc<dyn SessionCatalog>, Failure> {
    if !stores.has_data() {
        let place = stores.catalog_location();
        return Err(Failure::new(
            FailureCode::Input,
            format!("there is no catalog at {place}"),
        ));
    }
    Ok(stores.open_catalog()?)
}

/// The catalog in a folder or at an address.
fn stores_at(place: &str) -> Result<Stores, Failure> {
    let mut storage = StorageConfig::default();
    if place.contains("://") {
        let address = place.parse::<compact::store::postgres::PostgresAddress>();
        address.map_err(|error| {
            Failure::from_error(FailureCode::Usage, &error).with_context("the address")
        })?;
        storage.catalog = Some(place.to_owned());
    }
    let stores = Stores::new(&storage, Path::new(place));
    stores.map_err(|error| Failure::from_error(FailureCode::Usage, &error))
}
