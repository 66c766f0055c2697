//! `completions`: a script that teaches a shell the command line.

use clap::CommandFactory;
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::args::{Cli, CompletionsArgs};

/// Generates the script.
pub(super) fn run(args: &CompletionsArgs) -> CommandAnswer {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "compactctl", &mut script);
    let json = json!({
        "shell": args.shell.to_string(),
        "script": String::from_utf8_lossy(&script),
    });
    CommandAnswer::new(json, String::new()).with_payload(Some(script))
}
