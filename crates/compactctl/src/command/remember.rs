//! `remember`: what a session would know now, layer by layer.

use compact::manager::MemoryLayers;
use compact::message::Entry;
use compact::store::CompactionRecord;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{GlobalArgs, RememberArgs};
use crate::command::archive::SESSION_ID_COLUMNS;
use crate::failure::Failure;
use crate::report::number::format_count;
use crate::report::text::{one_line, printable};
use crate::report::{COLUMNS, Charset};

/// Shows the memory of a session.
pub(super) fn run(
    args: &RememberArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let store = app.compact().store_to_read()?;
    let (record, memory) = app.block_on(async {
        let record = store.find_remembered(&args.name).await?;
        let manager = app.compact().manager_under_terms(store, &record)?;
        let memory = manager.memory_layers(&record).await?;
        Ok((record, memory))
    })?;
    let json = json!({
        "session_id": record.session_id,
        "receipt_id": record.receipt_id,
        "summary_version": record.summary_version,
        "created_at": record.created_at,
        "pinned": memory.pinned.iter().map(entry_json).collect::<Vec<_>>(),
        "ledger": ledger_json(&memory),
        "summary": memory.summary,
        "recent": memory.recent.iter().map(entry_json).collect::<Vec<_>>(),
    });
    let human = render_memory(&record, &memory, Charset::detect(global));
    Ok(CommandAnswer::new(json, human))
}

/// The facts and names; the excerpts that summaries quote from stay out.
fn ledger_json(memory: &MemoryLayers) -> Value {
    let mut ledger = serde_json::to_value(&memory.ledger).unwrap_or(Value::Null);
    if let Some(fields) = ledger.as_object_mut() {
        fields.remove("excerpts");
    }
    ledger
}

fn entry_json(entry: &Entry) -> Value {
    json!({ "entry_id": entry.id, "role": entry.role, "text": entry_text(entry) })
}

fn entry_text(entry: &Entry) -> String {
    let parts = entry.blocks.iter().flat_map(|block| block.text_parts());
    let parts: Vec<&str> = parts.filter(|text| !text.is_empty()).collect();
    parts.join("\n")
}

fn render_memory(record: &CompactionRecord, memory: &MemoryLayers, charset: Charset) -> String {
    let mut out = format!(
        "{} {}  v{}, receipt {}\n",
        "session".bold(),
        one_line(&record.session_id, SESSION_ID_COLUMNS),
        record.summary_version,
        record.receipt_id.chars().take(12).collect::<String>(),
    );
    push_layer(&mut out, "pinned", &memory.pinned, charset);
    out.push_str(&format!("\n{}\n", "summary".bold()));
    for line in printable(&memory.summary).lines() {
        out.push_str(&format!("  {}{line}\n", charset.quote_mark().dimmed()));
    }
    push_layer(&mut out, "recent", &memory.recent, charset);
    out
}

fn push_layer(out: &mut String, name: &str, entries: &[Entry], charset: Charset) {
    let number = format_count(entries.len() as u64, "entry", "entries");
    out.push_str(&format!(
        "\n{}{}{number}\n",
        name.bold(),
        charset.separator()
    ));
    for entry in entries {
        let role = entry.role.as_str();
        let line = one_line(&entry_text(entry), COLUMNS - 14);
        out.push_str(&format!("  {role:<10}  {line}\n"));
    }
}
