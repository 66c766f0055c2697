//! `remember`: what a session would know now, layer by layer.

use std::sync::Arc;

use compact_core::message::Entry;
use compact_core::policy::Policy;
use compact_core::token::Estimator;
use compact_runtime::manager::MemoryLayers;
use compact_runtime::port::catalog::{CompactionRecord, NamedRecord};
use owo_colors::OwoColorize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::{App, StorePair, estimator_by_name};
use crate::args::{GlobalArgs, RememberArgs};
use crate::command::archive::SESSION_ID_COLUMNS;
use crate::failure::{Failure, FailureCode};
use crate::host::session_files::ORIGIN_FIELD;
use crate::report::number::format_count;
use crate::report::text::{one_line, printable};
use crate::report::{COLUMNS, Charset};

/// Shows the memory of a session.
pub fn run(args: &RememberArgs, app: &App, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let store = app.store_to_read()?;
    let (record, memory) = app.block_on(async {
        let record = match store.find_named(&args.name).await? {
            NamedRecord::Receipt(record) => record,
            NamedRecord::Session(latest) => last_summarized(&store, latest).await?,
        };
        let (policy, estimator) = receipt_terms(&record, app)?;
        let manager = app.build_manager(store, policy, estimator)?;
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

/// Finds the last compaction of a session that made a summary. A hook may have copied the transcript
/// since, and its copy knows none.
async fn last_summarized(
    store: &StorePair,
    latest: CompactionRecord,
) -> Result<CompactionRecord, Failure> {
    let is_copy = |record: &CompactionRecord| record.receipt.get(ORIGIN_FIELD).is_some();
    if !is_copy(&latest) {
        return Ok(latest);
    }
    let records = store.catalog.session_records(&latest.session_id).await?;
    let made = records.into_iter().rfind(|record| !is_copy(record));
    Ok(made.unwrap_or(latest))
}

/// What the receipt was made under; what a hook or a run left is looked at under the present terms.
fn receipt_terms(
    record: &CompactionRecord,
    app: &App,
) -> Result<(Policy, Arc<dyn Estimator>), Failure> {
    if record.receipt.get(ORIGIN_FIELD).is_some() {
        return Ok((app.base_policy().clone(), app.estimator(None)));
    }
    fn field<T: DeserializeOwned>(record: &CompactionRecord, name: &str) -> Option<T> {
        serde_json::from_value(record.receipt.get(name)?.clone()).ok()
    }
    match (
        field(record, "policy"),
        field::<String>(record, "estimator"),
    ) {
        (Some(policy), Some(estimator)) => Ok((policy, estimator_by_name(&estimator)?)),
        _ => Err(Failure::new(
            FailureCode::Input,
            format!(
                "receipt {} was written by another version",
                record.receipt_id
            ),
        )
        .help("`compactctl restore` gives its original back")),
    }
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
