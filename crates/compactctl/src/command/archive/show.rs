//! `archive show`: one receipt, or the compactions of one session.

use compact_core::receipt::Receipt;
use compact_runtime::port::catalog::CompactionRecord;
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use super::list::minute;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::report::Charset;
use crate::report::compaction::{bars, facts};
use crate::report::number::{grouped, percent};
use crate::report::table::{Column, Table};
use crate::report::text::one_line;
use crate::world::Store;

/// Shows a receipt or a session.
pub async fn run(store: &Store, name: &str, charset: Charset) -> Result<Answer, Failure> {
    if let Some(record) = store.catalog.by_receipt(name).await? {
        return Ok(Answer::new(
            json!(record.receipt),
            receipt(&record, charset),
        ));
    }
    let chain = store.catalog.chain(name).await?;
    if chain.is_empty() {
        return Err(compact_runtime::Error::NotFound(name.to_owned()).into());
    }
    let receipts: Vec<&Value> = chain.iter().map(|record| &record.receipt).collect();
    let json = json!({ "session_id": name, "compactions": receipts });
    Ok(Answer::new(json, session(name, &chain)))
}

fn receipt(record: &CompactionRecord, charset: Charset) -> String {
    let head = format!(
        "{} {}\n  session {}, {}, {}\n\n",
        "receipt".bold(),
        record.receipt_id,
        one_line(&record.session_id, 40),
        record.format,
        minute(&record.created_at),
    );
    match serde_json::from_value::<Receipt>(record.receipt.clone()) {
        Ok(receipt) => format!(
            "{head}{}\n{}",
            bars(receipt.tokens_before, receipt.tokens_after, charset),
            facts(&receipt, charset).render()
        ),
        // Written by another version: the JSON is still there.
        Err(_) => format!("{head}  {}\n", record.receipt),
    }
}

fn session(name: &str, chain: &[CompactionRecord]) -> String {
    let mut table = Table::new([
        Column::left(),
        Column::left(),
        Column::right(),
        Column::right(),
        Column::right(),
        Column::left().style(Style::new().dimmed()),
    ]);
    table.row(["", "receipt", "before", "after", "retention", "when"].map(str::to_owned));
    for record in chain {
        let tokens = |field: &str| {
            let value = record.receipt.get(field).and_then(Value::as_u64);
            grouped(value.unwrap_or(0))
        };
        let score = record.receipt.pointer("/retention/score");
        table.row([
            format!("v{}", record.summary_version),
            record.receipt_id.chars().take(12).collect(),
            tokens("tokens_before"),
            tokens("tokens_after"),
            percent(score.and_then(Value::as_f64).unwrap_or(0.0)),
            minute(&record.created_at),
        ]);
    }
    format!(
        "{} {}\n{}",
        "session".bold(),
        one_line(name, 70),
        table.render()
    )
}
