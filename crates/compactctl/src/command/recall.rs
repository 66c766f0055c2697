//! `recall`: search everything archived. The index is brought up to date first.

use std::path::Path;
use std::time::Instant;

use compact::event;
use compact::event::Event;
use compact::manager::RuntimeError;
use compact::message::Role;
use compact::recall::{IndexUpdate, RecallQuery, SearchHit};
use compact::store::IndexError;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{GlobalArgs, RecallArgs};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::progress::TerminalProgress;
use crate::report::number::format_count;
use crate::report::text::{one_line, printable};
use crate::report::{COLUMNS, Charset};

/// Looks for a question's answer.
pub(crate) fn run(
    args: &RecallArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let text = read_query(&args.query)?;
    let recall = app.compact().open_recall()?;
    let (caught_up, hits) = app.block_on(async {
        let caught_up = catch_up(&recall, global).await?;
        let query = RecallQuery {
            text: &text,
            session_id: global.session.as_deref(),
            limit: args.limit as usize,
        };
        let asked = Instant::now();
        let hits = recall.search(&query).await?;
        let (clock, took) = (app.compact().clock(), asked.elapsed());
        emit_event(app, &event::search_event(clock, &query, &hits, took))?;
        Ok((caught_up, hits))
    })?;
    let json = json!({
        "session_id": global.session,
        "hits": hits,
        "unreadable": caught_up.followed.unreadable,
        "sessions_not_indexed": caught_up.left,
    });
    Ok(CommandAnswer::new(
        json,
        render_hits(&hits, &caught_up, Charset::detect(global)),
    ))
}

/// Tells who is told that something archived was asked for.
pub(crate) fn emit_event(app: &App, event: &Event) -> Result<(), Failure> {
    app.compact().sink()?.emit(event);
    Ok(())
}

/// Brings the index up to date, without a word.
pub(crate) fn update_index(app: &App) -> Result<IndexUpdate, Failure> {
    let recall = app.compact().open_recall()?;
    app.block_on(async { Ok(recall.update_index().await?) })
}

/// The words of the command line, or of stdin.
fn read_query(words: &[String]) -> Result<String, Failure> {
    let [only] = words else {
        return Ok(words.join(" "));
    };
    if only != "-" {
        return Ok(only.clone());
    }
    let source = InputSource::read(Path::new("-"))?;
    let text = std::str::from_utf8(&source.bytes).map_err(|error| {
        Failure::from_error(FailureCode::Input, &error)
            .with_context("the query on stdin is not text")
            .help("pass UTF-8")
    })?;
    Ok(text.to_owned())
}

/// How far the index came.
#[derive(Default)]
struct IndexCatchUp {
    followed: IndexUpdate,
    /// Sessions that it could not take in, and why.
    left: usize,
    reason: Option<String>,
}

/// Brings the index up to date. Where it cannot be written to, what it holds is searched.
async fn catch_up(
    recall: &compact::recall::Recall,
    global: &GlobalArgs,
) -> Result<IndexCatchUp, Failure> {
    let behind = recall.outdated_sessions().await?;
    let progress = TerminalProgress::over_steps(global, behind.len(), "indexing sessions");
    let mut caught_up = IndexCatchUp::default();
    for (nth, session) in behind.iter().enumerate() {
        match recall.update_session(session).await {
            Ok(followed) => caught_up.followed += followed,
            Err(RuntimeError::Index(IndexError::Store { action, source })) => {
                caught_up.left = behind.len() - nth;
                caught_up.reason = Some(format!("cannot {action}: {source}"));
                break;
            }
            Err(error) => return Err(error.into()),
        }
        progress.step();
    }
    Ok(caught_up)
}

fn render_hits(hits: &[SearchHit], caught_up: &IndexCatchUp, charset: Charset) -> String {
    let mut out = String::new();
    for hit in hits {
        out.push_str(&render_hit(hit, charset));
    }
    if hits.is_empty() {
        out.push_str("nothing archived says that; try other words, or fewer\n");
    }
    if let Some(reason) = &caught_up.reason {
        let left = format_count(caught_up.left as u64, "session", "sessions");
        out.push_str(&format!(
            "the index is not up to date ({reason}): {left} not searched\n"
        ));
    }
    if caught_up.followed.unreadable > 0 {
        let missing = format_count(caught_up.followed.unreadable, "original", "originals");
        out.push_str(&format!(
            "{missing} could not be read and searched: see `compactctl archive verify`\n"
        ));
    }
    out
}

fn render_hit(hit: &SearchHit, charset: Charset) -> String {
    let mut out = format!(
        "{}  {}{}{}\n",
        printable(&hit.pointer).bold(),
        role_label(hit.role).cyan(),
        charset.separator(),
        one_line(&hit.session_id, 40).dimmed(),
    );
    for line in hit.snippet.lines().filter(|line| !line.trim().is_empty()) {
        for part in wrap_words(&printable(line), COLUMNS - 4) {
            out.push_str(&format!("  {}{part}\n", charset.quote_mark().dimmed()));
        }
    }
    out.push('\n');
    out
}

fn role_label(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "model",
        Role::Tool => "tool",
        Role::System | Role::Developer => "instructions",
    }
}

/// Words laid out in lines of at most `width` columns; a longer word has a line of its own.
fn wrap_words(line: &str, width: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let mut lines: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match lines.last_mut() {
            Some(last) if last.width() + 1 + word.width() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
