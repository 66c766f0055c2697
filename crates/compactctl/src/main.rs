//! `compactctl`: the Compact engine on the command line.
//!
//! A door: it translates arguments and files into requests, and answers into tables, JSON and exit
//! codes. What to keep, when to compact and where to store it is decided behind it.

mod answer;
mod app;
mod append;
mod args;
mod artifact;
mod command;
mod failure;
mod host;
mod input;
mod interrupt;
mod output;
mod progress;
mod report;
mod stop;
mod telemetry;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::answer::CommandAnswer;
use crate::args::{Cli, GlobalArgs};
use crate::failure::Failure;

fn main() -> ExitCode {
    let arguments = words::put_words_last(std::env::args_os().collect());
    match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(&cli),
        Err(error) => print_usage_error(&error, &arguments),
    }
}

fn run(cli: &Cli) -> ExitCode {
    cli.global.color.apply();
    let result = command::run(cli).and_then(|finished| {
        let code = print_answer(&finished.answer, &cli.global)?;
        finished.follow_up(&cli.global);
        Ok(code)
    });
    let code = match result {
        Ok(code) => code,
        Err(failure) => {
            failure.show(cli.global.json);
            failure.exit_code()
        }
    };
    telemetry::flush_collector(cli.global.quiet);
    code
}

/// Hands out what a command made: JSON alone, or the payload and the words about it.
fn print_answer(answer: &CommandAnswer, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    if global.json {
        output::print_line(&answer.json.to_string())?;
    } else if let Some(payload) = &answer.payload {
        output::print_bytes(payload)?;
        if !global.quiet {
            output::print_stderr(&answer.human);
        }
    } else if !global.quiet {
        output::print_styled(&answer.human)?;
    }
    Ok(ExitCode::from(answer.code))
}

/// Help and version are answers; anything else that the parser says is bad usage.
fn print_usage_error(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let is_answer = error.exit_code() == 0;
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    if !is_answer && wants_json {
        let failure = Failure::usage(first_line(&error.to_string()), "see `compactctl --help`");
        failure.show(true);
        return failure.exit_code();
    }
    // A closed pipe is the reader's choice.
    let _ = error.print();
    ExitCode::from(if is_answer || is_hook_call(arguments) {
        0
    } else {
        2
    })
}

/// True for a call by an agent, to which 2 means that it must not compact.
fn is_hook_call(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let acts = ["install", "uninstall", "status"];
    words.next() == Some("hook") && !words.any(|word| acts.contains(&word))
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}
