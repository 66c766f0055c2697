//! `remember`: what a session would know now, layer by layer.

use std::sync::Arc;

use compact_core::message::Entry;
use compact_core::policy::Policy;
use compact_core::token::Estimator;
use compact_runtime::manager::Memory;
use compact_runtime::port::catalog::CompactionRecord;
use owo_colors::OwoColorize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::args::{Global, Remember};
use crate::failure::{Code, Failure};
use crate::host::library::ORIGIN;
use crate::report::number::count;
use crate::report::text::{one_line, printable};
use crate::report::{COLUMNS, Charset};
use crate::world::{Store, World, estimator_named};

/// Shows the memory of a session.
pub fn run(args: &Remember, world: &World, global: &Global) -> Result<Answer, Failure> {
    let store = world.store_to_read()?;
    let (record, memory) = world.block_on(async {
        let record = find(&store, &args.name).await?;
        let (policy, estimator) = terms(&record, world)?;
        let manager = world.manager_of(store, policy, estimator)?;
        let memory = manager.remember(&record).await?;
        Ok((record, memory))
    })?;
    let json = json!({
        "session_id": record.session_id,
        "receipt_id": record.receipt_id,
        "summary_version": record.summary_version,
        "created_at": record.created_at,
        "pinned": memory.pinned.iter().map(entry).collect::<Vec<_>>(),
        "ledger": ledger(&memory),
        "summary": memory.summary,
        "recent": memory.recent.iter().map(entry).collect::<Vec<_>>(),
    });
    let human = tell(&record, &memory, Charset::detect(global));
    Ok(Answer::new(json, human))
}

async fn find(store: &Store, name: &str) -> Result<CompactionRecord, Failure> {
    if let Some(record) = store.catalog.latest(name).await? {
        return Ok(record);
    }
    let found = store.catalog.by_receipt(name).await?;
    found.ok_or_else(|| Failure::from(compact_runtime::Error::NotFound(name.to_owned())))
}

/// What the receipt was made under; what a hook or a run left is looked at under the present terms.
fn terms(
    record: &CompactionRecord,
    world: &World,
) -> Result<(Policy, Arc<dyn Estimator>), Failure> {
    if record.receipt.get(ORIGIN).is_some() {
        return Ok((world.base_policy().clone(), world.estimator(None)));
    }
    fn field<T: DeserializeOwned>(record: &CompactionRecord, name: &str) -> Option<T> {
        serde_json::from_value(record.receipt.get(name)?.clone()).ok()
    }
    match (
        field(record, "policy"),
        field::<String>(record, "estimator"),
    ) {
        (Some(policy), Some(estimator)) => Ok((policy, estimator_named(&estimator)?)),
        _ => Err(Failure::new(
            Code::Input,
            format!(
                "receipt {} was written by another version",
                record.receipt_id
            ),
        )
        .help("`compactctl restore` gives its original back")),
    }
}

/// The facts and names; the excerpts that summaries quote from stay out.
fn ledger(memory: &Memory) -> Value {
    let mut ledger = serde_json::to_value(&memory.ledger).unwrap_or(Value::Null);
    if let Some(fields) = ledger.as_object_mut() {
        fields.remove("excerpts");
    }
    ledger
}

fn entry(entry: &Entry) -> Value {
    json!({ "entry_id": entry.id, "role": entry.role, "text": words(entry) })
}

fn words(entry: &Entry) -> String {
    let parts = entry.blocks.iter().flat_map(|block| block.text_parts());
    let parts: Vec<&str> = parts.filter(|text| !text.is_empty()).collect();
    parts.join("\n")
}

fn tell(record: &CompactionRecord, memory: &Memory, charset: Charset) -> String {
    let mut out = format!(
        "{} {}  v{}, receipt {}\n",
        "session".bold(),
        one_line(&record.session_id, 40),
        record.summary_version,
        record.receipt_id.chars().take(12).collect::<String>(),
    );
    layer(&mut out, "pinned", &memory.pinned, charset);
    out.push_str(&format!("\n{}\n", "summary".bold()));
    for line in printable(&memory.summary).lines() {
        out.push_str(&format!("  {}{line}\n", charset.rule().dimmed()));
    }
    layer(&mut out, "recent", &memory.recent, charset);
    out
}

fn layer(out: &mut String, name: &str, entries: &[Entry], charset: Charset) {
    let number = count(entries.len() as u64, "entry", "entries");
    out.push_str(&format!("\n{}{}{number}\n", name.bold(), charset.dot()));
    for entry in entries {
        let role = entry.role.as_str();
        let line = one_line(&words(entry), COLUMNS - 14);
        out.push_str(&format!("  {role:<10}  {line}\n"));
    }
}
