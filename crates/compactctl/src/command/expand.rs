//! `expand`: the entry behind a pointer, as it was before anything was cut.

use std::time::Instant;

use compact_runtime::recall::{Pointer, told};
use serde_json::json;

use crate::answer::{Answer, set};
use crate::args::Expand;
use crate::command::recall::tell_of;
use crate::failure::Failure;
use crate::output::Target;
use crate::report::number;
use crate::world::World;

/// Writes the entry to stdout or a file.
pub fn run(args: &Expand, world: &World) -> Result<Answer, Failure> {
    let pointer = Pointer::parse(&args.pointer.join(" "))?;
    let recall = world.recall()?;
    let asked = Instant::now();
    let found = world.block_on(async { Ok(recall.expand(&pointer).await?) })?;
    tell_of(world, &told::expanded(&found.session_id, asked.elapsed()))?;
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
        return Ok(Answer::new(json, note).with_payload(Some(bytes)));
    };
    set(&mut json, "output", json!(path));
    let size = number::bytes(bytes.len() as u64);
    let payload = Target::open(path, None)?.write(bytes)?;
    let human = format!("wrote {pointer} ({size}) to {}\n{note}", path.display());
    Ok(Answer::new(json, human).with_payload(payload))
}
