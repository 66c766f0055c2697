//! `expand`: the entry behind a pointer, as it was before anything was cut.

use std::time::Instant;

use compact::event;
use compact::recall::EntryPointer;
use serde_json::json;

use crate::answer::{CommandAnswer, set_field};
use crate::app::App;
use crate::args::ExpandArgs;
use crate::command::recall::emit_event;
use crate::failure::Failure;
use crate::output::OutputTarget;
use crate::report::number;

/// Writes the entry to stdout or a file.
pub(super) fn run(args: &ExpandArgs, app: &App) -> Result<CommandAnswer, Failure> {
    let pointer = EntryPointer::parse(&args.pointer.join(" "))?;
    let recall = app.compact().open_recall()?;
    let asked = Instant::now();
    let found = app.block_on(async { Ok(recall.expand(&pointer).await?) })?;
    let (clock, took) = (app.compact().clock(), asked.elapsed());
    emit_event(app, &event::expand_event(clock, &found.session_id, took))?;
    let text = found.text();
    let mut json = json!({
        "pointer": pointer.to_string(),
        "session_id": found.session_id,
        "receipt_id": found.receipt_id,
        "entry_id": found.entry.id,
        "ordinal": found.ordinal,
        "role": found.role,
        "exact": found.exact,
        "text": text,
        "source": String::from_utf8_lossy(&found.source),
    });
    let note = match found.exact {
        true => String::new(),
        false => "note: secrets were redacted when this was archived\n".to_owned(),
    };
    let bytes = match args.raw {
        true => found.source.to_vec(),
        false => text.into_bytes(),
    };
    let Some(path) = &args.output else {
        return Ok(CommandAnswer::new(json, note).with_payload(Some(bytes)));
    };
    set_field(&mut json, "output", json!(path));
    let size = number::format_bytes(bytes.len() as u64);
    let payload = OutputTarget::open(path, None)?.write(bytes)?;
    let human = format!("wrote {pointer} ({size}) to {}\n{note}", path.display());
    Ok(CommandAnswer::new(json, human).with_payload(payload))
}
