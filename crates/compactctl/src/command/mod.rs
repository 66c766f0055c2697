//! One file per command: translate the arguments, ask the engine, shape the answer.

mod archive;
mod catalog;
mod compact;
mod completions;
mod config;
mod convert;
#[cfg(feature = "dashboard")]
mod dashboard;
mod diff;
mod doctor;
#[cfg(feature = "eval")]
mod eval;
mod expand;
mod hook;
mod inspect;
#[cfg(feature = "gateway")]
mod launch;
mod man;
mod mcp;
mod models;
mod plan;
mod recall;
mod remember;
mod replay;
mod reset;
mod restore;
mod results;
mod run;
#[cfg(feature = "gateway")]
mod serve;
mod statusline;
mod top;
mod validate;
mod verify;

use std::cell::OnceCell;

use ::compact::config::IndexingMoment;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{Cli, Command, GlobalArgs};
use crate::failure::Failure;

/// A command that did what it was asked.
pub(crate) struct FinishedCommand {
    /// What it found.
    pub answer: CommandAnswer,
    /// What it worked with.
    app: Option<App>,
}

/// Runs the command that was asked for.
pub(crate) fn run(cli: &Cli) -> Result<FinishedCommand, Failure> {
    let used = OnceCell::new();
    let answer = run_with(cli, &used)?;
    let app = used.into_inner();
    Ok(FinishedCommand { answer, app })
}

/// Runs a command, and leaves what it worked with in `used`.
fn run_with(cli: &Cli, used: &OnceCell<App>) -> Result<CommandAnswer, Failure> {
    let global = &cli.global;
    let work_with = |loaded, work: &dyn Fn(&App) -> Result<CommandAnswer, Failure>| {
        let app = used.get_or_init(|| loaded);
        let answer = work(app).map_err(|failure| app.explain_failure(failure))?;
        Ok(answer.with_settings_files(app.config_files()))
    };
    // Whoever makes a view needs to know what the project wants of it; whoever reads does not.
    let with = |flags, work: &dyn Fn(&App) -> Result<CommandAnswer, Failure>| {
        work_with(App::load_with_flags(global, flags)?, work)
    };
    let under =
        |work: &dyn Fn(&App) -> Result<CommandAnswer, Failure>| work_with(App::load(global)?, work);
    match &cli.command {
        Command::Inspect(args) => with(Vec::new(), &|app| inspect::run(args, app, global)),
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
        Command::Expand(args) => under(&|app| expand::run(args, app, global)),
        Command::Remember(args) => under(&|app| remember::run(args, app, global)),
        Command::Archive { command } => under(&|app| archive::run(command, app, global)),
        Command::Catalog { command } => under(&|app| catalog::run(command, app)),
        Command::Replay(args) => replay::run(args, global),
        #[cfg(feature = "eval")]
        Command::Eval(args) => with(args.writer.config_flags(), &|app| {
            eval::run(args, app, global)
        }),
        #[cfg(not(feature = "eval"))]
        Command::Eval(_) => Err(Failure::without_feature("eval")),
        Command::Mcp => mcp::run(App::load(global)?, global),
        Command::Reset(args) => reset::run(args, global),
        Command::Run(args) => run::run(args, global),
        #[cfg(feature = "dashboard")]
        Command::Dashboard(args) => under(&|app| dashboard::run(args, app, global)),
        #[cfg(not(feature = "dashboard"))]
        Command::Dashboard(_) => Err(Failure::without_feature("dashboard")),
        #[cfg(feature = "gateway")]
        Command::Serve(args) => with(args.config_flags(), &|app| serve::run(args, app, global)),
        #[cfg(not(feature = "gateway"))]
        Command::Serve(_) => Err(Failure::without_feature("gateway")),
        #[cfg(feature = "gateway")]
        Command::Launch(args) => launch::run(args, global),
        #[cfg(not(feature = "gateway"))]
        Command::Launch(_) => Err(Failure::without_feature("gateway")),
        Command::Models(args) => models::run(args),
        Command::Config { command } => config::run(command, global),
        Command::Hook(args) => hook::run(args, global),
        Command::Statusline(args) => Ok(statusline::run(args)),
        Command::Top(args) => under(&|app| top::run(args, app, global)),
        Command::Doctor => doctor::run(global),
        Command::Completions(args) => Ok(completions::run(args)),
        Command::Man => man::run(),
    }
}

impl FinishedCommand {
    /// Does what is left once the answer is out: lets go what may go, and has what was archived made
    /// findable. If that fails, the next compaction or `recall` does it, so nobody need know.
    pub(crate) fn follow_up(&self, global: &GlobalArgs) {
        if let Some(app) = self.app.as_ref().filter(|_| self.answer.archived) {
            let _ = app.block_on(async { Ok(app.compact().apply_retention().await?) });
            if app.compact().config().storage.indexing == IndexingMoment::Background {
                archive::start_indexing(app, global);
            }
        }
    }
}
