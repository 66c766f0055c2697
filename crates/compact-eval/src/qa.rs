//! Questions about long conversations: is the evidence for their answers still there?
//!
//! The files are those of LoCoMo: conversations of two people over many sessions, and questions with
//! the ids of the turns that answer them. No model answers; a turn counts as kept when its words
//! stand in the view as they were said, an answer when all its words do.

use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::entity::{MinDigits, find_entities};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::baseline;
use crate::compaction::EvalEngine;
use crate::interval::{Interval, SessionScores};
use crate::method::Method;
use crate::metric::need::split_words;
use crate::metric::{EventVoice, MetricEvent};
use crate::text::count_tokens;

/// A conversation with its questions.
#[derive(Clone, Debug, Deserialize)]
struct LocomoRecord {
    conversation: Map<String, Value>,
    #[serde(default)]
    qa: Vec<LocomoQuestion>,
}

#[derive(Clone, Debug, Deserialize)]
struct LocomoQuestion {
    #[serde(default)]
    answer: Value,
    #[serde(default)]
    evidence: Vec<String>,
}

/// One method at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QaResult {
    /// The method that was measured.
    pub method: Method,
    /// The budget as a share of the conversation.
    pub budget: f64,
    /// How many questions have evidence.
    pub questions: usize,
    /// The share of evidence turns that the view carries word for word.
    pub evidence: Option<Interval>,
    /// The share of answers all of whose words the view carries.
    pub answer: Option<Interval>,
}

/// Reads a file of conversations: a list, or one.
pub fn read_conversations(json: &[u8]) -> Result<Vec<QaConversation>, serde_json::Error> {
    let value: Value = serde_json::from_slice(json)?;
    let samples: Vec<LocomoRecord> = match value {
        Value::Array(_) => serde_json::from_value(value)?,
        one => vec![serde_json::from_value(one)?],
    };
    Ok(samples.iter().map(QaConversation::from_record).collect())
}

/// A conversation as it is compacted, with what is asked about it.
#[derive(Clone, Debug, PartialEq)]
pub struct QaConversation {
    /// The turns as messages.
    pub events: Vec<MetricEvent>,
    /// For each question with evidence the texts of its turns, and the words of its answer.
    pub questions: Vec<(Vec<String>, Vec<String>)>,
}

impl QaConversation {
    fn from_record(sample: &LocomoRecord) -> QaConversation {
        let turns = collect_turns(&sample.conversation);
        let said = |id: &str| turns.iter().find(|t| t.id == id).map(|t| t.text.clone());
        let questions = sample.qa.iter().filter_map(|question| {
            let ids = question
                .evidence
                .iter()
                .flat_map(|e| e.split([';', ',', ' ']));
            let evidence = ids.filter_map(said).filter(|text| !text.is_empty());
            let evidence: Vec<String> = evidence.collect();
            (!evidence.is_empty()).then(|| (evidence, answer_words(&question.answer)))
        });
        let questions = questions.collect();
        let events = turns.into_iter().map(LocomoTurn::into_event).collect();
        QaConversation { events, questions }
    }
}

struct LocomoTurn {
    id: String,
    voice: EventVoice,
    speaker: String,
    date: Option<String>,
    text: String,
}

impl LocomoTurn {
    fn into_event(self) -> MetricEvent {
        let date = self
            .date
            .map_or_else(String::new, |date| format!("[{date}] "));
        MetricEvent::new(self.voice, format!("{date}{}: {}", self.speaker, self.text))
    }
}

/// Returns the turns of all sessions, `session_1` first. The first speaker is the user.
fn collect_turns(conversation: &Map<String, Value>) -> Vec<LocomoTurn> {
    let text = |key: &str| conversation.get(key).and_then(Value::as_str);
    let first = text("speaker_a").unwrap_or_default();
    let mut turns = Vec::new();
    for number in 1.. {
        let key = format!("session_{number}");
        let Some(session) = conversation.get(&key) else {
            break;
        };
        let mut date = text(&format!("{key}_date_time")).map(str::to_owned);
        for turn in session.as_array().into_iter().flatten() {
            let field = |key: &str| turn.get(key).and_then(Value::as_str).unwrap_or_default();
            let speaker = field("speaker").to_owned();
            turns.push(LocomoTurn {
                id: field("dia_id").to_owned(),
                voice: if speaker == first {
                    EventVoice::User
                } else {
                    EventVoice::Assistant
                },
                text: field("text").to_owned(),
                speaker,
                date: date.take(),
            });
        }
    }
    turns
}

/// Returns the words, names and numbers of an answer; short ones when there are no others.
fn answer_words(answer: &Value) -> Vec<String> {
    let text = match answer {
        Value::String(text) => text.clone(),
        Value::Null => return Vec::new(),
        other => other.to_string(),
    };
    let mut found: Vec<String> = split_words(&text).map(|(_, word)| word).collect();
    found.extend(
        find_entities(&text, MinDigits(1))
            .into_iter()
            .map(|(e, _)| e.to_lowercase()),
    );
    if found.is_empty() {
        found.push(text.trim().to_lowercase());
    }
    found.sort();
    found.dedup();
    found
}

/// Measures every method at every budget.
pub fn measure_methods(
    conversations: &[QaConversation],
    methods: &[Method],
    budgets: &[f64],
    engine: &EvalEngine,
) -> Vec<QaResult> {
    let mut lines = Vec::new();
    for budget in budgets {
        for method in methods {
            let found =
                map_on_all_cores(conversations, |c| c.find_evidence(*method, *budget, engine));
            let found: Vec<(Vec<f64>, Vec<f64>)> = found.into_iter().flatten().collect();
            let (evidence, answer): (SessionScores, SessionScores) = found.into_iter().unzip();
            if !evidence.is_empty() {
                lines.push(QaResult {
                    method: *method,
                    budget: *budget,
                    questions: conversations.iter().map(|c| c.questions.len()).sum(),
                    evidence: Interval::from_scores(&evidence),
                    answer: Interval::from_scores(&answer),
                });
            }
        }
    }
    lines
}

impl QaConversation {
    /// Finds out for each evidence turn and each answer whether it is there; `None` for methods that need
    /// to know the future.
    fn find_evidence(
        &self,
        method: Method,
        share: f64,
        engine: &EvalEngine,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let total: usize = self.events.iter().map(|e| count_tokens(&e.text)).sum();
        let budget = (total as f64 * share) as usize;
        let events = &self.events;
        let text = match method {
            Method::Compact => engine.compact(events, budget).unwrap_or_default(),
            Method::CompactLlm => engine
                .compact_with_prose(events, budget)
                .unwrap_or_default(),
            Method::KeepLast => baseline::keep_last(baseline::event_texts(events), budget),
            Method::HeadTail => baseline::head_tail(events, budget),
            Method::TrimTools => baseline::trim_tools(events, budget),
            Method::EntityLedger => {
                let digits = MinDigits::default();
                let named: Vec<_> = events
                    .iter()
                    .map(|e| find_entities(&e.text, digits))
                    .collect();
                let named: Vec<_> = named.iter().map(Vec::as_slice).collect();
                baseline::identifier_list(events, &named, budget, digits)
            }
            Method::Whole => baseline::keep_all(events),
            Method::Real | Method::Oracle => return None,
        };
        let lower = text.to_lowercase();
        let score = |there: bool| f64::from(u8::from(there));
        let evidence = self.questions.iter().flat_map(|(turns, _)| turns);
        let answers = self.questions.iter().filter(|(_, words)| !words.is_empty());
        Some((
            evidence.map(|turn| score(text.contains(turn))).collect(),
            answers
                .map(|(_, words)| score(words.iter().all(|word| lower.contains(word))))
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made up, in the shape of LoCoMo.
    const SAMPLE: &str = include_str!("../tests/data/qa.json");

    #[test]
    fn turns_and_evidence_are_read() {
        let read = read_conversations(SAMPLE.as_bytes()).unwrap();
        let [conversation] = read.as_slice() else {
            panic!("{read:?}")
        };
        assert_eq!(conversation.events.len(), 7);
        assert_eq!(
            conversation.events[0],
            MetricEvent::new(
                EventVoice::User,
                "[4:04 pm on 3 May, 2024] Ines: Hi Jonas! I moved to Turku last week."
            )
        );
        assert_eq!(
            conversation.questions,
            [
                (
                    vec!["Hi Jonas! I moved to Turku last week.".to_owned()],
                    vec!["turku".to_owned()]
                ),
                (
                    vec![
                        "I adopted a grey cat and called her Pixel.".to_owned(),
                        "Pixel broke 3 of my blue cups today.".to_owned()
                    ],
                    vec!["blue".to_owned(), "cups".to_owned()]
                ),
            ]
        );
    }

    #[test]
    fn what_the_end_does_not_hold_is_not_found() {
        let conversations = read_conversations(SAMPLE.as_bytes()).unwrap();
        let engine = EvalEngine::new(Default::default()).unwrap();
        let methods = [Method::KeepLast, Method::Oracle];
        let lines = measure_methods(&conversations, &methods, &[0.2, 1.0], &engine);
        let shares: Vec<_> = lines
            .iter()
            .map(|l| {
                (
                    l.budget,
                    l.evidence.map(|i| i.mean),
                    l.answer.map(|i| i.mean),
                )
            })
            .collect();
        assert_eq!(
            shares,
            [
                (0.2, Some(1.0 / 3.0), Some(0.5)),
                (1.0, Some(1.0), Some(1.0))
            ]
        );
    }
}
