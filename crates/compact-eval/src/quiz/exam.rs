//! Taking the quiz: its sessions are archived and indexed, its questions asked.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use compact_core::identity::EntryHash;
use compact_formats::{Format, TranscriptScope};
use compact_runtime::port::catalog::{CompactionRecord, InputRelation};
use compact_runtime::recall::RecallQuery;
use compact_runtime::{Error, Recall};
use serde_json::json;

use super::{Quiz, QuizSession};

/// A quiz whose sessions are in an archive.
pub struct Exam<'a> {
    quiz: &'a Quiz,
    recall: &'a Recall,
    /// The session and the ordinal of each question's answer.
    answers: HashMap<usize, (String, u64)>,
    /// How many bytes were archived.
    pub archived: u64,
}

/// The result of a quiz.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExamResult {
    /// Questions whose answer came first.
    pub first: usize,
    /// Questions whose answer was among the first five.
    pub among_five: usize,
    /// How long each question took, the index's own check included, the fastest first.
    pub times: Vec<Duration>,
    /// The questions whose answer did not come first.
    pub missed: Vec<String>,
}

impl ExamResult {
    /// Returns the time that 95 of 100 questions stayed within.
    pub fn p95(&self) -> Duration {
        let at = (self.times.len() * 95).div_ceil(100).saturating_sub(1);
        self.times.get(at).copied().unwrap_or_default()
    }
}

impl<'a> Exam<'a> {
    /// Archives and records every session; the index is left to follow.
    pub async fn prepare(
        quiz: &'a Quiz,
        recall: &'a Recall,
    ) -> std::result::Result<Exam<'a>, Error> {
        let mut exam = Exam {
            quiz,
            recall,
            answers: HashMap::new(),
            archived: 0,
        };
        for number in 0..quiz.session_count() {
            exam.archive_session(number, quiz.write_session(number))
                .await?;
        }
        Ok(exam)
    }

    async fn archive_session(
        &mut self,
        number: usize,
        session: QuizSession,
    ) -> std::result::Result<(), Error> {
        let bytes = Bytes::from(session.text);
        let format = Format::MessagesJsonl;
        let parsed = compact_formats::parse(bytes.clone(), Some(format), TranscriptScope::Live)?;
        let hashes = EntryHash::from_entries(&parsed.conversation.entries);
        let last = hashes.len();
        self.archived += bytes.len() as u64;
        let pack = self.recall.archive.put(bytes, None).await?;
        let record = CompactionRecord {
            receipt_id: format!("{number:032x}"),
            session_id: session.id.clone(),
            created_at: format!(
                "2026-01-01T{:02}:{:02}:00.000Z",
                number / 60 % 24,
                number % 60
            ),
            summary_version: 1,
            previous: None,
            input_pack: Some(pack.id),
            format: format.name().to_owned(),
            receipt: json!({ "view_spans": [[last, last]] }).into(),
            entry_hashes: hashes,
            view_hashes: Vec::new(),
            new_from: 0,
            continues: InputRelation::Fresh,
            source_chain: None,
        };
        self.recall.catalog.save_record(&record).await?;
        for (question, line) in session.answers {
            let place = (session.id.clone(), line as u64);
            self.answers.insert(question, place);
        }
        Ok(())
    }

    /// Asks every question, and scores the answers.
    pub async fn ask_all(&self) -> std::result::Result<ExamResult, Error> {
        let mut result = ExamResult::default();
        for (number, question) in self.quiz.questions.iter().enumerate() {
            let start = Instant::now();
            self.recall.update_index().await?;
            let query = RecallQuery {
                text: &question.text,
                limit: 5,
                ..RecallQuery::default()
            };
            let hits = self.recall.search(&query).await?.hits;
            result.times.push(start.elapsed());
            let right = hits.iter().position(|hit| {
                let place = hit.ordinal.map(|ordinal| (hit.session_id.clone(), ordinal));
                place.as_ref() == self.answers.get(&number)
            });
            result.first += usize::from(right == Some(0));
            result.among_five += usize::from(right.is_some());
            if right != Some(0) {
                let seen = hits.first().map_or("", |hit| &hit.snippet);
                result
                    .missed
                    .push(format!("{} ({right:?}) → {seen}", question.text));
            }
        }
        result.times.sort_unstable();
        Ok(result)
    }
}
