//! One file per command: translate the arguments, ask the engine, shape the answer.

mod archive;
mod catalog;
mod compact;
mod completions;
mod config;
mod convert;
mod diff;
mod eval;
mod expand;
mod hook;
mod inspect;
mod man;
mod mcp;
mod models;
mod plan;
mod recall;
mod remember;
mod replay;
mod restore;
mod run;
mod sheet;
mod validate;
mod verify;

use crate::answer::Answer;
use crate::args::{Cli, Command, Global};
use crate::failure::Failure;
use crate::world::World;

/// Runs the command that was asked for.
pub fn run(cli: &Cli) -> Result<Answer, Failure> {
    let global = &cli.global;
    let world = || World::load(global);
    let with = |flags| World::load_with(global, flags);
    match &cli.command {
        Command::Inspect(args) => inspect::run(args, &world()?, global),
        Command::Plan(args) => plan::run(args, &with(args.manner.writer.flags())?, global),
        Command::Compact(args) => compact::run(args, &with(args.manner.writer.flags())?, global),
        Command::Convert(args) => convert::run(args, global),
        Command::Diff(args) => diff::run(args, &world()?, global),
        Command::Validate(args) => validate::run(args, global),
        Command::Verify(args) => verify::run(args, &world()?, global),
        Command::Restore(args) => restore::run(args, &world()?),
        Command::Recall(args) => recall::run(args, &world()?, global),
        Command::Expand(args) => expand::run(args, &world()?),
        Command::Remember(args) => remember::run(args, &world()?, global),
        Command::Archive { command } => archive::run(command, &world()?, global),
        Command::Catalog { command } => catalog::run(command, &world()?),
        Command::Replay(args) => replay::run(args, global),
        Command::Eval(args) => eval::run(args, &with(args.writer.flags())?, global),
        Command::Mcp => mcp::run(world()?, global),
        Command::Run(args) => run::run(args, global),
        Command::Models(args) => models::run(args),
        Command::Config { command } => config::run(command, global),
        Command::Hook(args) => hook::run(args, global),
        Command::Completions(args) => Ok(completions::run(args)),
        Command::Man => man::run(),
    }
}

/// What is left to do once the answer is out: let go what may go, and make what was archived
/// findable. If that fails, the next compaction or `recall` does it, so nobody need be told.
pub fn afterwards(cli: &Cli, answer: &Answer) {
    if answer.archived {
        let world = World::load(&Global {
            quiet: true,
            ..cli.global.clone()
        });
        let _ = world.and_then(|world| {
            archive::retain(&world)?;
            recall::follow(&world)
        });
    }
}
