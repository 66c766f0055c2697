//! Which entry answers: BM25, how much of the question one or two sentences hold, and the words of
//! the question in their order. Small factors prefer who speaks, statements to questions, what came of a
//! call to the bare call, and the newer of two that are alike.
//!
//! An index brings passages that hold the rare terms; here their texts are read. Nothing is stored,
//! so a better ranking needs no new index.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use compact_core::cue_list::WordList;
use compact_core::identity::EntryHash;

use super::excerpt::{AnswerPlace, MOST_WINDOWS};
use super::term::{self, SearchTerm};
use super::{HitOrder, passage, sentence};
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
/// What the rest of the question is worth where another passage of the same entry holds it.
const ELSEWHERE: f64 = 0.4;
/// The most that being newest adds.
const RECENCY: f64 = 0.1;

/// A longer call says something itself, whatever it looks at.
const BARE_CALL: usize = 400;

/// A hit that is worth less than this share of the best one is noise.
const WORTH: f64 = 0.3;
/// The same where the newest comes first: what only resembles the question would stand before its answer.
const WORTH_LATEST: f64 = 0.6;
/// A further passage of an entry is shown if it is worth this share of the best one.
const WORTH_WINDOW: f64 = 0.55;

/// The terms of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct QueryTerms {
    /// Each term once, in the order of the question.
    pub(super) terms: Vec<String>,
    /// How much of its weight each term has.
    emphasis: Vec<f64>,
    /// The words of the question that say something.
    words: Vec<QueryWord>,
    /// Terms of neighbouring words.
    pairs: Vec<(usize, usize)>,
    /// Whether a number is asked for.
    counts: bool,
}

/// A word of a question, with the places of its terms.
#[derive(Clone, Debug, PartialEq)]
struct QueryWord {
    text: String,
    /// The word as a whole.
    whole: usize,
    /// The pieces of a name.
    pieces: Vec<usize>,
}

static LOOKUP_CALLS: WordList = WordList::new(include_str!("../../templates/cues/lookup_call.txt"));

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
                    question.terms.push(term.text.clone());
                    question.terms.len() - 1
                }
            };
            question.note_word(text, &term.span, at);
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

    /// Notes that a term stands for a word of the text, once for equal words.
    fn note_word(&mut self, text: &str, span: &Range<usize>, at: usize) {
        let word = text.get(span.clone()).unwrap_or_default();
        match self.words.iter_mut().find(|known| known.text == word) {
            Some(known) if known.whole == at || known.pieces.contains(&at) => {}
            Some(known) => known.pieces.push(at),
            None => self.words.push(QueryWord {
                text: word.to_owned(),
                whole: at,
                pieces: Vec::new(),
            }),
        }
    }

    /// Returns the words of the question that are not in a text, everyday ones aside.
    pub(super) fn words_missing_in(&self, text: &str) -> Vec<String> {
        let held = PassageMatch::match_terms(text, self).counts;
        self.words_without(|at| held.get(at).is_some_and(|count| *count > 0))
    }

    /// Returns the words of which nothing is known to hold the term.
    pub(super) fn words_without(&self, is_held: impl Fn(usize) -> bool) -> Vec<String> {
        let is_weighty = |word: &&QueryWord| self.emphasis.get(word.whole) == Some(&1.0);
        let is_missing = |word: &&QueryWord| {
            let in_pieces = !word.pieces.is_empty() && word.pieces.iter().all(|at| is_held(*at));
            !is_held(word.whole) && !in_pieces
        };
        let words = self.words.iter().filter(is_weighty).filter(is_missing);
        words.map(|word| word.text.clone()).collect()
    }
}

/// An entry with what it is worth.
#[derive(Clone, Debug)]
pub(super) struct RankedEntry {
    /// Its best passage.
    pub(super) candidate: RecallCandidate,
    pub(super) score: f64,
    /// Where it answers, the best place first.
    pub(super) places: Vec<AnswerPlace>,
    /// The different terms of the best passage.
    saying: Vec<String>,
}

impl RankedEntry {
    /// The same entry in other words, with the places where those answer.
    pub(super) fn with_text(
        self,
        text: &Arc<str>,
        question: &QueryTerms,
        known: &LookupResult,
    ) -> RankedEntry {
        let passages = passage::cuts(text).into_iter();
        let candidates = passages.map(|span| RecallCandidate {
            text: Arc::clone(text),
            span,
            ..self.candidate.clone()
        });
        let found = LookupResult {
            candidates: candidates.collect(),
            ..known.clone()
        };
        let limit = RankLimit {
            count: 1,
            order: HitOrder::Best,
        };
        match rank(question, found, limit).pop() {
            Some(again) => RankedEntry {
                score: self.score,
                ..again
            },
            None => self,
        }
    }
}

/// How many entries are wanted, and in which order.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankLimit {
    pub(super) count: usize,
    pub(super) order: HitOrder,
}

/// The entries that answer best, in the order that is wanted; of entries that say the same the newest.
pub(super) fn rank(
    question: &QueryTerms,
    mut found: LookupResult,
    limit: RankLimit,
) -> Vec<RankedEntry> {
    // In whichever order an index brings them, the same candidates get the same answer.
    found
        .candidates
        .sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let weights = found.weights();
    let weights: Vec<f64> = weights
        .iter()
        .zip(&question.emphasis)
        .map(|(w, e)| w * e)
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
    let passages = found.candidates.into_iter().zip(readings).zip(recency);
    let scored = passages.map(|((candidate, reading), recency)| {
        ScoredPassage::new(candidate, reading, &scale, question, recency)
    });
    let mut ranked: Vec<RankedEntry> = group_by_entry(scored.collect())
        .into_iter()
        .filter_map(|passages| rank_entry(passages, &scale))
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    limit.select(first_of_each(ranked))
}

/// A passage with its score and the terms of the question that it holds.
struct ScoredPassage {
    candidate: RecallCandidate,
    score: f64,
    recency: f64,
    holds: u64,
    place: AnswerPlace,
    saying: Vec<String>,
}

impl ScoredPassage {
    fn new(
        candidate: RecallCandidate,
        reading: PassageMatch,
        scale: &ScoreScale<'_>,
        question: &QueryTerms,
        recency: f64,
    ) -> ScoredPassage {
        let (score, best) = scale.score(&reading, question);
        let from = candidate.span.start;
        let first = reading.spans.iter().find(|word| word.start >= best.start);
        ScoredPassage {
            score: score * speaker_factor(&candidate),
            recency: RECENCY * recency,
            holds: reading.sentences.iter().fold(0, |all, s| all | s.holds),
            place: AnswerPlace {
                first_match: from + first.map_or(best.start, |word| word.start),
                best: from + best.start..from + best.end,
            },
            saying: reading.distinct,
            candidate,
        }
    }
}

/// The passages of each entry together, in the order of their first ones.
fn group_by_entry(passages: Vec<ScoredPassage>) -> Vec<Vec<ScoredPassage>> {
    let mut places: HashMap<(String, EntryHash), usize> = HashMap::new();
    let mut groups: Vec<Vec<ScoredPassage>> = Vec::new();
    for passage in passages {
        let key = (passage.candidate.session_id.clone(), passage.candidate.hash);
        let at = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(passage),
            None => groups.push(vec![passage]),
        }
    }
    groups
}

/// An entry is worth its best passage, and a part of what its others hold of the question beside.
fn rank_entry(mut passages: Vec<ScoredPassage>, scale: &ScoreScale<'_>) -> Option<RankedEntry> {
    passages.sort_by(|a, b| b.score.total_cmp(&a.score));
    let holds = passages.iter().fold(0, |all, passage| all | passage.holds);
    let worth = passages.first()?.score * WORTH_WINDOW;
    let shown = passages.iter().take_while(|passage| passage.score >= worth);
    let places = shown.take(MOST_WINDOWS).map(|p| p.place.clone()).collect();
    let best = passages.into_iter().next()?;
    let elsewhere = scale.covered_share(holds) - scale.covered_share(best.holds);
    Some(RankedEntry {
        score: best.score + ELSEWHERE * elsewhere * speaker_factor(&best.candidate) + best.recency,
        candidate: best.candidate,
        places,
        saying: best.saying,
    })
}

/// One entry of those that say the same, the newest at the best place, and one of a call and its result.
fn first_of_each(ranked: Vec<RankedEntry>) -> Vec<RankedEntry> {
    let mut sayings: HashMap<Vec<String>, usize> = HashMap::new();
    let mut pairs = HashSet::new();
    let mut out: Vec<RankedEntry> = Vec::new();
    for entry in ranked {
        if !pairs.insert(pair_key(&entry.candidate)) {
            continue;
        }
        match sayings.get(&entry.saying).and_then(|at| out.get_mut(*at)) {
            Some(best) if age(&best.candidate) < age(&entry.candidate) => {
                let score = best.score;
                *best = RankedEntry { score, ..entry };
            }
            Some(_) => {}
            None => {
                sayings.insert(entry.saying.clone(), out.len());
                out.push(entry);
            }
        }
    }
    out
}

/// What a call and its result have in common; an entry by itself has its hash.
#[derive(PartialEq, Eq, Hash)]
enum PairKey {
    Exchange(String, u64),
    Single(String, EntryHash),
}

fn pair_key(candidate: &RecallCandidate) -> PairKey {
    let session = candidate.session_id.clone();
    match (candidate.ordinal, candidate.partner) {
        (Some(ordinal), Some(partner)) => PairKey::Exchange(session, ordinal.min(partner)),
        _ => PairKey::Single(session, candidate.hash),
    }
}

impl RankLimit {
    /// Leaves out what is noise beside the best, and puts the rest in order.
    fn select(self, mut ranked: Vec<RankedEntry>) -> Vec<RankedEntry> {
        let share = match self.order {
            HitOrder::Best => WORTH,
            HitOrder::Latest => WORTH_LATEST,
        };
        let worth = ranked.first().map_or(0.0, |best| best.score * share);
        ranked.retain(|entry| entry.score >= worth);
        if self.order == HitOrder::Latest {
            ranked.sort_by(|a, b| age(&b.candidate).cmp(&age(&a.candidate)));
        }
        ranked.truncate(self.count);
        ranked
    }
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

/// People and the model say what was decided; tools repeat what is there anyway, and a bare call says
/// only what was looked at.
fn speaker_factor(candidate: &RecallCandidate) -> f64 {
    match candidate.voice {
        EntrySpeaker::User => 1.08,
        EntrySpeaker::Model => 1.05,
        EntrySpeaker::Call if is_bare_call(&candidate.text) => 0.75,
        EntrySpeaker::Call => 0.92,
        EntrySpeaker::Tool => 0.9,
        EntrySpeaker::Host => 0.85,
    }
}

/// Whether a call only looks at something: its tool, or the program that it runs, is one of those.
fn is_bare_call(text: &str) -> bool {
    let mut lines = text.lines();
    let tool = lines.next().unwrap_or_default().trim().to_lowercase();
    let command = lines.next().and_then(|line| {
        let value = line
            .strip_prefix("command: ")
            .or(line.strip_prefix("cmd: "));
        value?.split_whitespace().next()
    });
    let looks = LOOKUP_CALLS.has(&tool) || command.is_some_and(|program| LOOKUP_CALLS.has(program));
    text.len() <= BARE_CALL && looks
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
    fn a_call_that_only_looks_is_bare() {
        for text in [
            "Read\nfile_path: a.rs",
            "bash\ncommand: ls -la src",
            "grep\npattern: x",
        ] {
            assert!(is_bare_call(text), "{text}");
        }
        for text in [
            "bash\ncommand: cargo test --workspace",
            "Edit\nfile_path: a.rs\n-x\n+y",
            "spawn\ntask: read all of it",
        ] {
            assert!(!is_bare_call(text), "{text}");
        }
    }

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
