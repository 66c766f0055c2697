//! `plan`: the whole compaction, and nothing of it kept. Writes nothing.

use compact_core::engine::Outcome;
use compact_core::identity::EntryHash;
use compact_core::memory::{Pin, Pins};
use compact_core::outline::Outline;
use compact_core::receipt::{Kept, Receipt};
use compact_runtime::Manager;
use compact_runtime::manager::Measured;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::args::{Global, Plan};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::compaction::{bars, facts};
use crate::report::number::{count, grouped};
use crate::report::text::fit;
use crate::report::{COLUMNS, Charset};
use crate::world::{Opened, World, block_on};

/// Plans a compaction.
pub fn run(args: &Plan, world: &World, global: &Global) -> Result<Answer, Failure> {
    let opened = world.open(&args.subject)?;
    let _progress = Progress::over_bytes(global, opened.source.bytes.len(), "planning");
    let store = world.store_for(&opened.parsed.conversation)?;
    let manager = world.manager(store, world.policy(&args.manner), &opened)?;
    let request = opened.request(&args.goal, &args.manner, global);
    let (measured, outcome) = block_on(async {
        let measured = manager.measure(&request).await?;
        let outcome = manager.plan(&measured)?;
        Ok((measured, outcome))
    })?;
    let charset = Charset::detect(global);
    match outcome {
        Outcome::Unchanged => unchanged(&opened, &manager, &measured, charset),
        Outcome::Compacted(made) => Ok(Answer::new(
            to_json(&measured, &made.receipt),
            tell(&opened, &measured, &made.receipt, charset),
        )),
    }
}

fn to_json(measured: &Measured<'_>, receipt: &Receipt) -> Value {
    let mut json = verdict_json(measured);
    let more = json!({
        "outcome": "compacted",
        "receipt_id": receipt.receipt_id,
        "tokens_before": receipt.tokens_before,
        "tokens_after": receipt.tokens_after,
        "kept": receipt.kept,
        "summarized": receipt.pruned_count,
        "summary_tokens": receipt.summary_tokens,
        "summary_version": receipt.summary_version,
        "rung": receipt.rung,
        "retention": receipt.retention,
        "notes": receipt.notes,
    });
    extend(&mut json, more);
    json
}

fn verdict_json(measured: &Measured<'_>) -> Value {
    json!({
        "verdict": measured.decision.verdict,
        "reason": measured.decision.reason,
        "session_id": measured.session_id,
        "budget": measured.budget,
        "window": measured.decision.window,
        "pressure": measured.decision.pressure,
    })
}

fn extend(json: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (json, more) {
        all.extend(more);
    }
}

fn tell(opened: &Opened, measured: &Measured<'_>, receipt: &Receipt, charset: Charset) -> String {
    format!(
        "{}\n\n{}\n{}\n  {}\n",
        head(opened, measured),
        bars(receipt.tokens_before, receipt.tokens_after, charset),
        facts(receipt, charset).render(),
        format!(
            "a dry run with a budget of {}: nothing was written",
            count(receipt.budget.0, "token", "tokens")
        )
        .dimmed(),
    )
}

fn head(opened: &Opened, measured: &Measured<'_>) -> String {
    let verdict = json!(measured.decision.verdict);
    let verdict = verdict.as_str().unwrap_or_default().replace('_', " ");
    format!(
        "{}\n  {}: {}",
        fit(&opened.source.name, COLUMNS).bold(),
        verdict.bold(),
        measured.decision.reason,
    )
}

/// Everything stays: the counts are those of the conversation itself.
fn unchanged(
    opened: &Opened,
    manager: &Manager,
    measured: &Measured<'_>,
    charset: Charset,
) -> Result<Answer, Failure> {
    let tokens = measured.account.history;
    let mut json = verdict_json(measured);
    let more = json!({
        "outcome": "unchanged",
        "tokens_before": tokens,
        "tokens_after": tokens,
        "kept": everything(opened, manager)?,
        "summarized": 0,
    });
    extend(&mut json, more);
    let human = format!(
        "{}\n  unchanged: a history of {} is within the budget of {}{}nothing to do\n",
        head(opened, measured),
        count(tokens.0, "token", "tokens"),
        grouped(measured.budget.0),
        charset.dot(),
    );
    Ok(Answer::new(json, human))
}

fn everything(opened: &Opened, manager: &Manager) -> Result<Kept, Failure> {
    let conversation = &opened.parsed.conversation;
    let outline = Outline::of(conversation);
    let hashes = EntryHash::all(&conversation.entries);
    let pins = Pins::new(&manager.policy)?.of_units(conversation, &outline, &hashes);
    let pinned = outline.units.iter().zip(&pins);
    let pinned = pinned.filter(|(_, pin)| **pin != Pin::Free);
    Ok(Kept {
        pinned: pinned.map(|(unit, _)| unit.entries.len() as u64).sum(),
        recent_turns: outline.turns() as u64,
        tool_pairs: outline.exchanges() as u64,
        ..Kept::default()
    })
}
