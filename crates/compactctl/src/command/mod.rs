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
mod results;
mod run;
mod validate;
mod verify;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{Cli, Command, GlobalArgs};
use crate::failure::Failure;

/// Runs the command that was asked for.
pub fn run(cli: &Cli) -> Result<CommandAnswer, Failure> {
    let global = &cli.global;
    let with = |flags, work: &dyn Fn(&App) -> Result<CommandAnswer, Failure>| {
        let app = App::load_with_flags(global, flags)?;
        Ok(work(&app)?.with_settings_files(app.config_files()))
    };
    let under = |work: &dyn Fn(&App) -> Result<CommandAnswer, Failure>| with(Vec::new(), work);
    match &cli.command {
        Command::Inspect(args) => under(&|app| inspect::run(args, app, global)),
        Command::Plan(args) => with(args.manner.writer.config_flags(), &|app| {
            plan::run(args, app, global)
        }),
        Command::Compact(args) => with(args.manner.writer.config_flags(), &|app| {
            compact::run(args, app, global)
        }),
        Command::Convert(args) => convert::run(args, global),
        Command::Diff(args) => under(&|app| diff::run(args, app, global)),
        Command::Validate(args) => validate::run(args, global),
        Command::Verify(args) => under(&|app| verify::run(args, app, global)),
        Command::Restore(args) => under(&|app| restore::run(args, app)),
        Command::Recall(args) => under(&|app| recall::run(args, app, global)),
        Command::Expand(args) => under(&|app| expand::run(args, app)),
        Command::Remember(args) => under(&|app| remember::run(args, app, global)),
        Command::Archive { command } => under(&|app| archive::run(command, app, global)),
        Command::Catalog { command } => under(&|app| catalog::run(command, app)),
        Command::Replay(args) => replay::run(args, global),
        Command::Eval(args) => with(args.writer.config_flags(), &|app| {
            eval::run(args, app, global)
        }),
        Command::Mcp => mcp::run(App::load(global)?, global),
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
pub fn run_follow_up(cli: &Cli, answer: &CommandAnswer) {
    if answer.archived {
        let app = App::load(&GlobalArgs {
            quiet: true,
            ..cli.global.clone()
        });
        let _ = app.and_then(|app| {
            app.block_on(async { Ok(app.compact().apply_retention().await?) })?;
            recall::update_index(&app)
        });
    }
}
