//! `convert`: a session in another format, with a list of what did not come along.
//!
//! The document goes to `-o` or stdout; the losses are told on stderr, or in `--json`.

use std::path::Path;

use compact::format::{ConversionLoss, Format, TranscriptScope};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::args::{ConvertArgs, GlobalArgs};
use crate::failure::Failure;
use crate::input::InputSource;
use crate::output::OutputTarget;
use crate::progress::TerminalProgress;
use crate::report::number::format_count;
use crate::report::text::printable;

/// A person reads no more than this; `--json` has them all.
const SHOWN: usize = 20;

/// Converts a session.
pub(super) fn run(args: &ConvertArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    if global.json && path == Path::new("-") {
        return Err(Failure::usage(
            "the document and --json both write to stdout",
            "write the document to a file with -o, or leave --json out",
        ));
    }
    let source = InputSource::read(&args.file)?.select_session(args.session_index)?;
    let scope = if args.whole {
        TranscriptScope::Whole
    } else {
        TranscriptScope::Live
    };
    let parsed = source.parse(args.format, scope)?;
    let target = OutputTarget::open(path, source.path.as_deref())?;
    let progress = TerminalProgress::over_bytes(global, source.bytes.len(), "converting");
    let converted = compact::format::convert_document(&parsed, args.to)?;
    drop(progress);
    let payload = target.write(converted.bytes)?;
    let from = parsed.document.format();
    let json = json!({
        "from": from.name(),
        "to": args.to.name(),
        "entries": parsed.conversation.entries.len(),
        "output": args.output,
        "losses": converted.losses.iter().map(loss_json).collect::<Vec<_>>(),
    });
    let human = render_conversion(&source.name, from, args.to, &converted.losses);
    Ok(CommandAnswer::new(json, human).with_payload(payload))
}

fn loss_json(loss: &ConversionLoss) -> Value {
    json!({ "entry": loss.entry, "what": loss.what })
}

fn render_conversion(name: &str, from: Format, to: Format, losses: &[ConversionLoss]) -> String {
    let mut out = format!(
        "{} {}: {from} to {to}",
        "converted".green().bold(),
        printable(name)
    );
    if losses.is_empty() {
        out.push_str(", nothing lost\n");
        return out;
    }
    let lost = format_count(losses.len() as u64, "thing", "things");
    out.push_str(&format!("; {lost} that {to} cannot carry:\n"));
    for loss in losses.iter().take(SHOWN) {
        let place = loss
            .entry
            .map_or("session".to_owned(), |at| format!("entry #{at}"));
        out.push_str(&format!("  {place}: {}\n", printable(&loss.what)));
    }
    if losses.len() > SHOWN {
        out.push_str(&format!("  ... and {} more\n", losses.len() - SHOWN));
    }
    out
}
