//! `compact`: archive the original, record the receipt, write the view. In that order.
//!
//! Without `-o` the view is only archived: a file that nobody asked for would be a surprise. A
//! session that is within its budget is left alone; `-o` then gets the input as it is, so that a
//! pipeline can go on.

use std::path::Path;

use compact::format::{BoundaryStamp, FormatError};
use compact::manager::{
    CommittedCompaction, Compaction, CompactionRequest, Manager, RequestOutcome, namesake_opening,
};
use compact::message::{Chain, EntryHash, View, frame};
use compact::receipt::Retention;
use compact::store::{StorePair, StoredReceipt};
use compact::token::Tokens;
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::{CommandAnswer, set_field};
use crate::app::{App, OpenedTranscript};
use crate::append::{AppendOutcome, SharedTranscript, busy_failure};
use crate::args::{CompactArgs, GlobalArgs};
use crate::artifact::{self, ArtifactPaths};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::output::{ExistingFile, OutputTarget};
use crate::progress::TerminalProgress;
use crate::report::compaction::{preview, receipt_table, render_token_bars};
use crate::report::number::{format_bytes, format_count, format_elapsed, group_digits};
use crate::report::table::{Column, Table};
use crate::report::text::fit;
use crate::report::{COLUMNS, Charset};

/// How often a transcript that grew meanwhile is compacted anew before it is left to its agent.
const TRIES: usize = 4;

/// Compacts a session.
pub(super) fn run(
    args: &CompactArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    check_streams(args, global)?;
    let output = args.output.as_deref();
    if args.append && output.is_none_or(|output| is_same_file(output, &args.subject.file)) {
        return append_in_place(args, app, global);
    }
    let opened = app.open_transcript(&args.subject)?;
    if args.append {
        check_boundary(&opened)?;
    }
    let destination = match &args.output {
        Some(path) => ViewDestination::Target(match args.existing {
            ExistingFile::Replaced => OutputTarget::open(path, opened.source.path.as_deref())?,
            ExistingFile::Kept => OutputTarget::open_new(path)?,
        }),
        None => ViewDestination::Nowhere,
    };
    let answer = try_compact(args, app, global, &opened, destination)?;
    answer.ok_or_else(|| Failure::new(FailureCode::Unexpected, "the output file was not written"))
}

/// Compacts a transcript and writes the view behind it. What its agent wrote meanwhile is taken in by
/// compacting it anew; an agent that does not rest is left alone.
fn append_in_place(
    args: &CompactArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let path = &args.subject.file;
    for _ in 0..TRIES {
        let mut transcript = SharedTranscript::open(path)?;
        let source = InputSource {
            name: path.display().to_string(),
            path: Some(path.clone()),
            bytes: transcript.read_at_rest()?,
        };
        let opened = app.open_source(&args.subject, source)?;
        check_boundary(&opened)?;
        let destination = ViewDestination::Append(transcript);
        if let Some(answer) = try_compact(args, app, global, &opened, destination)? {
            return Ok(answer);
        }
    }
    Err(busy_failure(
        path,
        "it changed during every attempt to compact it",
    ))
}

/// Compacts what was read and writes the view; nothing when the file went on meanwhile.
fn try_compact(
    args: &CompactArgs,
    app: &App,
    global: &GlobalArgs,
    opened: &OpenedTranscript,
    destination: ViewDestination,
) -> Result<Option<CommandAnswer>, Failure> {
    let progress = TerminalProgress::over_bytes(global, opened.source.bytes.len(), "compacting");
    let rendered = artifact::render_summarizer_input(app, opened)?;
    let rendered = rendered.as_deref();
    let compacted =
        compact_transcript(args, app, global, (opened, rendered)).map_err(|failure| {
            artifact::explain_failure(app, opened, rendered, global.session.as_deref(), failure)
        })?;
    drop(progress);
    let found = match compacted {
        RequestOutcome::Done(commit) => {
            let Some(payload) = write_view(args, opened, &commit, destination)? else {
                return Ok(None);
            };
            let session = &commit.compaction.receipt.session_id;
            let view = Some(&commit.compaction.view);
            let artifacts = artifact::write_artifacts(app, rendered, session, view)?;
            let charset = Charset::detect(global);
            let answer = compacted_answer(args, app, opened, (&commit, artifacts), charset);
            return Ok(Some(answer.with_payload(payload)));
        }
        RequestOutcome::Unchanged {
            session_id,
            tokens,
            budget,
        } => UnchangedSession {
            session_id,
            tokens,
            budget,
            reason: None,
        },
        RequestOutcome::Declined {
            session_id,
            tokens,
            budget,
            reason,
        } => UnchangedSession {
            session_id,
            tokens,
            budget,
            reason: Some(reason),
        },
    };
    unchanged_answer(args, opened, destination, &found).map(Some)
}

/// Where a view goes.
enum ViewDestination {
    Nowhere,
    Target(OutputTarget),
    /// Behind the transcript that it was made of.
    Append(SharedTranscript),
}

/// Bytes for stdout, if that is where they go.
type StdoutPayload = Option<Vec<u8>>;

/// What is said of a compaction that is on record.
fn compacted_answer(
    args: &CompactArgs,
    app: &App,
    opened: &OpenedTranscript,
    (commit, artifacts): (&CommittedCompaction, Option<ArtifactPaths>),
    charset: Charset,
) -> CommandAnswer {
    let mut json = commit.receipt.as_json().clone();
    let format = opened.parsed.document.format().name();
    set_field(&mut json, "output", json!(output_path(args)));
    set_field(&mut json, "format", json!(format));
    let other = namesake_note(opened, &commit.compaction.receipt.session_id);
    let notes = json.get_mut("notes").and_then(Value::as_array_mut);
    if let (Some(note), Some(notes)) = (&other, notes) {
        notes.push(json!(note));
    }
    if let Some(artifacts) = &artifacts {
        set_field(&mut json, "artifacts", artifacts.to_json());
    }
    let artifacts = artifacts.unwrap_or_default();
    let human = render_compaction(args, app, opened, (commit, &artifacts), charset);
    let answer = CommandAnswer::new(json, human);
    match commit.receipt.is_archived() {
        true => answer.having_archived(),
        false => answer,
    }
}

/// What is said where a transcript calls itself like a session on record that is another one.
fn namesake_note(opened: &OpenedTranscript, session: &str) -> Option<String> {
    let name = opened.parsed.conversation.session_id.as_deref()?;
    session.starts_with(&namesake_opening(name)).then(|| {
        format!(
            "the transcript calls itself {name}, which on record is another session: this one is {session}"
        )
    })
}

/// Why a history is left as it is.
pub(super) fn reason_to_leave(history: Tokens, budget: Tokens) -> String {
    if history == Tokens(0) {
        return "the history is empty, there is nothing to compact".to_owned();
    }
    let tokens = format_count(history.0, "token", "tokens");
    let budget = group_digits(budget.0);
    format!("a history of {tokens} is within the budget of {budget}")
}

struct UnchangedSession {
    session_id: String,
    tokens: Tokens,
    budget: Tokens,
    /// Why a history that is over its budget was left alone.
    reason: Option<String>,
}

/// Where the result goes: `-o`, the file itself for `--append`, or nowhere.
fn output_path(args: &CompactArgs) -> Option<&Path> {
    match &args.output {
        Some(path) => Some(path),
        None => args.append.then_some(args.subject.file.as_path()),
    }
}

fn check_streams(args: &CompactArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let stdout = output_path(args) == Some(Path::new("-"));
    if stdout && args.output.is_none() {
        return Err(Failure::usage(
            "--append cannot change stdin in place",
            "name an output file with -o",
        ));
    }
    if stdout && global.json {
        return Err(Failure::usage(
            "-o - and --json both write to stdout",
            "write the view to a file, or leave --json out",
        ));
    }
    let is_slice = args.subject.session_index.is_some();
    if is_slice && output_path(args).is_some_and(|out| is_same_file(out, &args.subject.file)) {
        return Err(Failure::usage(
            "one session would replace a file that may hold many",
            "write the session to another file with -o",
        ));
    }
    Ok(())
}

/// True when both names lead to one file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Formats without a boundary are refused before anything is archived.
fn check_boundary(opened: &OpenedTranscript) -> Result<(), Failure> {
    let probe = opened.parsed.document.lines_to_append(
        &opened.parsed.conversation,
        &View::default(),
        &make_stamp("", "", Tokens(0), Tokens(0)),
    );
    match probe {
        Err(error @ FormatError::NoBoundary { .. }) => {
            Err(Failure::from(error).with_context(&opened.source.name))
        }
        _ => Ok(()),
    }
}

/// Compacts over the store; one that is not there yet is created only for something to keep.
pub(super) fn compact_transcript(
    args: &CompactArgs,
    app: &App,
    global: &GlobalArgs,
    (opened, rendered): (&OpenedTranscript, Option<&[String]>),
) -> Result<RequestOutcome, Failure> {
    let mut request = opened
        .request(&args.goal, &args.manner, global)
        .within_span(app.caller_span());
    if let Some(rendered) = rendered {
        request = request.with_host_rendering(rendered);
    }
    let has_store = app.compact().has_store();
    let store = match has_store {
        true => app.compact().store_to_write()?,
        false => app.compact().store_as_is()?,
    };
    let manager = app.transcript_manager(store, app.policy_for(&args.manner), opened)?;
    app.block_on(async {
        match has_store {
            true => Ok(manager.compact(&request).await?),
            false => compact_first(app, &manager, &request).await,
        }
    })
}

/// Compacts what is the first to be stored.
async fn compact_first(
    app: &App,
    manager: &Manager,
    request: &CompactionRequest<'_>,
) -> Result<RequestOutcome, Failure> {
    let mut job = manager.measure(request).await?;
    if job.is_within_budget() {
        return Ok(job.into_unchanged());
    }
    job.plan()?;
    let StorePair { archive, catalog } = app.compact().store_to_write()?;
    let archive = manager.archive().map(|_| archive);
    let writing = manager.clone().with_archive(archive).with_catalog(catalog);
    Ok(job.over(&writing).compact().await?)
}

/// Writes the view as a transcript, or behind the original's lines; nothing if the original went on.
fn write_view(
    args: &CompactArgs,
    opened: &OpenedTranscript,
    commit: &CommittedCompaction,
    destination: ViewDestination,
) -> Result<Option<StdoutPayload>, Failure> {
    let document = &opened.parsed.document;
    let conversation = &opened.parsed.conversation;
    let Compaction { view, receipt, .. } = &commit.compaction;
    let before = receipt.tokens_before + receipt.tokens_fixed;
    let after = receipt.tokens_after + receipt.tokens_fixed;
    let recorded_at = commit.receipt.created_at().unwrap_or_default();
    let stamp = make_stamp(recorded_at, &receipt.receipt_id, before, after);
    match destination {
        ViewDestination::Nowhere => Ok(Some(None)),
        ViewDestination::Target(target) if args.append => {
            let bytes = document.append(conversation, view, &stamp)?;
            target.write(bytes).map(Some)
        }
        ViewDestination::Target(target) => {
            target.write(document.emit(conversation, view)?).map(Some)
        }
        ViewDestination::Append(mut transcript) => {
            let lines = document.lines_to_append(conversation, view, &stamp)?;
            let outcome = transcript.append(&opened.source.bytes, &lines)?;
            Ok((outcome == AppendOutcome::Written).then_some(None))
        }
    }
}

fn make_stamp<'a>(
    timestamp: &'a str,
    receipt: &'a str,
    before: Tokens,
    after: Tokens,
) -> BoundaryStamp<'a> {
    BoundaryStamp {
        timestamp,
        receipt,
        tokens_before: before.0,
        tokens_after: after.0,
    }
}

/// Nothing to do: the input is passed on as it is, and nothing is recorded.
fn unchanged_answer(
    args: &CompactArgs,
    opened: &OpenedTranscript,
    destination: ViewDestination,
    found: &UnchangedSession,
) -> Result<CommandAnswer, Failure> {
    let hashes = EntryHash::from_entries(&opened.parsed.conversation.entries);
    let json = json!({
        "outcome": "unchanged",
        "receipt_id": null,
        "session_id": found.session_id,
        "source_hash": Chain::from_hashes(&hashes),
        "tokens_before": found.tokens,
        "tokens_after": found.tokens,
        "budget": found.budget,
        "retention": Retention::default(),
        "archive": null,
        "summary_version": null,
        "summarizer": null,
        "elapsed_ms": 0,
        "reason": found.reason,
        "output": args.output,
        "format": opened.parsed.document.format().name(),
    });
    let payload = match destination {
        ViewDestination::Target(target) => target.write(opened.source.bytes.to_vec())?,
        ViewDestination::Nowhere | ViewDestination::Append(_) => None,
    };
    let why = match &found.reason {
        None => reason_to_leave(found.tokens, found.budget),
        Some(reason) => {
            format!("the summarizer failed ({reason}) and the host continues without it")
        }
    };
    let human = format!(
        "unchanged {}: {why}; nothing was archived{}\n",
        opened.source.name,
        if args.output.is_some() {
            ", the input was copied"
        } else {
            ""
        },
    );
    Ok(CommandAnswer::new(json, human).with_payload(payload))
}

fn render_compaction(
    args: &CompactArgs,
    app: &App,
    opened: &OpenedTranscript,
    (commit, artifacts): (&CommittedCompaction, &ArtifactPaths),
    charset: Charset,
) -> String {
    let receipt = &commit.compaction.receipt;
    let mut table = receipt_table(receipt, charset);
    if let Some(note) = namesake_note(opened, &receipt.session_id) {
        table.add_row(["note".to_owned(), note]);
    }
    table.add_row(["archive".to_owned(), describe_archive(app, &commit.receipt)]);
    if let Some(path) = output_path(args).filter(|p| *p != Path::new("-")) {
        table.add_row(["written".to_owned(), path.display().to_string()]);
    }
    artifacts.rows().for_each(|row| table.add_row(row));
    let milliseconds = commit.receipt.elapsed_ms().unwrap_or(0);
    table.add_row(["time".to_owned(), format_elapsed(milliseconds)]);
    let summary = commit.compaction.view.summary();
    let summary = summary.map_or_else(String::new, |entry| entry.plain_text());
    let summary = frame::body(&summary).unwrap_or(&summary);
    format!(
        "{} {}\n\n{}\n{}\n{}\n{}",
        "compacted".green().bold(),
        fit(&opened.source.name, COLUMNS - 10).bold(),
        render_token_bars(receipt.tokens_before, receipt.tokens_after, charset),
        table.render(),
        preview(summary, charset),
        next_steps(args, opened, commit),
    )
}

fn describe_archive(app: &App, receipt: &StoredReceipt) -> String {
    match receipt.archived_size() {
        Some(size) => format!(
            "{} as {} in {}",
            format_bytes(size.plain_bytes),
            format_bytes(size.stored_bytes),
            app.stores().archive_location()
        ),
        None => "none: the original was not kept".to_owned(),
    }
}

/// What a person may want to do now.
fn next_steps(
    args: &CompactArgs,
    opened: &OpenedTranscript,
    commit: &CommittedCompaction,
) -> String {
    let mut table = Table::new([
        Column::left().style(Style::new().cyan()),
        Column::left().style(Style::new().dimmed()),
    ]);
    let mut step = |command: String, what: &str| {
        table.add_row([format!("compactctl {command}"), what.to_owned()]);
    };
    if output_path(args).is_none() {
        let name = &opened.source.name;
        let file = if name.len() <= 24 { name } else { "FILE" };
        step(format!("compact {file} -o OUT"), "writes the view");
    }
    if commit.receipt.is_archived() {
        let id = &commit.compaction.receipt.receipt_id;
        let short: String = id.chars().take(12).collect();
        step(format!("restore {short}"), "restores the original");
        step(format!("verify {short}"), "verifies the receipt");
        step("recall WORDS".to_owned(), "searches everything archived");
    }
    table.render()
}
