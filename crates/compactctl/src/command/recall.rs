//! `recall`: search everything archived. The index is brought up to date first.

use std::path::Path;
use std::time::Instant;

use compact_core::event::Event;
use compact_core::message::Role;
use compact_runtime::Error;
use compact_runtime::port::index::IndexError;
use compact_runtime::recall::{Followed, Hit, Query, told};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::answer::Answer;
use crate::args::{Global, Recall};
use crate::failure::{Code, Failure};
use crate::input::Source;
use crate::progress::Progress;
use crate::report::number::count;
use crate::report::text::{one_line, printable};
use crate::report::{COLUMNS, Charset};
use crate::world::World;

/// Looks for a question's answer.
pub fn run(args: &Recall, world: &World, global: &Global) -> Result<Answer, Failure> {
    let text = question(&args.query)?;
    let recall = world.recall()?;
    let (caught_up, hits) = world.block_on(async {
        let caught_up = catch_up(&recall, global).await?;
        let query = Query {
            text: &text,
            session_id: global.session.as_deref(),
            limit: args.limit as usize,
        };
        let asked = Instant::now();
        let hits = recall.search(&query).await?;
        tell_of(world, &told::searched(&query, &hits, asked.elapsed()))?;
        Ok((caught_up, hits))
    })?;
    let json = json!({
        "session_id": global.session,
        "hits": hits,
        "unreadable": caught_up.followed.unreadable,
        "sessions_not_indexed": caught_up.left,
    });
    Ok(Answer::new(
        json,
        tell(&hits, &caught_up, Charset::detect(global)),
    ))
}

/// Tells who is told that something archived was asked for.
pub fn tell_of(world: &World, event: &Event) -> Result<(), Failure> {
    if let Ok(event) = serde_json::to_value(event) {
        world.sink()?.emit(&event);
    }
    Ok(())
}

/// Brings the index up to date, without a word.
pub fn follow(world: &World) -> Result<Followed, Failure> {
    let recall = world.recall()?;
    world.block_on(async { Ok(recall.follow().await?) })
}

/// The words of the command line, or of stdin.
fn question(words: &[String]) -> Result<String, Failure> {
    let [only] = words else {
        return Ok(words.join(" "));
    };
    if only != "-" {
        return Ok(only.clone());
    }
    let source = Source::read(Path::new("-"))?;
    let text = std::str::from_utf8(&source.bytes).map_err(|error| {
        Failure::of(Code::Input, &error)
            .about("the query on stdin is no text")
            .help("pass UTF-8")
    })?;
    Ok(text.to_owned())
}

/// How far the index came.
#[derive(Default)]
struct CaughtUp {
    followed: Followed,
    /// Sessions that it could not take in, and why.
    left: usize,
    reason: Option<String>,
}

/// Brings the index up to date. Where it cannot be written to, what it holds is searched.
async fn catch_up(recall: &compact_runtime::Recall, global: &Global) -> Result<CaughtUp, Failure> {
    let behind = recall.behind().await?;
    let progress = Progress::over_steps(global, behind.len(), "indexing sessions");
    let mut caught_up = CaughtUp::default();
    for (nth, session) in behind.iter().enumerate() {
        match recall.follow_session(session).await {
            Ok(followed) => caught_up.followed += followed,
            Err(Error::Index(IndexError::Store { action, source })) => {
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

fn tell(hits: &[Hit], caught_up: &CaughtUp, charset: Charset) -> String {
    let mut out = String::new();
    for hit in hits {
        out.push_str(&shown(hit, charset));
    }
    if hits.is_empty() {
        out.push_str("nothing archived says that; try other words, or fewer\n");
    }
    if let Some(reason) = &caught_up.reason {
        let left = count(caught_up.left as u64, "session", "sessions");
        out.push_str(&format!(
            "the index could not follow ({reason}): {left} not searched\n"
        ));
    }
    if caught_up.followed.unreadable > 0 {
        let missing = count(caught_up.followed.unreadable, "original", "originals");
        out.push_str(&format!(
            "{missing} could not be read and searched: see `compactctl archive verify`\n"
        ));
    }
    out
}

fn shown(hit: &Hit, charset: Charset) -> String {
    let mut out = format!(
        "{}  {}{}{}\n",
        printable(&hit.pointer).bold(),
        speaker(hit.role).cyan(),
        charset.dot(),
        one_line(&hit.session_id, 40).dimmed(),
    );
    for line in hit.snippet.lines().filter(|line| !line.trim().is_empty()) {
        for part in wrapped(&printable(line), COLUMNS - 4) {
            out.push_str(&format!("  {}{part}\n", charset.rule().dimmed()));
        }
    }
    out.push('\n');
    out
}

fn speaker(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "model",
        Role::Tool => "tool",
        Role::System | Role::Developer => "instructions",
    }
}

/// Words laid out in lines of at most `width` columns; a longer word has a line of its own.
fn wrapped(line: &str, width: usize) -> Vec<String> {
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
