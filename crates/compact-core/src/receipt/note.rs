//! What a person should know about a compaction, beside its numbers.
//!
//! A note is a value while a compaction is made and a sentence wherever it is written down. One that
//! is read back is its sentence and nothing else: no text is taken apart here.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::token::Tokens;

/// Something that a person should know about a compaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReceiptNote {
    /// A model's words are not part of the summary.
    ProseLeftOut {
        /// Who wrote them.
        author: String,
    },
    /// A model was shown a part of what left the view.
    ProseOfPart {
        /// Who was shown it.
        author: String,
        /// The tokens that it was shown.
        shown: Tokens,
        /// The tokens that left the view.
        of: Tokens,
    },
    /// A summary that says it is ours, and that nothing here proves.
    UnprovenSummary,
    /// A history lacks messages of the view before it, and shows its summary and what follows.
    ViewTrimmed {
        /// How many.
        count: u64,
    },
    /// What was said last was cut: it does not fit.
    NewestCut,
    /// The newest answers of tools were cut: in a budget that somebody names the summary comes before them.
    AnswersCut,
    /// A request of the user was cut.
    RequestCut(CutRequest),
    /// Tool messages without their counterpart were left out.
    MalformedToolMessages {
        /// How many.
        count: usize,
    },
    /// Protected entries that occur more than once stand once.
    RepeatedProtected {
        /// How many were left out.
        count: usize,
    },
    /// The oldest rules of the user are in no summary any more.
    RulesLeftOut {
        /// How many.
        count: u32,
    },
    /// Messages of the user in a language that has no cues here.
    UnheardRequests {
        /// How many.
        count: u32,
    },
    /// A note that was read back from a receipt.
    Recorded(String),
}

/// A request of the user that is kept in every view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutRequest {
    /// The first of the session.
    First,
    /// The latest.
    Latest,
}

impl fmt::Display for ReceiptNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiptNote::ProseLeftOut { author } => write!(
                f,
                "the words of {author} were left out: with them the view would have shown fewer facts"
            ),
            ReceiptNote::ProseOfPart { author, shown, of } => write!(
                f,
                "{author} was shown {shown} of {of} tokens that left the view; the ledger covers the rest"
            ),
            ReceiptNote::UnprovenSummary => f.write_str(
                "a summary names a compaction whose view this history does not begin with, or that is not on record: \
                 it was read as a model's words, and nothing else of that compaction is told",
            ),
            ReceiptNote::ViewTrimmed { count } => write!(
                f,
                "this history lacks {count} of the messages that the view before had before its summary: \
                 what they said is not told any more, all else is"
            ),
            ReceiptNote::NewestCut => f.write_str(
                "what was said last would leave too little of the budget for what must stay and a summary: it was cut, and the whole is archived",
            ),
            ReceiptNote::AnswersCut => f.write_str(
                "the newest answers of tools would leave the summary less than four fifths of the budget that was named, and less than 8192 tokens: they were cut, and the whole is archived",
            ),
            ReceiptNote::RequestCut(request) => write!(
                f,
                "the user's {request} takes more than its share of the budget and was cut; the whole is archived"
            ),
            ReceiptNote::MalformedToolMessages { count } => write!(
                f,
                "{count} malformed tool messages (a call without result, or a result without call) were left out of the view"
            ),
            ReceiptNote::RepeatedProtected { count } => write!(
                f,
                "{count} repeated protected entries stand once, the newest"
            ),
            ReceiptNote::RulesLeftOut { count } => write!(
                f,
                "{count} of the oldest rules left the ledger, which holds the newest, and are in no summary any more"
            ),
            ReceiptNote::UnheardRequests { count } => write!(
                f,
                "{count} messages of the user are in a language whose rules are not recognised: they are quoted as far as there is room, and none of them is counted as a rule"
            ),
            ReceiptNote::Recorded(sentence) => f.write_str(sentence),
        }
    }
}

impl fmt::Display for CutRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CutRequest::First => "first request",
            CutRequest::Latest => "latest message",
        })
    }
}

/// Notes are equal that read alike: a receipt equals itself after it was written and read.
impl PartialEq for ReceiptNote {
    fn eq(&self, other: &ReceiptNote) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for ReceiptNote {}

impl Serialize for ReceiptNote {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReceiptNote {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(ReceiptNote::Recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_written_as_sentences_and_read_back_as_the_same() {
        let author = || "the model".to_owned();
        let notes = vec![
            ReceiptNote::ProseLeftOut { author: author() },
            ReceiptNote::ProseOfPart {
                author: author(),
                shown: Tokens(3),
                of: Tokens(9),
            },
            ReceiptNote::UnprovenSummary,
            ReceiptNote::ViewTrimmed { count: 1 },
            ReceiptNote::NewestCut,
            ReceiptNote::AnswersCut,
            ReceiptNote::RequestCut(CutRequest::First),
            ReceiptNote::RequestCut(CutRequest::Latest),
            ReceiptNote::MalformedToolMessages { count: 2 },
            ReceiptNote::RepeatedProtected { count: 1 },
            ReceiptNote::RulesLeftOut { count: 3 },
            ReceiptNote::UnheardRequests { count: 4 },
        ];
        let written = serde_json::to_value(&notes).unwrap();
        assert_eq!(
            written,
            serde_json::json!([
                "the words of the model were left out: with them the view would have shown fewer facts",
                "the model was shown 3 of 9 tokens that left the view; the ledger covers the rest",
                "a summary names a compaction whose view this history does not begin with, or that is not on record: it was read as a model's words, and nothing else of that compaction is told",
                "this history lacks 1 of the messages that the view before had before its summary: what they said is not told any more, all else is",
                "what was said last would leave too little of the budget for what must stay and a summary: it was cut, and the whole is archived",
                "the newest answers of tools would leave the summary less than four fifths of the budget that was named, and less than 8192 tokens: they were cut, and the whole is archived",
                "the user's first request takes more than its share of the budget and was cut; the whole is archived",
                "the user's latest message takes more than its share of the budget and was cut; the whole is archived",
                "2 malformed tool messages (a call without result, or a result without call) were left out of the view",
                "1 repeated protected entries stand once, the newest",
                "3 of the oldest rules left the ledger, which holds the newest, and are in no summary any more",
                "4 messages of the user are in a language whose rules are not recognised: they are quoted as far as there is room, and none of them is counted as a rule",
            ])
        );
        let read: Vec<ReceiptNote> = serde_json::from_value(written).unwrap();
        assert_eq!(read, notes);
    }
}
