//! `restore`: the original of a receipt, or all that a session ever held.

use serde_json::json;

use crate::answer::{CommandAnswer, set_field};
use crate::app::{App, block_on};
use crate::args::RestoreArgs;
use crate::failure::Failure;
use crate::output::OutputTarget;
use crate::report::number;

/// Writes the original to stdout or a file.
pub(super) fn run(args: &RestoreArgs, app: &App) -> Result<CommandAnswer, Failure> {
    let manager = app.compact().reading_manager()?;
    let original = block_on(async { Ok(manager.restore(&args.name).await?) })?;
    let mut json = json!({
        "restored": args.name,
        "bytes": original.bytes.len(),
        "exact": original.exact,
        "output": args.output,
    });
    let size = number::format_bytes(original.bytes.len() as u64);
    let bytes = original.bytes.to_vec();
    let note = redaction_note(original.exact);
    let Some(path) = &args.output else {
        set_field(&mut json, "content", String::from_utf8_lossy(&bytes));
        return Ok(CommandAnswer::new(json, note).with_payload(Some(bytes)));
    };
    let payload = OutputTarget::open(path, None)?.write(bytes)?;
    let human = format!(
        "restored {} ({size}) to {}\n{note}",
        args.name,
        path.display()
    );
    Ok(CommandAnswer::new(json, human).with_payload(payload))
}

fn redaction_note(exact: bool) -> String {
    if exact {
        return String::new();
    }
    "note: secrets were redacted when this was archived: these are not the exact bytes\n".to_owned()
}
