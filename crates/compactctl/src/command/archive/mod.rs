//! `archive`: look into the store of originals, check it, make room in it.

mod copy;
mod index;
mod list;
mod prune;
mod rebuild;
mod show;
mod verify;

pub(super) use index::start_indexing;
pub(super) use list::SESSION_ID_COLUMNS;

use compact::store::yield_to_others;

use crate::answer::CommandAnswer;
use crate::app::{App, block_on};
use crate::args::{ArchiveCommand, GlobalArgs};
use crate::failure::Failure;
use crate::report::Charset;

/// Runs what was asked of the archive.
pub(super) fn run(
    command: &ArchiveCommand,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let store = || app.compact().store_to_read();
    block_on(async {
        match command {
            ArchiveCommand::List => list::run(&store()?, app).await,
            ArchiveCommand::Show { name } => {
                show::run(&store()?, name, Charset::detect(global)).await
            }
            ArchiveCommand::Verify => verify::run(app, global).await,
            ArchiveCommand::Rebuild => rebuild::run(app, global).await,
            ArchiveCommand::Index { low_priority } => {
                if *low_priority {
                    yield_to_others();
                }
                index::run(app).await
            }
            ArchiveCommand::Prune(args) => prune::run(args, app, global).await,
            ArchiveCommand::Export { folder } => copy::export(app, folder).await,
            ArchiveCommand::Import { folder } => copy::import(app, folder).await,
        }
    })
}
