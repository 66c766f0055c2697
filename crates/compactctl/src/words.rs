//! The words of `recall`, which may look like options: `pnpm --filter api dev` is a question too.
//!
//! The parser knows options or words behind `--`, not words among options. So what is no option of ours is put
//! behind the options before the parser sees it; nothing is changed for any other command.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;

/// The command whose words are anything.
const COMMAND: &str = "recall";

/// Returns the arguments with the words of a search behind `--`.
pub(crate) fn put_words_last(arguments: Vec<OsString>) -> Vec<OsString> {
    let parser = Cli::command();
    let Some(recall) = parser.find_subcommand(COMMAND) else {
        return arguments;
    };
    let known: Vec<&Arg> = parser
        .get_arguments()
        .chain(recall.get_arguments())
        .collect();
    let mut rest = arguments.iter();
    let mut ordered: Vec<OsString> = rest.next().into_iter().cloned().collect();
    if !take_options_before(&mut rest, &known, &parser, &mut ordered) {
        return arguments;
    }
    let mut words: Vec<OsString> = Vec::new();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            words.extend(rest.by_ref().cloned());
        } else if let Some(option) = find_option(argument, &known) {
            ordered.push(argument.clone());
            ordered.extend(
                option
                    .value_after(argument)
                    .then(|| rest.next())
                    .flatten()
                    .cloned(),
            );
        } else {
            words.push(argument.clone());
        }
    }
    if !words.is_empty() {
        ordered.push("--".into());
        ordered.extend(words);
    }
    ordered
}

/// Takes what stands before the command and the command itself; false where it is another one.
fn take_options_before<'a>(
    rest: &mut impl Iterator<Item = &'a OsString>,
    known: &[&Arg],
    parser: &Command,
    ordered: &mut Vec<OsString>,
) -> bool {
    while let Some(argument) = rest.next() {
        ordered.push(argument.clone());
        match find_option(argument, known) {
            Some(option) => {
                let value = option.value_after(argument).then(|| rest.next()).flatten();
                ordered.extend(value.cloned());
            }
            None => {
                let named = argument
                    .to_str()
                    .and_then(|name| parser.find_subcommand(name));
                return named.is_some_and(|command| command.get_name() == COMMAND);
            }
        }
    }
    false
}

/// An option of ours.
enum KnownOption<'a> {
    Help,
    Declared(&'a Arg),
}

impl KnownOption<'_> {
    /// Whether the next argument is its value.
    fn value_after(&self, argument: &OsStr) -> bool {
        let text = argument.to_string_lossy();
        let has_value = match text.strip_prefix("--") {
            Some(long) => long.contains('='),
            None => text.len() > 2,
        };
        match self {
            KnownOption::Help => false,
            KnownOption::Declared(arg) => arg.get_action().takes_values() && !has_value,
        }
    }
}

/// Returns the option that an argument is, if it is one. A short one may have a number behind it.
fn find_option<'a>(argument: &OsStr, known: &[&'a Arg]) -> Option<KnownOption<'a>> {
    let text = argument.to_str()?;
    if matches!(text, "-h" | "--help") {
        return Some(KnownOption::Help);
    }
    let mut known = known.iter().filter(|arg| !arg.is_positional());
    let found = match text.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next();
            known.find(|arg| arg.get_long().is_some() && arg.get_long() == name)
        }
        None => {
            let mut letters = text.strip_prefix('-')?.chars();
            let short = letters.next()?;
            let is_number = letters.all(|c| c.is_ascii_digit());
            known.find(|arg| is_number && arg.get_short() == Some(short))
        }
    };
    found.map(|arg| KnownOption::Declared(arg))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: &str) {
        let arguments = line.split(' ').map(OsString::from).collect();
        let got: Vec<String> = put_words_last(arguments)
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn flags_of_others_are_words() {
        check(
            "c recall pnpm --filter api -p dev -n 2 --json",
            "c recall -n 2 --json -- pnpm --filter api -p dev",
        );
        check(
            "c --session s recall --filter=api -n3 -nope --after 7 x",
            "c --session s recall -n3 --after 7 -- --filter=api -nope x",
        );
        check("c recall x -- --json", "c recall -- x --json");
        check("c recall - --latest", "c recall --latest -- -");
        check("c recall --help", "c recall --help");
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "c",
            "c --json inspect recall --nope",
            "c expand x --nope",
            "c --config recall plan x",
        ] {
            check(line, line);
        }
    }
}
