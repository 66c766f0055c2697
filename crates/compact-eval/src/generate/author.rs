//! A grammar with a source of chance and a focus: what the arcs write with.

use crate::grammar::Grammar;
use crate::random::Random;

/// Writes texts of a grammar, one choice after another.
pub(crate) struct Author<'g> {
    grammar: &'g Grammar,
    pub(crate) random: Random,
    /// What the texts are mostly about, until it changes.
    pub(crate) focus: AuthorFocus,
}

/// The thing and the outside service that texts of the same piece of work come back to.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthorFocus {
    entity: String,
    service: String,
}

impl<'g> Author<'g> {
    pub(crate) fn new(grammar: &'g Grammar, seed: u64) -> Self {
        let mut author = Author {
            grammar,
            random: Random::new(seed),
            focus: AuthorFocus::default(),
        };
        author.refocus();
        author
    }

    /// Turns to something else.
    pub(crate) fn refocus(&mut self) {
        self.focus = AuthorFocus {
            entity: self.write("entity"),
            service: self.write("service"),
        };
    }

    /// Returns a text of a rule.
    pub(crate) fn write(&mut self, rule: &str) -> String {
        self.write_with(rule, &[])
    }

    /// Returns a text of a rule in which some names are given.
    pub(crate) fn write_with(&mut self, rule: &str, given: &[(&'static str, &str)]) -> String {
        let mut names = vec![
            ("main", self.focus.entity.as_str()),
            ("mainservice", self.focus.service.as_str()),
        ];
        names.extend_from_slice(given);
        with_articles(&self.grammar.expand(rule, &names, &mut self.random))
    }

    /// Returns a text of a rule in so many of a hundred cases.
    pub(crate) fn write_maybe(&mut self, percent: u64, rule: &str) -> Option<String> {
        self.random.roll_percent(percent).then(|| self.write(rule))
    }
}

/// Corrects articles: `a invoice` becomes `an invoice`.
fn with_articles(text: &str) -> String {
    const VOWELS: [char; 5] = ['a', 'e', 'i', 'o', 'u'];
    let mut parts = text.split(" a ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(if part.starts_with(VOWELS) {
            " an "
        } else {
            " a "
        });
        out.push_str(part);
    }
    out
}
