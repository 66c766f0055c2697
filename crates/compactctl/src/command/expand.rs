//! `expand`: the entries behind pointers, as they were before anything was cut.
//!
//! For a reader: a heading, the words without JSON's escapes, edits as differences, and no more than fits
//! into an agent's context at once. `--raw` prints the JSON instead. Secrets are redacted unless `--unredacted`.

use std::time::Instant;

use compact::event;
use compact::recall::{
    AnswerStyle, EntryPointer, ExpandQuery, Expansion, LinePattern, SecretDisplay, ShownEntry,
    TextPart,
};
use serde_json::{Value, json};

use crate::answer::{CommandAnswer, set_field};
use crate::app::App;
use crate::args::{ExpandArgs, GlobalArgs};
use crate::command::recall::emit_event;
use crate::failure::Failure;
use crate::output::OutputTarget;
use crate::report::number;
use crate::report::text::printable_code;

/// The most bytes of text that are printed at once.
pub(super) const ROOM: usize = 16_000;

const STYLE: AnswerStyle = AnswerStyle {
    quote: end_line,
    ask_rest: |pointer, line| {
        format!("compactctl expand {pointer} --lines {line}.. (or --grep PATTERN, or --all)")
    },
};

/// Writes the entries to stdout or a file.
pub(super) fn run(
    args: &ExpandArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let found = find_entries(args, app, global.session.as_deref())?;
    let mut json = describe_entries(&found, args);
    let note = match found.entries.iter().all(|shown| shown.exact) {
        true => String::new(),
        false => "note: secrets were redacted\n".to_owned(),
    };
    let bytes = render_bytes(&found, args);
    let Some(path) = &args.output else {
        let note = if args.raw { note } else { String::new() };
        return Ok(CommandAnswer::new(json, note).with_payload(Some(bytes)));
    };
    set_field(&mut json, "output", json!(path));
    let size = number::format_bytes(bytes.len() as u64);
    let payload = OutputTarget::open(path, None)?.write(bytes)?;
    let human = format!(
        "wrote {} ({size}) to {}\n{note}",
        args.pointer.join(" "),
        path.display()
    );
    Ok(CommandAnswer::new(json, human).with_payload(payload))
}

/// Finds what the arguments ask for, in one session alone where one is named.
pub(super) fn find_entries(
    args: &ExpandArgs,
    app: &App,
    session: Option<&str>,
) -> Result<Expansion, Failure> {
    let is_whole = args.all || args.raw || args.output.is_some();
    let query = ExpandQuery {
        pointers: EntryPointer::parse_all(&args.pointer)?,
        session_id: session.map(str::to_owned),
        neighbours: args.around,
        part: match (&args.grep, &args.lines) {
            (Some(pattern), _) => TextPart::Matching(LinePattern::parse(pattern)?),
            (None, Some(lines)) => TextPart::parse_lines(lines)?,
            (None, None) => TextPart::Whole,
        },
        secrets: SecretDisplay::shown_if(args.unredacted),
        room: if is_whole { usize::MAX } else { ROOM },
    };
    let recall = app.compact().open_recall()?;
    let asked = Instant::now();
    let found = app.block_on(async { Ok(recall.read(&query).await?) })?;
    let (clock, took) = (app.compact().clock(), asked.elapsed());
    let session = found
        .entries
        .first()
        .map(|shown| &*shown.restored.session_id);
    let (session, count) = (session.unwrap_or_default(), found.entries.len() as u64);
    emit_event(app, &event::expand_event(clock, session, count, took))?;
    Ok(found)
}

fn render_bytes(found: &Expansion, args: &ExpandArgs) -> Vec<u8> {
    if args.raw {
        let sources = found.entries.iter().map(|shown| &shown.restored.source[..]);
        return sources.collect::<Vec<_>>().join(&b'\n');
    }
    match found.entries.as_slice() {
        [only] if args.output.is_some() => file_text(only, args).as_bytes().to_vec(),
        _ => printable_code(&found.render(&STYLE)).into_bytes(),
    }
}

/// What a file gets of an entry: its text as it is, or the lines that were asked for.
fn file_text<'a>(shown: &'a ShownEntry, args: &ExpandArgs) -> &'a str {
    match args.grep.is_some() || args.lines.is_some() {
        true => &shown.selected.text,
        false => &shown.text,
    }
}

/// The first entry for programs, and all of them.
fn describe_entries(found: &Expansion, args: &ExpandArgs) -> Value {
    let entries: Vec<Value> = found.entries.iter().map(describe_entry).collect();
    let mut json = entries
        .first()
        .cloned()
        .unwrap_or_else(|| json!({ "pointer": args.pointer.join(" ") }));
    set_field(&mut json, "entries", entries);
    let left_out: Vec<String> = found.left_out.iter().map(EntryPointer::to_string).collect();
    set_field(&mut json, "left_out", left_out);
    json
}

fn describe_entry(shown: &ShownEntry) -> Value {
    let restored = &shown.restored;
    let whole = shown.selected.matches.is_none() && shown.selected.next_line.is_none();
    json!({
        "pointer": restored.pointer.to_string(),
        "session_id": restored.session_id,
        "receipt_id": restored.receipt_id,
        "entry_id": restored.entry.id,
        "ordinal": restored.ordinal,
        "session_entries": restored.session_entries,
        "said_at": restored.said_at,
        "role": restored.role,
        "partner": restored.partner.as_ref().map(|partner| partner.ordinal),
        "exact": shown.exact,
        "text": shown.text,
        "lines": shown.selected.lines,
        "selected": (!whole).then_some(&shown.selected.text),
        "next_line": shown.selected.next_line,
        "source": String::from_utf8_lossy(&restored.source),
    })
}

fn end_line(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}
