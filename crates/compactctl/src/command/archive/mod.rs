//! `archive`: look into the store of originals, check it, make room in it.

mod copy;
mod list;
mod prune;
mod rebuild;
mod show;
mod verify;

use crate::answer::Answer;
use crate::args::{Archive, Global};
use crate::failure::Failure;
use crate::report::Charset;
use crate::world::{World, block_on};

/// Runs what was asked of the archive.
pub fn run(command: &Archive, world: &World, global: &Global) -> Result<Answer, Failure> {
    let store = || world.store_to_read();
    block_on(async {
        match command {
            Archive::List => list::run(&store()?, world).await,
            Archive::Show { name } => show::run(&store()?, name, Charset::detect(global)).await,
            Archive::Verify => verify::run(world, global).await,
            Archive::Rebuild => rebuild::run(world, global).await,
            Archive::Prune(args) => prune::run(args, &store()?, world, global).await,
            Archive::Export { folder } => copy::export(&world.store_as_is()?, world, folder).await,
            Archive::Import { folder } => copy::import(world, folder).await,
        }
    })
}

/// Lets go what the configuration says may go; nothing unless it says so.
pub fn retain(world: &World) -> Result<(), Failure> {
    let retention = world.retention();
    if retention.days.is_none() && retention.max_bytes.is_none() {
        return Ok(());
    }
    let store = world.store_to_read()?;
    block_on(prune::retain(&store, world))
}
