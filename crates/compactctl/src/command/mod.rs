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
    let with = |flags, work: &dyn Fn(&World) -> Result<Answer, Failure>| {
        let world = World::load_with(global, flags)?;
        Ok(work(&world)?.naming(world.files()))
    };
    let under = |work: &dyn Fn(&World) -> Result<Answer, Failure>| with(Vec::new(), work);
    match &cli.command {
        Command::Inspect(args) => under(&|world| inspect::run(args, world, global)),
        Command::Plan(args) => with(args.manner.writer.flags(), &|world| {
            plan::run(args, world, global)
        }),
        Command::Compact(args) => with(args.manner.writer.flags(), &|world| {
            compact::run(args, world, global)
        }),
        Command::Convert(args) => convert::run(args, global),
        Command::Diff(args) => under(&|world| diff::run(args, world, global)),
        Command::Validate(args) => validate::run(args, global),
        Command::Verify(args) => under(&|world| verify::run(args, world, global)),
        Command::Restore(args) => under(&|world| restore::run(args, world)),
        Command::Recall(args) => under(&|world| recall::run(args, world, global)),
        Command::Expand(args) => under(&|world| expand::run(args, world)),
        Command::Remember(args) => under(&|world| remember::run(args, world, global)),
        Command::Archive { command } => under(&|world| archive::run(command, world, global)),
        Command::Catalog { command } => under(&|world| catalog::run(command, world)),
        Command::Replay(args) => replay::run(args, global),
        Command::Eval(args) => with(args.writer.flags(), &|world| eval::run(args, world, global)),
        Command::Mcp => mcp::run(World::load(global)?, global),
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
