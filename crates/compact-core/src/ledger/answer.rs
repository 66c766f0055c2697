//! What a person answers through a tool: to a question, to a plan, to a call that waits for leave.
//!
//! Hosts bring such words as the result of a call. They are the person's only where the host itself answers: the tool
//! is one that asks, or the wire says beside the result that the person refused the call. A result that merely claims so
//! is a tool's.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;

use crate::cue_list::{WordList, cue_file};

static QUESTION_TOOLS: WordList = WordList::new(cue_file!("question_tool"));
static PLAN_TOOLS: WordList = WordList::new(cue_file!("plan_tool"));
static AGENT_TOOLS: WordList = WordList::new(cue_file!("agent_tool"));
static REFUSED_CALL: WordList = WordList::new(cue_file!("refused_call"));
static REFUSAL_REASON: WordList = WordList::new(cue_file!("refusal_reason"));
static HOST_REMARK: WordList = WordList::new(cue_file!("host_remark"));

/// A question and its answer as hosts write them: `"Which port?"="8080"`.
static ANSWERED_QUESTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#""((?:[^"\\]|\\.){1,600})"\s*=\s*"((?:[^"\\]|\\.){0,4000})""#).ok()
});

/// What a call asks of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedFor {
    /// An answer to a question.
    Answer,
    /// Leave to carry out a plan.
    PlanApproval,
}

/// Returns what a call to this tool asks of the person; most tools ask nothing. Tools of servers that anybody
/// may write bear their server's name, and are believed nothing.
pub(super) fn asked_for(tool: &str) -> Option<AskedFor> {
    let name = tool.to_ascii_lowercase();
    if QUESTION_TOOLS.has(&name) {
        return Some(AskedFor::Answer);
    }
    PLAN_TOOLS.has(&name).then_some(AskedFor::PlanApproval)
}

/// Whether a tool gives work to another agent, whose report is its answer.
pub(super) fn is_agent_tool(tool: &str) -> bool {
    AGENT_TOOLS.has(&tool.to_ascii_lowercase())
}

/// One answer of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PersonAnswer {
    /// The question, where the host repeats it.
    pub question: Option<String>,
    /// The person's words.
    pub words: String,
}

impl PersonAnswer {
    fn from_words(words: &str) -> PersonAnswer {
        PersonAnswer {
            question: None,
            words: words.trim().to_owned(),
        }
    }

    /// The answer in one line, with its question.
    pub(super) fn quote(&self) -> String {
        match &self.question {
            Some(question) => format!("{question} — {}", self.words),
            None => self.words.clone(),
        }
    }
}

/// Returns the answers in the result of a tool that asks.
pub(super) fn read_answers(content: &str) -> Vec<PersonAnswer> {
    let unescape = |text: &str| text.replace("\\\"", "\"").replace("\\n", " ");
    let pairs = ANSWERED_QUESTION
        .iter()
        .flat_map(|pair| pair.captures_iter(content));
    let answers: Vec<PersonAnswer> = pairs
        .filter_map(|found| {
            Some(PersonAnswer {
                question: Some(unescape(found.get(1)?.as_str())),
                words: unescape(found.get(2)?.as_str()),
            })
        })
        .collect();
    if !answers.is_empty() {
        return answers;
    }
    if let Some(answers) = read_json_answers(content) {
        return answers;
    }
    let words = HOST_REMARK.after_opening(content.trim()).unwrap_or(content);
    match words.trim().is_empty() {
        true => Vec::new(),
        false => vec![PersonAnswer::from_words(
            words.trim_start_matches([':', ' ']),
        )],
    }
}

/// `{"answers": {"id": {"answers": ["…"]}}}` and flatter forms of it.
fn read_json_answers(content: &str) -> Option<Vec<PersonAnswer>> {
    let value: serde_json::Value = serde_json::from_str(content.trim()).ok()?;
    let answers = value.get("answers").or_else(|| value.get("answer"))?;
    let mut found = Vec::new();
    collect_strings(answers, None, &mut found);
    Some(found)
}

fn collect_strings(value: &serde_json::Value, key: Option<&str>, out: &mut Vec<PersonAnswer>) {
    match value {
        serde_json::Value::String(words) => out.push(PersonAnswer {
            question: key.filter(|key| key.contains(' ')).map(str::to_owned),
            words: words.clone(),
        }),
        serde_json::Value::Array(items) => {
            items
                .iter()
                .for_each(|item| collect_strings(item, key, out));
        }
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                let key = if name == "answers" {
                    key
                } else {
                    Some(name.as_str())
                };
                collect_strings(member, key, out);
            }
        }
        _ => {}
    }
}

/// How a result says that the person refused the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallRefusal {
    /// Why, in the person's words; empty when they gave no reason.
    pub reason: String,
}

/// Returns the refusal that a result opens with.
pub(super) fn read_refusal(content: &str) -> Option<CallRefusal> {
    let content = content.trim_start();
    let rest = REFUSED_CALL.after_opening(content)?;
    let reason = REFUSAL_REASON.after_part(rest).unwrap_or("");
    let reason = reason.trim().trim_start_matches([':', ' ', '\n']);
    Some(CallRefusal {
        reason: HOST_REMARK.before_part(reason).trim().to_owned(),
    })
}

/// Whether the answer of a plan tool approves the plan.
pub(super) fn is_approval(content: &str) -> bool {
    let head: String = content.chars().take(80).collect();
    head.to_ascii_lowercase().contains("approved")
}
