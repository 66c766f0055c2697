//! `man`: one manual page with every command.

use std::io;

use clap::CommandFactory;
use clap_mangen::Man;
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::args::Cli;
use crate::failure::{Failure, FailureCode};

/// Generates the page.
pub(super) fn run() -> Result<CommandAnswer, Failure> {
    let page =
        render_page().map_err(|error| Failure::from_error(FailureCode::Unexpected, &error))?;
    let json = json!({ "man": String::from_utf8_lossy(&page) });
    Ok(CommandAnswer::new(json, String::new()).with_payload(Some(page)))
}

fn render_page() -> io::Result<Vec<u8>> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    render_commands(&command, "compactctl", &mut page)?;
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// Each command with its options, the commands within it after it.
fn render_commands(command: &clap::Command, path: &str, page: &mut Vec<u8>) -> io::Result<()> {
    for sub in command.get_subcommands() {
        let path = format!("{path} {}", sub.get_name());
        // Options of every command are told once, at the top.
        let own = sub.clone().mut_args(|arg| {
            let global = arg.is_global_set();
            arg.hide(global)
        });
        let man = Man::new(own);
        let mut section = Vec::new();
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        page.extend(under_heading(&path, &String::from_utf8_lossy(&section)).into_bytes());
        render_commands(sub, &path, page)?;
    }
    Ok(())
}

/// A command's sections, one level below its own heading.
fn under_heading(path: &str, section: &str) -> String {
    let lowered = section
        .replace("\n.SH ", "\n.SS ")
        .replacen(".SH ", ".SS ", 1);
    format!(".SH \"{}\"\n{lowered}", path.to_uppercase())
}
