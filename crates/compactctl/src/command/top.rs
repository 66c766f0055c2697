//! `top`: the sessions that something happened in last, on the terminal, drawn again every second or two.
//!
//! It is the list of the dashboard, by the same query. Where nobody watches (a pipe, `--once`, `--json`) it is printed once.
//! The list stands on the terminal's other screen, which goes away with its last line: what stood there before comes back,
//! however it ends.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use compact::Compact;
use compact::overview::{
    ListedSession, SessionEvent, SessionList, SessionListQuery, SessionOrigin,
};
use compact::spending::{SpendingQuery, SpendingReport};
use jiff::Timestamp;
use owo_colors::Style;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::answer::CommandAnswer;
use crate::app::{self, App};
use crate::args::{GlobalArgs, TopArgs};
use crate::failure::Failure;
use crate::output;
use crate::report::number::{format_count, format_percent, group_digits};
use crate::report::table::{Column, Table};
use crate::report::text::one_line;
use crate::stop::{Hangup, StopRequest};

/// The other screen, without a cursor and without a second line for what is too long; and back again.
const OPEN_SCREEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const CLOSE_SCREEN: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// An empty screen, from its first line on.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";

/// Lines around the rows: what it is, an empty one, the heads of the columns, what ≈ means, an empty one.
const FRAME_LINES: usize = 5;
/// Rows where no terminal says how many it has.
const USUAL_LINES: usize = 24;
/// Columns of a session's name.
const NAME_COLUMNS: usize = 40;

/// Shows the list until it is told to stop, or prints it once.
pub(super) fn run(
    args: &TopArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let is_watched = stdout().is_terminal() && !args.once && !global.json;
    match is_watched {
        true => app::block_on(watch(app.compact(), args)),
        false => app.block_on(print_once(app.compact(), args)),
    }
}

async fn print_once(compact: &Compact, args: &TopArgs) -> Result<CommandAnswer, Failure> {
    let state = TopState::read(compact, args.lines).await?;
    Ok(CommandAnswer::new(state.to_json(), state.render()))
}

async fn watch(compact: &Compact, args: &TopArgs) -> Result<CommandAnswer, Failure> {
    let stop = StopRequest::listen(Hangup::Stops)?;
    let mut asked = stop.watch();
    let _screen = OtherScreen::open()?;
    loop {
        let lines = args.lines.or_else(terminal_rows);
        let state = TopState::read(compact, lines).await?;
        // Whoever wants no colours still wants the list in its place.
        output::print_bytes(CLEAR_SCREEN.as_bytes())?;
        output::print_styled(&state.render())?;
        let pause = Duration::from_secs_f64(args.seconds);
        let is_over = timeout(pause, asked.wait_for(|asked| *asked)).await;
        if is_over.is_ok() {
            return Ok(CommandAnswer::new(Value::Null, String::new()));
        }
    }
}

/// The terminal's other screen; what stood on the first one is back when this is dropped.
struct OtherScreen;

impl OtherScreen {
    fn open() -> Result<OtherScreen, Failure> {
        output::print_bytes(OPEN_SCREEN.as_bytes())?;
        Ok(OtherScreen)
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        let _ = output::print_bytes(CLOSE_SCREEN.as_bytes());
    }
}

/// Returns how many rows the terminal has room for.
#[cfg(unix)]
fn terminal_rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    let rows = usize::from(size.ws_row);
    (rows > FRAME_LINES).then(|| rows - FRAME_LINES)
}

#[cfg(not(unix))]
fn terminal_rows() -> Option<usize> {
    None
}

/// What is shown.
struct TopState {
    list: SessionList,
    spending: SpendingReport,
    now: Timestamp,
}

impl TopState {
    async fn read(compact: &Compact, lines: Option<usize>) -> Result<TopState, Failure> {
        let query = SessionListQuery {
            limit: lines.unwrap_or(USUAL_LINES - FRAME_LINES),
            ..SessionListQuery::default()
        };
        let spending = compact.spending(&SpendingQuery {
            weeks: 1,
            ..SpendingQuery::default()
        });
        Ok(TopState {
            list: compact.list_sessions(&query).await?,
            now: compact.clock().now(),
            spending,
        })
    }

    fn to_json(&self) -> Value {
        let sessions: Vec<Value> = self.list.sessions.iter().map(row_json).collect();
        json!({
            "total": self.list.total,
            "sessions": sessions,
            "last_hour": {
                "requests": self.spending.hour.requests,
                "cost_usd": self.spending.hour.cost_usd,
            },
        })
    }

    fn render(&self) -> String {
        let hour = &self.spending.hour;
        let head = format!(
            "  {}, ${:.2} in the last hour ({})\n\n",
            format_count(self.list.total as u64, "session", "sessions"),
            hour.cost_usd,
            format_count(hour.requests, "request", "requests"),
        );
        if self.list.sessions.is_empty() {
            return format!("{head}  nothing has been compacted yet\n");
        }
        let dim = Style::new().dimmed();
        let mut table = Table::new([
            Column::left(),
            Column::left().style(dim),
            Column::left(),
            Column::right(),
            Column::right(),
            Column::right(),
            Column::right(),
            Column::right().style(dim),
        ]);
        let heads = [
            "session",
            "from",
            "model",
            "tokens",
            "window",
            "compacted",
            "kept",
            "last",
        ];
        table.add_row(heads.map(str::to_owned));
        for listed in &self.list.sessions {
            table.add_row(render_row(listed, self.now));
        }
        head + &table.render() + "  ≈ is estimated, the rest as the provider counted it\n"
    }
}

fn render_row(listed: &ListedSession, now: Timestamp) -> [String; 8] {
    let unknown = || "–".to_owned();
    let mark = if listed.is_counted() { "" } else { "≈ " };
    let tokens = listed.tokens_now();
    let tokens = tokens.map(|tokens| format!("{mark}{}", group_digits(tokens.0)));
    let share = pressure(listed).map(format_percent);
    let kept = listed.retention.map(format_percent);
    let model = listed.model.as_deref().unwrap_or("–");
    let state = match listed.last_event() {
        SessionEvent::Failure => "failed".to_owned(),
        _ => source_name(listed).to_owned(),
    };
    [
        one_line(&listed.info.session_id, NAME_COLUMNS),
        state,
        one_line(model, NAME_COLUMNS),
        tokens.unwrap_or_else(unknown),
        share.unwrap_or_else(unknown),
        group_digits(listed.compactions),
        kept.unwrap_or_else(unknown),
        time_since(listed.info.last_at.as_deref(), now),
    ]
}

fn row_json(listed: &ListedSession) -> Value {
    json!({
        "session_id": listed.info.session_id,
        "origin": source_name(listed),
        "model": listed.model,
        "window": listed.window.tokens,
        "tokens_before": listed.tokens.map(|(before, _)| before),
        "tokens_after": listed.tokens.map(|(_, after)| after),
        "tokens_now": listed.tokens_now(),
        "pressure": pressure(listed),
        "retention": listed.retention,
        "compactions": listed.compactions,
        "last_at": listed.info.last_at,
        "failed": listed.failed,
    })
}

/// The share of the window that is filled now.
fn pressure(listed: &ListedSession) -> Option<f64> {
    let tokens = listed.tokens_now()?;
    Some(tokens.0 as f64 / listed.window.tokens.0.max(1) as f64)
}

fn source_name(listed: &ListedSession) -> &str {
    match listed.origin {
        SessionOrigin::Hook => "hook",
        SessionOrigin::Run => "run",
        SessionOrigin::Branch => "undo",
        SessionOrigin::Compaction => match listed.info.format.as_deref() {
            None if listed.request.is_some() => "live",
            format => format.unwrap_or("–"),
        },
    }
}

fn time_since(at: Option<&str>, now: Timestamp) -> String {
    let at = at.and_then(|at| at.parse::<Timestamp>().ok());
    let Some(at) = at else {
        return "–".to_owned();
    };
    match now.as_second() - at.as_second() {
        ..1 => "now".to_owned(),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
