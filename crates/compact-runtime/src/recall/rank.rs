//! Which passage answers: BM25, how much of the question one or two sentences hold, and the words of
//! the question in their order. Small factors prefer who speaks, statements to questions, and the
//! newer of two that are alike.
//!
//! An index brings passages that hold the rare terms; here their texts are read. Nothing is stored,
//! so a better ranking needs no new index.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use compact_core::cue_list::WordList;

use super::term::{self, SearchTerm};
use super::{sentence, snippet};
use crate::port::index::{EntrySpeaker, LookupResult, RecallCandidate};

/// Terms of a question beyond these are not looked for: a pasted log is no question.
const MAX_WORDS: usize = 48;
/// The same, with the names that its words may mean.
const MAX_TERMS: usize = 64;

/// BM25: how fast repetition stops counting, and how much a long passage is held against itself.
const SATURATION: f64 = 0.9;
const LENGTH: f64 = 0.4;

/// What the parts of a score weigh, and how two sentences compare to one.
const COVERAGE: f64 = 3.0;
const ORDER: f64 = 0.6;
const NEIGHBOUR: f64 = 0.85;
/// A question that resembles the question is not its answer.
const ASKED: f64 = 0.7;
/// What a sentence without a number is worth to a question for one.
const UNCOUNTED: f64 = 0.8;
/// What an everyday verb is worth, however rare it is in the archive.
const FAINT: f64 = 0.15;
/// The most that being newest adds.
const RECENCY: f64 = 0.02;

/// A hit that is worth less than this share of the best one is noise.
const WORTH: f64 = 0.3;

/// The terms of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct QueryTerms {
    /// Each term once, in the order of the question.
    pub(super) terms: Vec<String>,
    /// How much of its weight each term has.
    emphasis: Vec<f64>,
    /// Terms of neighbouring words.
    pairs: Vec<(usize, usize)>,
    /// Whether a number is asked for.
    counts: bool,
}

static NUMBER_QUESTIONS: WordList =
    WordList::new(include_str!("../../templates/cues/number_question.txt"));

/// Whether a question, in lower case, asks for a number. "when" asks for one where it does not end the question.
fn asks_for_number(question: &str) -> bool {
    NUMBER_QUESTIONS.is_part_of(question) || question.contains("when ")
}

impl QueryTerms {
    pub(super) fn from_text(text: &str) -> QueryTerms {
        let head: String = text.chars().take(400).collect::<String>().to_lowercase();
        let mut question = QueryTerms {
            counts: asks_for_number(&head),
            ..QueryTerms::default()
        };
        let mut before: Option<(usize, usize)> = None;
        for term in term::terms(text) {
            let known = question.terms.iter().position(|t| *t == term.text);
            let at = match known {
                Some(at) => at,
                None if question.terms.len() == MAX_WORDS => break,
                None => {
                    question.terms.push(term.text);
                    question.terms.len() - 1
                }
            };
            if let Some((word, earlier)) = before.filter(|(word, _)| *word != term.word) {
                question
                    .pairs
                    .extend((word < term.word).then_some((earlier, at)));
            }
            before = Some((term.word, at));
        }
        for name in term::compound_names(text) {
            if question.terms.len() < MAX_TERMS && !question.terms.contains(&name) {
                question.terms.push(name);
            }
        }
        let emphasis = |term: &String| if term::is_everyday(term) { FAINT } else { 1.0 };
        question.emphasis = question.terms.iter().map(emphasis).collect();
        question
    }
}

/// A passage with what it is worth.
#[derive(Clone, Debug)]
pub(super) struct RankedPassage {
    pub(super) candidate: RecallCandidate,
    pub(super) score: f64,
    pub(super) snippet: String,
}

/// The best passage of each entry, the best first; of passages that say the same the newest.
pub(super) fn rank(
    question: &QueryTerms,
    mut found: LookupResult,
    limit: usize,
) -> Vec<RankedPassage> {
    // In whichever order an index brings them, the same candidates get the same answer.
    found
        .candidates
        .sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let emphasis = question.emphasis.iter();
    let weights: Vec<f64> = found
        .weights()
        .iter()
        .zip(emphasis)
        .map(|(weight, emphasis)| weight * emphasis)
        .collect();
    let readings: Vec<PassageMatch> = found
        .candidates
        .iter()
        .map(|c| PassageMatch::match_terms(c.passage_text(), question))
        .collect();
    let lengths: usize = readings.iter().map(|r| r.words).sum();
    let scale = ScoreScale {
        total: weights.iter().sum::<f64>().max(f64::MIN_POSITIVE),
        weights: &weights,
        average: lengths as f64 / readings.len().max(1) as f64,
    };
    let recency = recency(found.candidates.len());
    let mut ranked: Vec<(RankedPassage, Vec<String>)> = found
        .candidates
        .into_iter()
        .zip(readings)
        .zip(recency)
        .map(|((candidate, reading), recency)| {
            let (score, best) = scale.score(&reading, question);
            let score = score * speaker_factor(candidate.voice) + RECENCY * recency;
            let in_entry = |span: &Range<usize>| {
                candidate.span.start + span.start..candidate.span.start + span.end
            };
            let matches: Vec<_> = reading.spans.iter().map(in_entry).collect();
            let snippet = snippet::cut(&candidate.text, in_entry(&best), &matches);
            let ranked = RankedPassage {
                candidate,
                score,
                snippet,
            };
            (ranked, reading.distinct)
        })
        .collect();
    ranked.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
    first_of_each(ranked, limit)
}

/// One passage per entry, and one entry of those that say the same: the newest, at the best place.
fn first_of_each(ranked: Vec<(RankedPassage, Vec<String>)>, limit: usize) -> Vec<RankedPassage> {
    let mut entries = HashSet::new();
    let mut sayings: HashMap<Vec<String>, usize> = HashMap::new();
    let mut out: Vec<RankedPassage> = Vec::new();
    for (ranked, saying) in ranked {
        let candidate = &ranked.candidate;
        if !entries.insert((candidate.session_id.clone(), candidate.hash)) {
            continue;
        }
        match sayings.get(&saying).and_then(|at| out.get_mut(*at)) {
            Some(best) if age(&best.candidate) < age(candidate) => {
                let score = best.score;
                *best = RankedPassage { score, ..ranked };
            }
            Some(_) => {}
            None => {
                sayings.insert(saying, out.len());
                out.push(ranked);
            }
        }
    }
    let worth = out.first().map_or(0.0, |best| best.score * WORTH);
    out.retain(|ranked| ranked.score >= worth);
    out.truncate(limit);
    out
}

fn age(candidate: &RecallCandidate) -> (&str, Option<u64>) {
    (&candidate.created_at, candidate.ordinal)
}

/// Where a passage stands among all, the oldest first.
fn sort_key(candidate: &RecallCandidate) -> ((&str, Option<u64>), &str, usize) {
    (age(candidate), &candidate.session_id, candidate.span.start)
}

/// From 0 for the oldest of so many candidates to 1 for the newest.
fn recency(candidates: usize) -> impl Iterator<Item = f64> {
    let last = candidates.saturating_sub(1).max(1) as f64;
    (0..candidates).map(move |rank| rank as f64 / last)
}

/// People and the model say what was decided; tools repeat what is there anyway.
fn speaker_factor(voice: EntrySpeaker) -> f64 {
    match voice {
        EntrySpeaker::User => 1.08,
        EntrySpeaker::Model => 1.05,
        EntrySpeaker::Call => 0.92,
        EntrySpeaker::Tool => 0.88,
        EntrySpeaker::Host => 0.85,
    }
}

/// Where the terms of a question stand in a passage.
struct PassageMatch {
    words: usize,
    /// How often each term of the question occurs.
    counts: Vec<u32>,
    /// Whether each pair of the question's neighbours stands close by and in order.
    pairs: usize,
    sentences: Vec<MatchedSentence>,
    /// The words that match.
    spans: Vec<Range<usize>>,
    distinct: Vec<String>,
}

struct MatchedSentence {
    span: Range<usize>,
    /// A bit for each term of the question.
    holds: u64,
    asks: bool,
    has_number: bool,
}

impl MatchedSentence {
    /// Who asks for a number is not served by a sentence without one.
    fn number_factor(&self, question: &QueryTerms) -> f64 {
        match question.counts && !self.has_number {
            true => UNCOUNTED,
            false => 1.0,
        }
    }
}

impl PassageMatch {
    fn match_terms(text: &str, question: &QueryTerms) -> PassageMatch {
        let terms = term::terms(text);
        let slots: HashMap<&str, usize> = question
            .terms
            .iter()
            .enumerate()
            .map(|(at, term)| (term.as_str(), at))
            .collect();
        let matches: Vec<(usize, &SearchTerm)> = terms
            .iter()
            .filter_map(|term| Some((*slots.get(term.text.as_str())?, term)))
            .collect();
        let mut counts = vec![0; question.terms.len()];
        for (at, _) in &matches {
            if let Some(count) = counts.get_mut(*at) {
                *count += 1;
            }
        }
        let mut distinct: Vec<String> = terms.iter().map(|t| t.text.clone()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        PassageMatch {
            words: terms.last().map_or(0, |last| last.word + 1),
            pairs: pairs_in_order(&question.pairs, &matches),
            sentences: sentences(text, &matches),
            spans: matches.iter().map(|(_, term)| term.span.clone()).collect(),
            counts,
            distinct,
        }
    }
}

/// How many pairs stand in order, at most four words between them.
fn pairs_in_order(pairs: &[(usize, usize)], matches: &[(usize, &SearchTerm)]) -> usize {
    let close = |a: usize, b: usize| {
        matches.iter().enumerate().any(|(i, (at, first))| {
            *at == a
                && matches
                    .iter()
                    .skip(i + 1)
                    .take_while(|(_, term)| term.word <= first.word + 5)
                    .any(|(at, term)| *at == b && term.word > first.word)
        })
    };
    pairs.iter().filter(|(a, b)| close(*a, *b)).count()
}

/// Sentences and lines, each with what it holds.
fn sentences(text: &str, matches: &[(usize, &SearchTerm)]) -> Vec<MatchedSentence> {
    let mut sentences: Vec<MatchedSentence> = sentence::spans(text)
        .map(|span| {
            let words = text.get(span.clone()).unwrap_or_default();
            MatchedSentence {
                holds: 0,
                asks: words.trim_end().ends_with('?'),
                has_number: words.contains(|c: char| c.is_numeric()),
                span,
            }
        })
        .collect();
    for (at, term) in matches {
        let which = sentences.partition_point(|s| s.span.end <= term.span.start);
        if let Some(sentence) = sentences.get_mut(which) {
            sentence.holds |= 1 << at;
        }
    }
    sentences
}

/// The part of a passage that answers best.
#[derive(Default)]
struct BestSentence {
    coverage: f64,
    span: Range<usize>,
    asks: bool,
}

impl BestSentence {
    fn question_factor(&self) -> f64 {
        if self.asks { ASKED } else { 1.0 }
    }

    fn better_of(self, other: BestSentence) -> BestSentence {
        let worth = |best: &BestSentence| best.coverage * best.question_factor();
        if worth(&other) > worth(&self) {
            other
        } else {
            self
        }
    }
}

/// What a score is measured against.
struct ScoreScale<'a> {
    weights: &'a [f64],
    total: f64,
    average: f64,
}

impl ScoreScale<'_> {
    /// The score of a passage and its best sentence.
    fn score(&self, reading: &PassageMatch, question: &QueryTerms) -> (f64, Range<usize>) {
        let best = self.best_sentence(&reading.sentences, question);
        let order = reading.pairs as f64 / question.pairs.len().max(1) as f64;
        let score = self.bm25(reading) / self.total + COVERAGE * best.coverage + ORDER * order;
        (score * best.question_factor(), best.span)
    }

    fn bm25(&self, reading: &PassageMatch) -> f64 {
        let length = 1.0 - LENGTH + LENGTH * reading.words as f64 / self.average.max(1.0);
        let terms = self.weights.iter().zip(&reading.counts);
        terms
            .map(|(weight, count)| {
                let count = f64::from(*count);
                weight * count * (SATURATION + 1.0) / (count + SATURATION * length)
            })
            .sum()
    }

    /// The sentence that holds most of the question, or two neighbours.
    fn best_sentence(&self, sentences: &[MatchedSentence], question: &QueryTerms) -> BestSentence {
        let mut best = BestSentence::default();
        for (at, sentence) in sentences.iter().enumerate() {
            let alone = BestSentence {
                coverage: self.covered_share(sentence.holds) * sentence.number_factor(question),
                span: sentence.span.clone(),
                asks: sentence.asks,
            };
            best = best.better_of(alone);
            if let Some(next) = sentences.get(at + 1).filter(|next| next.holds != 0) {
                best = best.better_of(self.join_neighbours(sentence, next, question));
            }
        }
        best
    }

    /// Two neighbours: what a question holds counts less than what is said of it.
    fn join_neighbours(
        &self,
        first: &MatchedSentence,
        second: &MatchedSentence,
        question: &QueryTerms,
    ) -> BestSentence {
        let said = [first, second].into_iter().filter(|s| !s.asks);
        let said = self.covered_share(said.fold(0, |holds, s| holds | s.holds));
        let all = self.covered_share(first.holds | second.holds);
        BestSentence {
            coverage: NEIGHBOUR
                * (said + ASKED * (all - said))
                * first
                    .number_factor(question)
                    .max(second.number_factor(question)),
            span: first.span.start..second.span.end,
            asks: first.asks && second.asks,
        }
    }

    fn covered_share(&self, holds: u64) -> f64 {
        let held = self.weights.iter().enumerate();
        let sum: f64 = held
            .filter(|(at, _)| holds >> at & 1 == 1)
            .map(|(_, weight)| weight)
            .sum();
        sum / self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_for_a_number_is_known() {
        for question in [
            "how many replicas are there?",
            "how much memory does it take?",
            "how long is the timeout?",
            "how often is it tried again?",
            "how large is the index?",
            "how big is the index?",
            "at what point is it cut?",
            "what rate do we allow?",
            "what limit is set?",
            "what size is it?",
            "which port does it use?",
            "which version runs?",
            "what number of retries?",
            "when does it expire?",
        ] {
            assert!(asks_for_number(question), "{question}");
        }
        for question in [
            "how does it work?",
            "what is the name of the host?",
            "which host runs it?",
            "since when?",
            "whatever the size, who cares?",
        ] {
            assert!(!asks_for_number(question), "{question}");
        }
    }
}
