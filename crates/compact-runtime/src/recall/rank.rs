//! Which passage answers: BM25, how much of the question one or two sentences hold, and the words of
//! the question in their order. Small factors prefer who speaks, statements to questions, and the
//! newer of two that are alike.
//!
//! An index brings passages that hold the rare terms; here their texts are read. Nothing is stored,
//! so a better ranking needs no new index.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::term::{self, Term};
use super::{sentence, snippet};
use crate::port::index::{Candidate, Found, Voice};

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
pub(super) struct Question {
    /// Each term once, in the order of the question.
    pub(super) terms: Vec<String>,
    /// How much of its weight each term has.
    emphasis: Vec<f64>,
    /// Terms of neighbouring words.
    pairs: Vec<(usize, usize)>,
    /// Whether a number is asked for.
    counts: bool,
}

/// How people ask for a number.
const COUNTING: [&str; 14] = [
    "how many",
    "how much",
    "how long",
    "how often",
    "how large",
    "how big",
    "at what",
    "what rate",
    "what limit",
    "what size",
    "which port",
    "which version",
    "what number",
    "when ",
];

impl Question {
    pub(super) fn of(text: &str) -> Question {
        let head: String = text.chars().take(400).collect::<String>().to_lowercase();
        let mut question = Question {
            counts: COUNTING.iter().any(|cue| head.contains(cue)),
            ..Question::default()
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
        for name in term::names(text) {
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
pub(super) struct Ranked {
    pub(super) candidate: Candidate,
    pub(super) score: f64,
    pub(super) snippet: String,
}

/// The best passage of each entry, the best first; of passages that say the same the newest.
pub(super) fn rank(question: &Question, mut found: Found, limit: usize) -> Vec<Ranked> {
    // In whichever order an index brings them, the same candidates get the same answer.
    found.candidates.sort_by(|a, b| place(a).cmp(&place(b)));
    let emphasis = question.emphasis.iter();
    let weights: Vec<f64> = found
        .weights()
        .iter()
        .zip(emphasis)
        .map(|(weight, emphasis)| weight * emphasis)
        .collect();
    let readings: Vec<Reading> = found
        .candidates
        .iter()
        .map(|c| Reading::of(c.passage(), question))
        .collect();
    let lengths: usize = readings.iter().map(|r| r.words).sum();
    let scale = Scale {
        total: weights.iter().sum::<f64>().max(f64::MIN_POSITIVE),
        weights: &weights,
        average: lengths as f64 / readings.len().max(1) as f64,
    };
    let recency = recency(found.candidates.len());
    let mut ranked: Vec<(Ranked, Vec<String>)> = found
        .candidates
        .into_iter()
        .zip(readings)
        .zip(recency)
        .map(|((candidate, reading), recency)| {
            let (score, best) = scale.score(&reading, question);
            let score = score * voice(candidate.voice) + RECENCY * recency;
            let in_entry = |span: &Range<usize>| {
                candidate.span.start + span.start..candidate.span.start + span.end
            };
            let matches: Vec<_> = reading.spans.iter().map(in_entry).collect();
            let snippet = snippet::cut(&candidate.text, in_entry(&best), &matches);
            let ranked = Ranked {
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
fn first_of_each(ranked: Vec<(Ranked, Vec<String>)>, limit: usize) -> Vec<Ranked> {
    let mut entries = HashSet::new();
    let mut sayings: HashMap<Vec<String>, usize> = HashMap::new();
    let mut out: Vec<Ranked> = Vec::new();
    for (ranked, saying) in ranked {
        let candidate = &ranked.candidate;
        if !entries.insert((candidate.session_id.clone(), candidate.hash)) {
            continue;
        }
        match sayings.get(&saying).and_then(|at| out.get_mut(*at)) {
            Some(best) if age(&best.candidate) < age(candidate) => {
                let score = best.score;
                *best = Ranked { score, ..ranked };
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

fn age(candidate: &Candidate) -> (&str, Option<u64>) {
    (&candidate.created_at, candidate.ordinal)
}

/// Where a passage stands among all, the oldest first.
fn place(candidate: &Candidate) -> ((&str, Option<u64>), &str, usize) {
    (age(candidate), &candidate.session_id, candidate.span.start)
}

/// From 0 for the oldest of so many candidates to 1 for the newest.
fn recency(candidates: usize) -> impl Iterator<Item = f64> {
    let last = candidates.saturating_sub(1).max(1) as f64;
    (0..candidates).map(move |rank| rank as f64 / last)
}

/// People and the model say what was decided; tools repeat what is there anyway.
fn voice(voice: Voice) -> f64 {
    match voice {
        Voice::User => 1.08,
        Voice::Model => 1.05,
        Voice::Call => 0.92,
        Voice::Tool => 0.88,
        Voice::Host => 0.85,
    }
}

/// Where the terms of a question stand in a passage.
struct Reading {
    words: usize,
    /// How often each term of the question occurs.
    counts: Vec<u32>,
    /// Whether each pair of the question's neighbours stands close by and in order.
    pairs: usize,
    sentences: Vec<Sentence>,
    /// The words that match.
    spans: Vec<Range<usize>>,
    distinct: Vec<String>,
}

struct Sentence {
    span: Range<usize>,
    /// A bit for each term of the question.
    holds: u64,
    asks: bool,
    has_number: bool,
}

impl Sentence {
    /// Who asks for a number is not served by a sentence without one.
    fn counts(&self, question: &Question) -> f64 {
        match question.counts && !self.has_number {
            true => UNCOUNTED,
            false => 1.0,
        }
    }
}

impl Reading {
    fn of(text: &str, question: &Question) -> Reading {
        let terms = term::terms(text);
        let slots: HashMap<&str, usize> = question
            .terms
            .iter()
            .enumerate()
            .map(|(at, term)| (term.as_str(), at))
            .collect();
        let matches: Vec<(usize, &Term)> = terms
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
        Reading {
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
fn pairs_in_order(pairs: &[(usize, usize)], matches: &[(usize, &Term)]) -> usize {
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
fn sentences(text: &str, matches: &[(usize, &Term)]) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = sentence::spans(text)
        .map(|span| {
            let words = text.get(span.clone()).unwrap_or_default();
            Sentence {
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
struct Best {
    coverage: f64,
    span: Range<usize>,
    asks: bool,
}

impl Best {
    fn manner(&self) -> f64 {
        if self.asks { ASKED } else { 1.0 }
    }

    fn or(self, other: Best) -> Best {
        let worth = |best: &Best| best.coverage * best.manner();
        if worth(&other) > worth(&self) {
            other
        } else {
            self
        }
    }
}

/// What a score is measured against.
struct Scale<'a> {
    weights: &'a [f64],
    total: f64,
    average: f64,
}

impl Scale<'_> {
    /// The score of a passage and its best sentence.
    fn score(&self, reading: &Reading, question: &Question) -> (f64, Range<usize>) {
        let best = self.best_sentence(&reading.sentences, question);
        let order = reading.pairs as f64 / question.pairs.len().max(1) as f64;
        let score = self.bm25(reading) / self.total + COVERAGE * best.coverage + ORDER * order;
        (score * best.manner(), best.span)
    }

    fn bm25(&self, reading: &Reading) -> f64 {
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
    fn best_sentence(&self, sentences: &[Sentence], question: &Question) -> Best {
        let mut best = Best::default();
        for (at, sentence) in sentences.iter().enumerate() {
            let alone = Best {
                coverage: self.covered(sentence.holds) * sentence.counts(question),
                span: sentence.span.clone(),
                asks: sentence.asks,
            };
            best = best.or(alone);
            if let Some(next) = sentences.get(at + 1).filter(|next| next.holds != 0) {
                best = best.or(self.both(sentence, next, question));
            }
        }
        best
    }

    /// Two neighbours: what a question holds counts less than what is said of it.
    fn both(&self, first: &Sentence, second: &Sentence, question: &Question) -> Best {
        let said = [first, second].into_iter().filter(|s| !s.asks);
        let said = self.covered(said.fold(0, |holds, s| holds | s.holds));
        let all = self.covered(first.holds | second.holds);
        Best {
            coverage: NEIGHBOUR
                * (said + ASKED * (all - said))
                * first.counts(question).max(second.counts(question)),
            span: first.span.start..second.span.end,
            asks: first.asks && second.asks,
        }
    }

    fn covered(&self, holds: u64) -> f64 {
        let held = self.weights.iter().enumerate();
        let sum: f64 = held
            .filter(|(at, _)| holds >> at & 1 == 1)
            .map(|(_, weight)| weight)
            .sum();
        sum / self.total
    }
}
