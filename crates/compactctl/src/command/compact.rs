//! `compact`: archive the original, record the receipt, write the view. In that order.
//!
//! Without `-o` the view is only archived: a file that nobody asked for would be a surprise. A
//! session that is within its budget is left alone; `-o` then gets the input as it is, so that a
//! pipeline can go on.

use std::path::Path;

use compact_core::engine::{Compaction, Outcome};
use compact_core::identity::{Chain, EntryHash};
use compact_core::summarize::frame;
use compact_core::token::Tokens;
use compact_core::verify::Retention;
use compact_core::view::View;
use compact_formats::{FormatError, Stamp};
use compact_runtime::manager::{Commit, Compacted, Request, now};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::{Answer, set};
use crate::append::{AppendOutcome, SharedTranscript, busy};
use crate::args::{Compact, Global};
use crate::artifact::{self, Artifacts};
use crate::failure::{Code, Failure};
use crate::input::Source;
use crate::output::Target;
use crate::progress::Progress;
use crate::report::compaction::{bars, facts, preview};
use crate::report::number::{bytes, count, elapsed, grouped};
use crate::report::table::{Column, Table};
use crate::report::text::fit;
use crate::report::{COLUMNS, Charset};
use crate::world::{Opened, World};

/// How often a transcript that grew meanwhile is compacted anew before it is left to its agent.
const TRIES: usize = 4;

/// Compacts a session.
pub fn run(args: &Compact, world: &World, global: &Global) -> Result<Answer, Failure> {
    check_streams(args, global)?;
    let output = args.output.as_deref();
    if args.append && output.is_none_or(|output| is_same(output, &args.subject.file)) {
        return append_in_place(args, world, global);
    }
    let opened = world.open(&args.subject)?;
    if args.append {
        check_boundary(&opened)?;
    }
    let destination = match &args.output {
        Some(path) => Destination::Target(Target::open(path, opened.source.path.as_deref())?),
        None => Destination::Nowhere,
    };
    let answer = attempt(args, world, global, &opened, destination)?;
    answer.ok_or_else(|| Failure::new(Code::Unexpected, "a file of its own was outrun"))
}

/// Compacts a transcript and writes the view behind it. What its agent wrote meanwhile is taken in by
/// compacting it anew; an agent that does not rest is left alone.
fn append_in_place(args: &Compact, world: &World, global: &Global) -> Result<Answer, Failure> {
    let path = &args.subject.file;
    for _ in 0..TRIES {
        let mut transcript = SharedTranscript::open(path)?;
        let source = Source {
            name: path.display().to_string(),
            path: Some(path.clone()),
            bytes: transcript.read_at_rest()?,
        };
        let opened = world.open_source(&args.subject, source)?;
        check_boundary(&opened)?;
        let destination = Destination::Behind(transcript);
        if let Some(answer) = attempt(args, world, global, &opened, destination)? {
            return Ok(answer);
        }
    }
    Err(busy(
        path,
        "it was written to each time that it was compacted",
    ))
}

/// Compacts what was read and writes the view; nothing when the file went on meanwhile.
fn attempt(
    args: &Compact,
    world: &World,
    global: &Global,
    opened: &Opened,
    destination: Destination,
) -> Result<Option<Answer>, Failure> {
    let progress = Progress::over_bytes(global, opened.source.bytes.len(), "compacting");
    let told = artifact::told(world, opened)?;
    let told = told.as_deref();
    let compacted = compact(args, world, global, (opened, told)).map_err(|failure| {
        artifact::failed(world, opened, told, global.session.as_deref(), failure)
    })?;
    drop(progress);
    let found = match compacted {
        Compacted::Done(commit) => {
            let Some(payload) = write(args, opened, &commit, destination)? else {
                return Ok(None);
            };
            let session = &commit.compaction.receipt.session_id;
            let view = Some(&commit.compaction.view);
            let artifacts = artifact::keep(world, told, session, view)?;
            let charset = Charset::detect(global);
            let answer = done(args, world, opened, (&commit, artifacts), charset);
            return Ok(Some(answer.with_payload(payload)));
        }
        Compacted::Unchanged {
            session_id,
            tokens,
            budget,
        } => Unchanged {
            session_id,
            tokens,
            budget,
            reason: None,
        },
        Compacted::Declined {
            session_id,
            tokens,
            budget,
            reason,
        } => Unchanged {
            session_id,
            tokens,
            budget,
            reason: Some(reason),
        },
    };
    unchanged(args, opened, destination, &found).map(Some)
}

/// Where a view goes.
enum Destination {
    Nowhere,
    Target(Target),
    /// Behind the transcript that it was made of.
    Behind(SharedTranscript),
}

/// Bytes for stdout, if that is where they go.
type Payload = Option<Vec<u8>>;

/// What is said of a compaction that is on record.
fn done(
    args: &Compact,
    world: &World,
    opened: &Opened,
    (commit, artifacts): (&Commit, Option<Artifacts>),
    charset: Charset,
) -> Answer {
    let mut json = commit.receipt.clone();
    let format = opened.parsed.document.format().name();
    set(&mut json, "output", json!(destination(args)));
    set(&mut json, "format", json!(format));
    if let Some(artifacts) = &artifacts {
        set(&mut json, "artifacts", artifacts.json());
    }
    let artifacts = artifacts.unwrap_or_default();
    let human = tell(args, world, opened, (commit, &artifacts), charset);
    let answer = Answer::new(json, human);
    match commit.receipt.get("archive") {
        None | Some(Value::Null) => answer,
        Some(_) => answer.having_archived(),
    }
}

struct Unchanged {
    session_id: String,
    tokens: Tokens,
    budget: Tokens,
    /// Why a history that is over its budget was left alone.
    reason: Option<String>,
}

/// Where the result goes: `-o`, the file itself for `--append`, or nowhere.
fn destination(args: &Compact) -> Option<&Path> {
    match &args.output {
        Some(path) => Some(path),
        None => args.append.then_some(args.subject.file.as_path()),
    }
}

fn check_streams(args: &Compact, global: &Global) -> Result<(), Failure> {
    let stdout = destination(args) == Some(Path::new("-"));
    if stdout && args.output.is_none() {
        return Err(Failure::usage(
            "--append cannot change stdin in place",
            "say where the result goes with -o",
        ));
    }
    if stdout && global.json {
        return Err(Failure::usage(
            "-o - and --json both want stdout",
            "write the view to a file, or leave --json out",
        ));
    }
    let is_slice = args.subject.session_index.is_some();
    if is_slice && destination(args).is_some_and(|out| is_same(out, &args.subject.file)) {
        return Err(Failure::usage(
            "one session would take the place of a file that may hold many",
            "write the session to another file with -o",
        ));
    }
    Ok(())
}

/// True when both names lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Formats without a boundary are refused before anything is archived.
fn check_boundary(opened: &Opened) -> Result<(), Failure> {
    let probe = opened.parsed.document.lines_to_append(
        &opened.parsed.conversation,
        &View::default(),
        &stamp("", "", Tokens(0), Tokens(0)),
    );
    match probe {
        Err(error @ FormatError::NoBoundary { .. }) => {
            Err(Failure::from(error).about(&opened.source.name))
        }
        _ => Ok(()),
    }
}

/// Compacts over the store; one that is not there yet is created only for something to keep.
fn compact(
    args: &Compact,
    world: &World,
    global: &Global,
    (opened, told): (&Opened, Option<&[String]>),
) -> Result<Compacted, Failure> {
    let mut request = opened.request(&args.goal, &args.manner, global);
    request.told = told;
    request.parent = world.caller();
    let policy = world.policy(&args.manner);
    if !world.has_store() {
        let store = world.store_as_is()?;
        let rehearsal = world.manager(store, policy.clone(), opened)?;
        if let Some(nothing) = world.block_on(nothing_to_do(&rehearsal, &request))? {
            return Ok(nothing);
        }
    }
    let manager = world.manager(world.store_to_write()?, policy, opened)?;
    world.block_on(async { Ok(manager.compact(&request).await?) })
}

async fn nothing_to_do(
    manager: &compact_runtime::Manager,
    request: &Request<'_>,
) -> Result<Option<Compacted>, Failure> {
    let measured = manager.measure(request).await?;
    Ok(match manager.plan(&measured)? {
        Outcome::Compacted(_) => None,
        Outcome::Unchanged => Some(Compacted::Unchanged {
            tokens: measured.account.history,
            budget: measured.budget,
            session_id: measured.session_id,
        }),
    })
}

/// Writes the view as a transcript, or behind the original's lines; nothing if the original went on.
fn write(
    args: &Compact,
    opened: &Opened,
    commit: &Commit,
    destination: Destination,
) -> Result<Option<Payload>, Failure> {
    let document = &opened.parsed.document;
    let conversation = &opened.parsed.conversation;
    let Compaction { view, receipt, .. } = &commit.compaction;
    let before = receipt.tokens_before + receipt.tokens_fixed;
    let after = receipt.tokens_after + receipt.tokens_fixed;
    let now = now();
    let stamp = stamp(&now, &receipt.receipt_id, before, after);
    match destination {
        Destination::Nowhere => Ok(Some(None)),
        Destination::Target(target) if args.append => {
            let bytes = document.append(conversation, view, &stamp)?;
            target.write(bytes).map(Some)
        }
        Destination::Target(target) => target.write(document.emit(conversation, view)?).map(Some),
        Destination::Behind(mut transcript) => {
            let lines = document.lines_to_append(conversation, view, &stamp)?;
            let outcome = transcript.append(&opened.source.bytes, &lines)?;
            Ok((outcome == AppendOutcome::Written).then_some(None))
        }
    }
}

fn stamp<'a>(timestamp: &'a str, receipt: &'a str, before: Tokens, after: Tokens) -> Stamp<'a> {
    Stamp {
        timestamp,
        receipt,
        tokens_before: before.0,
        tokens_after: after.0,
    }
}

/// Nothing to do: the input is passed on as it is, and nothing is recorded.
fn unchanged(
    args: &Compact,
    opened: &Opened,
    destination: Destination,
    found: &Unchanged,
) -> Result<Answer, Failure> {
    let hashes = EntryHash::all(&opened.parsed.conversation.entries);
    let json = json!({
        "outcome": "unchanged",
        "receipt_id": null,
        "session_id": found.session_id,
        "source_hash": Chain::over(&hashes),
        "tokens_before": found.tokens,
        "tokens_after": found.tokens,
        "budget": found.budget,
        "retention": Retention { score: 1.0, ..Retention::default() },
        "archive": null,
        "summary_version": null,
        "summarizer": null,
        "elapsed_ms": 0,
        "reason": found.reason,
        "output": args.output,
        "format": opened.parsed.document.format().name(),
    });
    let payload = match destination {
        Destination::Target(target) => target.write(opened.source.bytes.to_vec())?,
        Destination::Nowhere | Destination::Behind(_) => None,
    };
    let tokens = count(found.tokens.0, "token", "tokens");
    let budget = grouped(found.budget.0);
    let why = match &found.reason {
        None => format!("a history of {tokens} is within the budget of {budget}"),
        Some(reason) => format!("the summarizer failed ({reason}) and the host goes on by itself"),
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
    Ok(Answer::new(json, human).with_payload(payload))
}

fn tell(
    args: &Compact,
    world: &World,
    opened: &Opened,
    (commit, artifacts): (&Commit, &Artifacts),
    charset: Charset,
) -> String {
    let receipt = &commit.compaction.receipt;
    let mut table = facts(receipt, charset);
    table.row(["archive".to_owned(), archived(world, &commit.receipt)]);
    if let Some(path) = destination(args).filter(|p| *p != Path::new("-")) {
        table.row(["written".to_owned(), path.display().to_string()]);
    }
    artifacts.rows().for_each(|row| table.row(row));
    let milliseconds = commit.receipt.get("elapsed_ms").and_then(Value::as_u64);
    table.row(["time".to_owned(), elapsed(milliseconds.unwrap_or(0))]);
    let summary = commit.compaction.view.summary();
    let summary = summary.map_or_else(String::new, |entry| entry.plain_text());
    let summary = frame::body(&summary).unwrap_or(&summary);
    format!(
        "{} {}\n\n{}\n{}\n{}\n{}",
        "compacted".green().bold(),
        fit(&opened.source.name, COLUMNS - 10).bold(),
        bars(receipt.tokens_before, receipt.tokens_after, charset),
        table.render(),
        preview(summary, charset),
        next_steps(args, opened, &commit.receipt),
    )
}

fn archived(world: &World, receipt: &Value) -> String {
    let size = |field: &str| {
        receipt
            .pointer(&format!("/archive/{field}"))
            .and_then(Value::as_u64)
    };
    match (size("plain_bytes"), size("stored_bytes")) {
        (Some(plain), Some(stored)) => format!(
            "{} as {} in {}",
            bytes(plain),
            bytes(stored),
            world.stores().archive_place()
        ),
        _ => "none: the original was not kept".to_owned(),
    }
}

/// What a person may want to do now.
fn next_steps(args: &Compact, opened: &Opened, receipt: &Value) -> String {
    let mut table = Table::new([
        Column::left().style(Style::new().cyan()),
        Column::left().style(Style::new().dimmed()),
    ]);
    let mut step = |command: String, what: &str| {
        table.row([format!("compactctl {command}"), what.to_owned()]);
    };
    if destination(args).is_none() {
        let name = &opened.source.name;
        let file = if name.len() <= 24 { name } else { "FILE" };
        step(format!("compact {file} -o OUT"), "writes the view");
    }
    if receipt.get("archive").is_some_and(|a| !a.is_null()) {
        let id = receipt.get("receipt_id").and_then(Value::as_str);
        let short: String = id.unwrap_or_default().chars().take(12).collect();
        step(format!("restore {short}"), "gives the original back");
        step(format!("verify {short}"), "proves the receipt again");
        step("recall WORDS".to_owned(), "searches all that was archived");
    }
    table.render()
}
