//! Tasks that go on in the background: which were started, and which of them have ended.
//!
//! A call's answer gives a task its id; a host's notice, a later look at it or a call that stops it says that it ended.
//! Both are kept apart, because the end may be told in a later stretch of the session.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::call_field::CallFields;
use super::fact::ToolRunOutcome;
use super::sentence::clip;

/// A task that a call started in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// The ordinal of the call.
    pub ordinal: u32,
    /// The id that its host gave it.
    pub id: Box<str>,
    /// What was started.
    pub text: Box<str>,
}

/// The news that a background task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// The ordinal of the entry that tells it.
    pub ordinal: u32,
    /// The task.
    pub id: Box<str>,
    /// How it ended: `completed`, `killed`.
    pub how: Box<str>,
    /// What the look at it that shows its end says of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ShownEnd>,
}

/// How a command ended that went on in the background, by a later look at it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownEnd {
    /// Whether it failed.
    pub outcome: ToolRunOutcome,
    /// Its last words, as a command's own answer would have them.
    pub end: Option<Box<str>>,
}

// Constants that a test covers: one that does not compile matches nothing.
static STARTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xi) \b(?: running | started | launched | moved )\b [^\n]{0,60}?
          (?: background | \basync | \bsession )
          [^\n]{0,60}? \b (?: id | task | shell | session ) \b (?: \ id )? \s* [:=]? \s* [`\x22']?
          ( [a-z0-9_-]{2,40} ) \b",
    )
    .ok()
});

// The words that the patterns around them hold, without word boundaries: with one, a text that is not all ASCII is
// read by the slowest of the engines, and next to no answer starts a task.
static BEGUN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?i)running|started|launched|moved|agentId: ").ok());
static BACKGROUND: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?i)background|async|session").ok());

static AGENT_ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\basync\b[^\n]{0,80}\n?[^\n]{0,40}\bagentId: ([a-z0-9_-]{2,40})").ok()
});

/// An element of a host's notice, or the words of one.
static NOTICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xis) (?: <(?:task|shell|bash)[_-]?id> | \bbackground\ (?:bash|task|command|shell|agent)\ [`\x22']? )
          \s* ( [a-z0-9_-]{2,40} ) \b .{0,400}?
          (?: <status> | status:? ) \s* ( completed | failed | killed | stopped | exited | cancelled | finished ) \b",
    )
    .ok()
});

/// The state that a look at a task shows.
static ENDED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xi) <status> \s* ( completed | failed | killed | stopped | exited | cancelled ) \b
          | \bprocess\ ( exited | terminated ) \b | \bstatus: \s* ( completed | failed | killed | exited ) \b",
    )
    .ok()
});

/// Names of arguments that hold a task's id.
const ID_KEYS: [&str; 7] = [
    "task_id",
    "bash_id",
    "shell_id",
    "shellId",
    "session_id",
    "taskId",
    "pid",
];

/// How far into an answer or a notice is looked.
const HEAD: usize = 2_000;

/// Returns the id that an answer gives a task which goes on in the background.
pub(super) fn started_id(answer: &str) -> Option<&str> {
    let head = head(answer);
    if !may_start_task(head)? {
        return None;
    }
    let by_words = STARTED.as_ref().and_then(|p| p.captures(head));
    let found = by_words.or_else(|| AGENT_ID.as_ref().and_then(|p| p.captures(head)));
    let id = found?.get(1)?.as_str();
    // A word that merely follows is no id.
    id.bytes()
        .any(|b| b.is_ascii_digit() || b == b'_')
        .then_some(id)
}

/// Whether the words of such an answer stand in a text: one that begins and, on the same line, what goes on.
fn may_start_task(text: &str) -> Option<bool> {
    let (begun, background) = (BEGUN.as_ref()?, BACKGROUND.as_ref()?);
    Some(begun.find_iter(text).any(|word| {
        let rest = text.get(word.end()..).unwrap_or("");
        word.as_str().ends_with(' ') || background.is_match(rest.lines().next().unwrap_or(""))
    }))
}

/// Returns the ends that a host's notice tells.
pub(super) fn ends_in_notice(ordinal: u32, notice: &str) -> Vec<TaskEnd> {
    let found = NOTICE.iter().flat_map(|p| p.captures_iter(head(notice)));
    let end = |found: regex::Captures<'_>| {
        Some(TaskEnd {
            ordinal,
            id: found.get(1)?.as_str().into(),
            how: found.get(2)?.as_str().to_lowercase().into(),
            shown: None,
        })
    };
    found.filter_map(end).collect()
}

/// The task that a call looks at or stops.
pub(super) fn task_of_call<'t>(call: &CallFields<'t>) -> Option<&'t str> {
    let id = call.value(&ID_KEYS)?.lines().next()?.trim();
    (!id.is_empty() && id.len() <= 40).then_some(id)
}

/// Whether a task ended by itself, so that what is shown of it is how its command ended.
pub(super) fn ended_by_itself(how: &str) -> bool {
    matches!(how, "completed" | "failed" | "exited")
}

/// Returns how a task ended, going by the call that was about it and what that answered.
pub(super) fn end_of_call(tool: &str, answer: &str) -> Option<String> {
    let tool = tool.to_ascii_lowercase();
    if tool.contains("kill") || tool.contains("stop") {
        return Some("killed".to_owned());
    }
    let found = ENDED.as_ref()?.captures(head(answer))?;
    let how = found.iter().skip(1).flatten().next()?;
    Some(clip(&how.as_str().to_lowercase(), 20))
}

fn head(text: &str) -> &str {
    let end = (0..=HEAD.min(text.len()))
        .rev()
        .find(|i| text.is_char_boundary(*i));
    text.get(..end.unwrap_or(0)).unwrap_or("")
}
