//! `plan`: the whole compaction, and nothing of it kept. Writes nothing.

use compact::manager::{CompactionOutcome, Manager, MeasuredRequest};
use compact::message::{EntryHash, Outline, PinRules, PinState};
use compact::receipt::{KeptCounts, Receipt};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::{App, OpenedTranscript, block_on};
use crate::args::{GlobalArgs, PlanArgs};
use crate::command::compact::reason_to_leave;
use crate::failure::Failure;
use crate::progress::TerminalProgress;
use crate::report::compaction::{receipt_table, render_token_bars};
use crate::report::number::format_count;
use crate::report::text::fit;
use crate::report::{COLUMNS, Charset};

/// Plans a compaction.
pub(super) fn run(
    args: &PlanArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let opened = app.open_transcript(&args.subject)?;
    let _progress = TerminalProgress::over_bytes(global, opened.source.bytes.len(), "planning");
    let store = app
        .compact()
        .store_for_planning(&opened.parsed.conversation)?;
    let manager = app.transcript_manager(store, app.policy_for(&args.manner), &opened)?;
    let request = opened.request(&args.goal, &args.manner, global);
    let mut job = block_on(async { Ok(manager.measure(&request).await?) })?;
    let outcome = job.make_view()?;
    let measured = job.measured;
    let charset = Charset::detect(global);
    match outcome {
        CompactionOutcome::Unchanged => unchanged_plan(&opened, &manager, &measured, charset),
        CompactionOutcome::Compacted(made) => Ok(CommandAnswer::new(
            plan_json(&measured, &made.receipt),
            render_plan(&opened, &measured, &made.receipt, charset),
        )),
    }
}

fn plan_json(measured: &MeasuredRequest<'_>, receipt: &Receipt) -> Value {
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

fn verdict_json(measured: &MeasuredRequest<'_>) -> Value {
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

fn render_plan(
    opened: &OpenedTranscript,
    measured: &MeasuredRequest<'_>,
    receipt: &Receipt,
    charset: Charset,
) -> String {
    format!(
        "{}\n\n{}\n{}\n  {}\n",
        render_plan_head(opened, measured),
        render_token_bars(receipt.tokens_before, receipt.tokens_after, charset),
        receipt_table(receipt, charset).render(),
        format!(
            "a dry run with a budget of {}: nothing was written",
            format_count(receipt.budget.0, "token", "tokens")
        )
        .dimmed(),
    )
}

fn render_plan_head(opened: &OpenedTranscript, measured: &MeasuredRequest<'_>) -> String {
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
fn unchanged_plan(
    opened: &OpenedTranscript,
    manager: &Manager,
    measured: &MeasuredRequest<'_>,
    charset: Charset,
) -> Result<CommandAnswer, Failure> {
    let tokens = measured.account.history;
    let mut json = verdict_json(measured);
    let more = json!({
        "outcome": "unchanged",
        "tokens_before": tokens,
        "tokens_after": tokens,
        "kept": count_kept(opened, manager)?,
        "summarized": 0,
    });
    extend(&mut json, more);
    let human = format!(
        "{}\n  unchanged: {}{}nothing to do\n",
        render_plan_head(opened, measured),
        reason_to_leave(tokens, measured.budget),
        charset.separator(),
    );
    Ok(CommandAnswer::new(json, human))
}

fn count_kept(opened: &OpenedTranscript, manager: &Manager) -> Result<KeptCounts, Failure> {
    let conversation = &opened.parsed.conversation;
    let outline = Outline::from_conversation(conversation);
    let hashes = EntryHash::from_entries(&conversation.entries);
    let pins = PinRules::new(manager.policy())?.of_units(conversation, &outline, &hashes);
    let pinned = outline.units.iter().zip(&pins);
    let pinned = pinned.filter(|(_, pin)| **pin != PinState::Free);
    Ok(KeptCounts {
        pinned: pinned.map(|(unit, _)| unit.entries.len() as u64).sum(),
        recent_turns: outline.turns() as u64,
        tool_pairs: outline.exchanges() as u64,
        ..KeptCounts::default()
    })
}
