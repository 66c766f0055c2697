//! `convert`: a session in another format, with a list of what did not come along.
//!
//! The document goes to `-o` or stdout; the losses are told on stderr, or in `--json`.

use std::path::Path;

use compact_formats::{Format, Loss, Scope};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::args::{Convert, Global};
use crate::failure::Failure;
use crate::input::Source;
use crate::output::Target;
use crate::progress::Progress;
use crate::report::number::count;
use crate::report::text::printable;

/// A person reads no more than this; `--json` has them all.
const SHOWN: usize = 20;

/// Converts a session.
pub fn run(args: &Convert, global: &Global) -> Result<Answer, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    if global.json && path == Path::new("-") {
        return Err(Failure::usage(
            "the document and --json both want stdout",
            "write the document to a file with -o, or leave --json out",
        ));
    }
    let source = Source::read(&args.file)?.session(args.session_index)?;
    let scope = if args.whole {
        Scope::Whole
    } else {
        Scope::Live
    };
    let parsed = source.parse(args.format, scope)?;
    let target = Target::open(path, source.path.as_deref())?;
    let progress = Progress::over_bytes(global, source.bytes.len(), "converting");
    let converted = compact_formats::convert_document(&parsed, args.to)?;
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
    let human = tell(&source.name, from, args.to, &converted.losses);
    Ok(Answer::new(json, human).with_payload(payload))
}

fn loss_json(loss: &Loss) -> Value {
    json!({ "entry": loss.entry, "what": loss.what })
}

fn tell(name: &str, from: Format, to: Format, losses: &[Loss]) -> String {
    let mut out = format!(
        "{} {}: {from} to {to}",
        "converted".green().bold(),
        printable(name)
    );
    if losses.is_empty() {
        out.push_str(", nothing lost\n");
        return out;
    }
    let lost = count(losses.len() as u64, "thing", "things");
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
