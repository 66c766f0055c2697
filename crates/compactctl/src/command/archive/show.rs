//! `archive show`: one receipt, or the compactions of one session.

use compact::store::{CompactionRecord, NamedRecord, StorePair};
use compact::token::Tokens;
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use super::list::{SESSION_ID_COLUMNS, format_minute};
use crate::answer::CommandAnswer;
use crate::failure::Failure;
use crate::report::Charset;
use crate::report::compaction::{receipt_table, render_token_bars};
use crate::report::number::{format_share, group_digits};
use crate::report::table::{Column, Table};
use crate::report::text::one_line;

/// Shows a receipt or a session.
pub(super) async fn run(
    store: &StorePair,
    name: &str,
    charset: Charset,
) -> Result<CommandAnswer, Failure> {
    let name = match store.find_named(name).await? {
        NamedRecord::Receipt(record) => {
            let human = render_receipt(&record, charset);
            return Ok(CommandAnswer::new(record.receipt.as_json().clone(), human));
        }
        NamedRecord::Session(latest) => latest.session_id,
    };
    let chain = store.catalog.session_records(&name).await?;
    let receipts: Vec<&Value> = chain
        .iter()
        .map(|record| record.receipt.as_json())
        .collect();
    let json = json!({ "session_id": name, "compactions": receipts });
    Ok(CommandAnswer::new(json, render_session(&name, &chain)))
}

fn render_receipt(record: &CompactionRecord, charset: Charset) -> String {
    let head = format!(
        "{} {}\n  session {}, {}, {}\n\n",
        "receipt".bold(),
        record.receipt_id,
        one_line(&record.session_id, SESSION_ID_COLUMNS),
        record.format,
        format_minute(&record.created_at),
    );
    match record.receipt.to_receipt() {
        Ok(receipt) => format!(
            "{head}{}\n{}",
            render_token_bars(receipt.tokens_before, receipt.tokens_after, charset),
            receipt_table(&receipt, charset).render()
        ),
        // Written by another version: the JSON is still there.
        Err(_) => format!("{head}  {}\n", record.receipt),
    }
}

fn render_session(name: &str, chain: &[CompactionRecord]) -> String {
    let mut table = Table::new([
        Column::left(),
        Column::left(),
        Column::right(),
        Column::right(),
        Column::right(),
        Column::left().style(Style::new().dimmed()),
    ]);
    table.add_row(["", "receipt", "before", "after", "retention", "when"].map(str::to_owned));
    for record in chain {
        let tokens = |tokens: Option<Tokens>| group_digits(tokens.unwrap_or_default().0);
        let receipt = &record.receipt;
        table.add_row([
            format!("v{}", record.summary_version),
            record.receipt_id.chars().take(12).collect(),
            tokens(receipt.tokens_before()),
            tokens(receipt.tokens_after()),
            format_share(receipt.retention_score()),
            format_minute(&record.created_at),
        ]);
    }
    format!(
        "{} {}\n{}",
        "session".bold(),
        one_line(name, SESSION_ID_COLUMNS),
        table.render()
    )
}
