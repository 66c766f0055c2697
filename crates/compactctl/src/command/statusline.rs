//! `statusline`: one line for Claude Code's status line or a shell's prompt.
//!
//! How full the window is, what the next message costs, and how long the provider's cache still holds the
//! conversation. It is drawn again with every message, so it reads the end of one file and nothing else: no
//! configuration, no store. Whatever goes wrong, the line is empty: a status line must never disturb.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use compact::clock::{Clock, SystemClock};
use compact::token::{ModelPrice, Window, find_model};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::args::StatuslineArgs;

/// The most that an agent says of itself.
const LONGEST_INPUT: u64 = 1 << 20;

/// How much of a transcript's end is looked at first, and at most.
const TAIL: u64 = 64 << 10;
const LONGEST_TAIL: u64 = 8 << 20;

/// How long providers keep a prompt that nobody asks for again, unless the request wanted an hour.
const SHORT_CACHE: i64 = 300;
const LONG_CACHE: i64 = 3_600;

/// Prints the line; an empty one where nothing is known.
pub(super) fn run(args: &StatuslineArgs) -> CommandAnswer {
    let status = read_status(args, SystemClock.now());
    let line = status.as_ref().map(SessionStatus::to_string);
    let json = status.as_ref().map_or(Value::Null, SessionStatus::to_json);
    CommandAnswer::new(json, line.map_or_else(String::new, |line| line + "\n"))
}

fn read_status(args: &StatuslineArgs, now: Timestamp) -> Option<SessionStatus> {
    let said = match &args.file {
        Some(_) => Value::Null,
        None => read_stdin(),
    };
    let named = said.get("transcript_path").and_then(Value::as_str);
    let transcript = args.file.clone().or_else(|| named.map(PathBuf::from));
    let transcript = transcript.or_else(find_newest_transcript);
    let last = transcript.as_deref().and_then(read_last_request);
    SessionStatus::from_parts(&said, last.as_ref(), now)
}

/// What the agent says, if it says anything.
fn read_stdin() -> Value {
    let mut said = Vec::new();
    if io::stdin().is_terminal() {
        return Value::Null;
    }
    let _ = io::stdin().take(LONGEST_INPUT).read_to_end(&mut said);
    serde_json::from_slice(&said).unwrap_or_default()
}

/// The transcript of Claude Code that was written last for the current directory.
fn find_newest_transcript() -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?.display().to_string();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = folder.chars().map(plain).collect();
    let configured = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let root = configured.or_else(|| Some(etcetera::home_dir().ok()?.join(".claude")))?;
    let files = fs::read_dir(root.join("projects").join(name)).ok()?;
    let files = files.flatten().filter_map(|file| {
        let path = file.path();
        let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
        let changed = file.metadata().ok()?.modified().ok()?;
        is_transcript.then_some((changed, path))
    });
    files.max().map(|(_, path)| path)
}

/// The last answer of the model in a transcript, by what it says of its request.
struct LastRequest {
    at: Option<Timestamp>,
    model: Option<String>,
    usage: Value,
}

/// Reads the end of a file, more of it where long lines need that.
fn read_last_request(path: &Path) -> Option<LastRequest> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut tail = TAIL;
    loop {
        let start = length.saturating_sub(tail);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut file)
            .take(tail)
            .read_to_end(&mut bytes)
            .ok()?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some(found) = text.lines().rev().find_map(parse_answer) {
            return Some(found);
        }
        if start == 0 || tail >= LONGEST_TAIL {
            return None;
        }
        tail *= 4;
    }
}

fn parse_answer(line: &str) -> Option<LastRequest> {
    if !line.contains("\"usage\"") {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    let is_aside = line.get("isSidechain").and_then(Value::as_bool) == Some(true);
    let message = line.get("message").filter(|_| !is_aside)?;
    let model = message.get("model").and_then(Value::as_str);
    // What the host itself says in the model's place was never sent for.
    let model = model.filter(|model| !model.starts_with('<'))?;
    let at = line.get("timestamp").and_then(Value::as_str);
    Some(LastRequest {
        at: at.and_then(|at| at.parse().ok()),
        model: Some(model.to_owned()),
        usage: message.get("usage")?.clone(),
    })
}

/// What the line shows.
#[derive(Debug, PartialEq)]
struct SessionStatus {
    /// Tokens of the next request, without what is typed next.
    tokens: u64,
    window: u64,
    /// US dollars for the next request as the cache stands, and once it is cold.
    next: Option<(f64, f64)>,
    /// Seconds until the cache is cold; zero once it is.
    cache: Option<i64>,
}

impl SessionStatus {
    /// What the agent says counts; the transcript has the rest.
    fn from_parts(
        said: &Value,
        last: Option<&LastRequest>,
        now: Timestamp,
    ) -> Option<SessionStatus> {
        let window = said.get("context_window");
        let current = window.and_then(|window| window.get("current_usage"));
        let usage = current.filter(|usage| usage.is_object());
        let usage = usage.or_else(|| last.map(|last| &last.usage))?;
        let counts = TokenCounts::read(usage);
        let model = said.pointer("/model/id").and_then(Value::as_str);
        let model = model.or_else(|| last?.model.as_deref());
        let size = window.and_then(|window| window.get("context_window_size")?.as_u64());
        let known = || Window::for_model(None, model).tokens.0;
        let cache = last.and_then(|last| last.seconds_left(now));
        let price = model.and_then(find_model).and_then(|model| model.price);
        Some(SessionStatus {
            tokens: counts.prompt + counts.answer,
            window: size.unwrap_or_else(known),
            next: price.map(|price| next_cost(&counts, &price, cache)),
            cache,
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "tokens": self.tokens,
            "window": self.window,
            "pressure": self.pressure(),
            "next_usd": self.next.map(|(next, _)| next),
            "cold_usd": self.next.map(|(_, cold)| cold),
            "cache_seconds": self.cache,
        })
    }

    fn pressure(&self) -> f64 {
        self.tokens as f64 / self.window.max(1) as f64
    }
}

impl std::fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let window = match self.window >= 1_000_000 {
            true => format!("{}M", self.window / 1_000_000),
            false => format!("{}k", self.window / 1_000),
        };
        write!(f, "{:.0} % of {window}", self.pressure() * 100.0)?;
        if let Some((next, _)) = self.next {
            write!(f, " · next ${next:.2}")?;
        }
        match (self.cache, self.next) {
            (None, _) => Ok(()),
            (Some(0), _) => write!(f, " · cache cold"),
            (Some(left), next) => {
                write!(f, " · cache {}:{:02}", left / 60, left % 60)?;
                next.map_or(Ok(()), |(_, cold)| write!(f, ", then ${cold:.2}"))
            }
        }
    }
}

/// What a report counts, whichever names its provider has for it.
struct TokenCounts {
    prompt: u64,
    answer: u64,
}

impl TokenCounts {
    fn read(usage: &Value) -> TokenCounts {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        TokenCounts {
            prompt: count("input_tokens")
                + count("cache_read_input_tokens")
                + count("cache_creation_input_tokens"),
            answer: count("output_tokens"),
        }
    }
}

/// What the next request costs as the cache stands, and when it is cold. The answer is new to the cache.
fn next_cost(counts: &TokenCounts, price: &ModelPrice, cache: Option<i64>) -> (f64, f64) {
    let (read, write) = (price.cache_read, price.cache_write);
    let (read, write) = (read.unwrap_or(price.input), write.unwrap_or(price.input));
    let (prompt, answer) = (counts.prompt as f64, counts.answer as f64);
    let warm = (prompt * read + answer * write) / 1e6;
    let cold = (prompt + answer) * write / 1e6;
    match cache {
        Some(0) => (cold, cold),
        _ => (warm, cold),
    }
}

impl LastRequest {
    /// Seconds until what was sent has left the provider's cache.
    fn seconds_left(&self, now: Timestamp) -> Option<i64> {
        let hour = self
            .usage
            .pointer("/cache_creation/ephemeral_1h_input_tokens");
        let is_long = hour
            .and_then(Value::as_u64)
            .is_some_and(|tokens| tokens > 0);
        let kept = if is_long { LONG_CACHE } else { SHORT_CACHE };
        let since = now.duration_since(self.at?).as_secs();
        Some((kept - since).clamp(0, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn answer(hour: u64) -> LastRequest {
        let line = json!({
            "type": "assistant", "timestamp": at(0).to_string(),
            "message": {"model": "claude-sonnet-4-5", "usage": {
                "input_tokens": 1_000, "cache_read_input_tokens": 80_000,
                "cache_creation_input_tokens": 3_000, "output_tokens": 6_000,
                "cache_creation": {"ephemeral_1h_input_tokens": hour},
            }},
        });
        parse_answer(&line.to_string()).unwrap()
    }

    fn line(said: &Value, last: Option<&LastRequest>, now: Timestamp) -> Option<String> {
        SessionStatus::from_parts(said, last, now).map(|status| status.to_string())
    }

    #[test]
    fn the_line_says_pressure_price_and_time() {
        let warm = line(&Value::Null, Some(&answer(0)), at(108));
        assert_eq!(
            warm.as_deref(),
            Some("45 % of 200k · next $0.05 · cache 3:12, then $0.34")
        );
        let cold = line(&Value::Null, Some(&answer(0)), at(301));
        assert_eq!(
            cold.as_deref(),
            Some("45 % of 200k · next $0.34 · cache cold")
        );
        let hour = line(&Value::Null, Some(&answer(9)), at(301));
        assert_eq!(
            hour.as_deref(),
            Some("45 % of 200k · next $0.05 · cache 54:59, then $0.34")
        );
    }

    #[test]
    fn what_the_agent_says_comes_first() {
        let said = json!({
            "model": {"id": "claude-opus-4-1"},
            "context_window": {"context_window_size": 1_000_000, "current_usage": {"input_tokens": 10_000}},
        });
        let told = line(&said, None, at(0)).unwrap();
        assert!(told.starts_with("1 % of 1M · next $0."), "{told}");
        assert!(!told.contains("cache"), "no time is known: {told}");
    }

    #[test]
    fn a_model_that_nobody_knows_has_no_price() {
        let said = json!({
            "model": {"id": "mine"}, "context_window": {"current_usage": {"input_tokens": 64_000}},
        });
        assert_eq!(line(&said, None, at(0)).as_deref(), Some("50 % of 128k"));
    }

    #[test]
    fn nothing_known_is_no_line() {
        assert_eq!(line(&Value::Null, None, at(0)), None);
        assert_eq!(
            line(
                &json!({"context_window": {"current_usage": null}}),
                None,
                at(0)
            ),
            None
        );
    }

    #[test]
    fn answers_of_sub_agents_and_of_the_host_are_passed_over() {
        let usage = json!({"input_tokens": 1});
        let aside = json!({"isSidechain": true, "message": {"model": "m", "usage": usage}});
        let host = json!({"message": {"model": "<synthetic>", "usage": usage}});
        for line in [aside.to_string(), host.to_string(), "{\"usage\"".to_owned()] {
            assert!(parse_answer(&line).is_none(), "{line}");
        }
    }
}
