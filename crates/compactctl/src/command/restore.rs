//! `restore`: the original of a receipt, or all that a session ever held.

use serde_json::json;

use crate::answer::{Answer, set};
use crate::args::Restore;
use crate::failure::Failure;
use crate::output::Target;
use crate::report::number;
use crate::world::{World, block_on};

/// Writes the original to stdout or a file.
pub fn run(args: &Restore, world: &World) -> Result<Answer, Failure> {
    let manager = world.reader()?;
    let original = block_on(async { Ok(manager.restore(&args.name).await?) })?;
    let mut json = json!({
        "restored": args.name,
        "bytes": original.bytes.len(),
        "exact": original.exact,
        "output": args.output,
    });
    let size = number::bytes(original.bytes.len() as u64);
    let bytes = original.bytes.to_vec();
    let note = exactness(original.exact);
    let Some(path) = &args.output else {
        set(&mut json, "content", String::from_utf8_lossy(&bytes));
        return Ok(Answer::new(json, note).with_payload(Some(bytes)));
    };
    let payload = Target::open(path, None)?.write(bytes)?;
    let human = format!(
        "restored {} ({size}) to {}\n{note}",
        args.name,
        path.display()
    );
    Ok(Answer::new(json, human).with_payload(payload))
}

fn exactness(exact: bool) -> String {
    if exact {
        return String::new();
    }
    "note: secrets were redacted when this was archived: these are not the exact bytes\n".to_owned()
}
