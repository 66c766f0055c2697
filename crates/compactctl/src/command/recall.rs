//! `recall`: search everything archived. The index is brought up to date first.

use std::path::Path;
use std::time::Instant;

use compact::event;
use compact::event::Event;
use compact::manager::RuntimeError;
use compact::recall::{
    AnswerStyle, HitOrder, IndexUpdate, Recall, RecallQuery, SearchAnswer, SecretDisplay,
};
use compact::store::{IndexError, MIN_PREFIX};
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{GlobalArgs, RecallArgs};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::progress::TerminalProgress;
use crate::report::Charset;
use crate::report::number::format_count;
use crate::report::text::printable_code;

/// Looks for a question's answer.
pub(super) fn run(
    args: &RecallArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let found = find_hits(args, app, global)?;
    let answer = &found.answer;
    let json = json!({
        "session_id": found.session,
        "hits": answer.hits,
        "has_all_words": answer.has_all_words(),
        "unknown_words": answer.unknown_words,
        "unreadable": found.unreadable(),
        "sessions_not_indexed": found.caught_up.left,
    });
    let human = render_answer(answer, &found.caught_up, Charset::detect(global));
    Ok(CommandAnswer::new(json, human))
}

/// What was found, and where.
pub(super) struct FoundHits {
    pub(super) answer: SearchAnswer,
    /// The session that was searched; all, if none.
    session: Option<String>,
    caught_up: IndexCatchUp,
}

impl FoundHits {
    /// How many archived originals could not be searched.
    pub(super) fn unreadable(&self) -> u64 {
        self.caught_up.followed.unreadable
    }
}

/// Brings the index up to date and searches it.
pub(super) fn find_hits(
    args: &RecallArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<FoundHits, Failure> {
    let words = read_words(&args.query)?;
    let recall = app.compact().open_recall()?;
    app.block_on(async {
        let caught_up = catch_up(&recall, app, global).await?;
        let scope = SearchScope::resolve(&recall, global, &words).await?;
        let query = RecallQuery {
            text: &scope.words.join(" "),
            session_id: scope.session.as_deref(),
            after: args.after,
            order: match args.latest {
                true => HitOrder::Latest,
                false => HitOrder::Best,
            },
            limit: args.limit as usize,
            secrets: SecretDisplay::shown_if(args.unredacted),
        };
        let asked = Instant::now();
        let answer = recall.search(&query).await?;
        let (clock, took) = (app.compact().clock(), asked.elapsed());
        emit_event(app, &event::search_event(clock, &query, &answer.hits, took))?;
        Ok(FoundHits {
            answer,
            session: scope.session,
            caught_up,
        })
    })
}

/// What is searched: the words, in one session or in all.
struct SearchScope<'a> {
    session: Option<String>,
    words: &'a [String],
}

impl<'a> SearchScope<'a> {
    /// A receipt before other words stands for its session, as a dot does for the last one; a word that
    /// only looks like a receipt is a word.
    async fn resolve(
        recall: &Recall,
        global: &GlobalArgs,
        words: &'a [String],
    ) -> Result<SearchScope<'a>, Failure> {
        let session = global.session.clone();
        let everything = SearchScope { session, words };
        let Some((first, rest)) = words.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            return Ok(everything);
        };
        let is_receipt = first.len() >= MIN_PREFIX && first.bytes().all(|b| b.is_ascii_hexdigit());
        if global.session.is_some() || !(is_receipt || first == ".") {
            return Ok(everything);
        }
        match recall.session_named(first).await {
            Ok(session) => Ok(SearchScope {
                session: Some(session),
                words: rest,
            }),
            Err(RuntimeError::NotFound(_)) if is_receipt => Ok(everything),
            Err(error) => Err(error.into()),
        }
    }
}

/// Tells who is told that something archived was asked for.
pub(crate) fn emit_event(app: &App, event: &Event) -> Result<(), Failure> {
    app.compact().sink()?.emit(event);
    Ok(())
}

/// The words of the command line, or of stdin.
fn read_words(words: &[String]) -> Result<Vec<String>, Failure> {
    if words != ["-"] {
        return Ok(words.to_vec());
    }
    let source = InputSource::read(Path::new("-"))?;
    let text = std::str::from_utf8(&source.bytes).map_err(|error| {
        Failure::from_error(FailureCode::Input, &error)
            .with_context("the query on stdin is not text")
            .help("pass UTF-8")
    })?;
    Ok(vec![text.to_owned()])
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
    recall: &Recall,
    app: &App,
    global: &GlobalArgs,
) -> Result<IndexCatchUp, Failure> {
    let mut behind = recall.outdated_sessions().await?;
    let mut turn = None;
    if !behind.is_empty() {
        turn = app.compact().wait_for_index_turn().await;
        behind = recall.outdated_sessions().await?;
    }
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
    drop(turn);
    Ok(caught_up)
}

fn render_answer(answer: &SearchAnswer, caught_up: &IndexCatchUp, charset: Charset) -> String {
    let style = AnswerStyle {
        quote: match charset {
            Charset::Unicode => |text| quote_lines(text, Charset::Unicode),
            Charset::Ascii => |text| quote_lines(text, Charset::Ascii),
        },
        ask_rest: |_, _| String::new(),
    };
    let mut out = answer.render(&style);
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

/// The lines of a quotation behind a bar, as they are: a line that is broken elsewhere is another line.
fn quote_lines(text: &str, charset: Charset) -> String {
    let quoted = text.lines().map(|line| {
        let line = printable_code(line.trim_end());
        format!("  {}{line}\n", charset.quote_mark())
    });
    quoted.collect()
}
