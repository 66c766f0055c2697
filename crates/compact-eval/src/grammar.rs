//! Text from grammars: rules with alternatives, expanded by a seeded choice.
//!
//! A grammar file has sections. `[name]` holds one alternative per line, `[[name]]` several lines per
//! alternative, parted by `%%`. Inside an alternative `«…»` stands for something else:
//!
//! | written | becomes |
//! |---|---|
//! | `«rule»` | an alternative of that rule, or the variable of that name |
//! | `«name=rule»` | the same, remembered as `name` until the alternative ends |
//! | `«rule|camel»` | spelled another way: `camel`, `snake`, `kebab`, `upper`, `title`, `cap` |
//! | `«rule*2-5»`, `«rule+2-5»` | two to five of them, one per line or parted by spaces |
//! | `«#10-99»`, `«%10-99»` | a number, a number with two decimals |
//! | `«hex:7»`, `«b62:24»`, `«uuid»` | an identifier |
//!
//! What stands alone on an indented line is indented throughout. Unknown names stay visible, so that
//! a test can find them.

use std::collections::HashMap;

use crate::random::Random;

/// A grammar that is compiled to symbols.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    rules: HashMap<&'static str, Vec<Vec<GrammarSymbol>>>,
}

#[derive(Debug)]
enum GrammarSymbol {
    Text(&'static str),
    Number {
        low: u64,
        high: u64,
    },
    Decimal {
        low: u64,
        high: u64,
    },
    Hex(usize),
    Base62(usize),
    Uuid,
    Rule {
        name: &'static str,
        bind: Option<&'static str>,
        spelling: Spelling,
        times: Option<Repetition>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Repetition {
    low: u64,
    high: u64,
    joint: char,
}

#[derive(Clone, Copy, Debug)]
enum Spelling {
    AsIs,
    Camel,
    Snake,
    Kebab,
    Upper,
    Title,
    Capital,
}

/// Names that the caller gives to texts, the latest binding first found.
type Bindings = Vec<(&'static str, String)>;

impl Grammar {
    /// Compiles grammar files into one grammar.
    pub(crate) fn new(files: &[&'static str]) -> Grammar {
        let mut grammar = Grammar::default();
        for file in files {
            grammar.add(file);
        }
        grammar
    }

    fn add(&mut self, file: &'static str) {
        for (name, body) in split_sections(file) {
            let texts: Vec<&str> = match name.strip_prefix('[') {
                Some(_) => several_lines(body).split("\n%%\n").collect(),
                None => body.lines().filter(|line| !line.is_empty()).collect(),
            };
            let name = name.trim_matches(['[', ']']);
            self.rules
                .entry(name)
                .or_default()
                .extend(texts.into_iter().map(parse_alternative));
        }
    }

    /// Expands a rule with the given variables.
    pub(crate) fn expand(
        &self,
        rule: &str,
        given: &[(&'static str, &str)],
        random: &mut Random,
    ) -> String {
        let mut scope: Bindings = given
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()))
            .collect();
        self.expand_rule(rule, &mut scope, random)
    }

    fn expand_rule(&self, name: &str, scope: &mut Bindings, random: &mut Random) -> String {
        if let Some((_, text)) = scope.iter().rev().find(|(bound, _)| *bound == name) {
            return text.clone();
        }
        let Some(alternative) = self.rules.get(name).and_then(|all| random.pick(all)) else {
            return format!("«{name}»");
        };
        let outer = scope.len();
        let mut out = String::new();
        for piece in alternative {
            self.expand_symbol(piece, scope, random, &mut out);
        }
        scope.truncate(outer);
        out
    }

    fn expand_symbol(
        &self,
        piece: &GrammarSymbol,
        scope: &mut Bindings,
        random: &mut Random,
        out: &mut String,
    ) {
        match piece {
            GrammarSymbol::Text(text) => out.push_str(text),
            GrammarSymbol::Number { low, high } => {
                out.push_str(&random.between(*low, *high).to_string())
            }
            GrammarSymbol::Decimal { low, high } => {
                let cents = random.between(low * 100, high * 100);
                out.push_str(&format!("{}.{:02}", cents / 100, cents % 100));
            }
            GrammarSymbol::Hex(len) => out.push_str(&random.hex(*len)),
            GrammarSymbol::Base62(len) => out.push_str(&random.base62(*len)),
            GrammarSymbol::Uuid => out.push_str(&random.uuid()),
            GrammarSymbol::Rule {
                name,
                bind,
                spelling,
                times,
            } => {
                let text = match times {
                    Some(times) => self.repeat_rule(name, *times, scope, random),
                    None => self.expand_rule(name, scope, random),
                };
                push_indented(out, &spelling.apply(&text));
                if let Some(bind) = bind {
                    scope.push((bind, text));
                }
            }
        }
    }

    fn repeat_rule(
        &self,
        name: &str,
        times: Repetition,
        scope: &mut Bindings,
        random: &mut Random,
    ) -> String {
        let mut out = String::new();
        for i in 0..random.between(times.low, times.high) {
            if i > 0 {
                out.push(times.joint);
            }
            out.push_str(&self.expand_rule(name, scope, random));
        }
        out
    }
}

/// Appends a text; on a line that is so far only indentation, its further lines get the same.
fn push_indented(out: &mut String, text: &str) {
    let line = out.rsplit_once('\n').map_or(out.as_str(), |(_, line)| line);
    if !text.contains('\n') || line.is_empty() || !line.bytes().all(|b| b == b' ') {
        out.push_str(text);
        return;
    }
    let indent = line.to_owned();
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
            if !line.is_empty() {
                out.push_str(&indent);
            }
        }
        out.push_str(line);
    }
}

/// Returns the sections of a file: what stands between the outer brackets of the head, and the body.
fn split_sections(file: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut heads = Vec::new();
    let mut at = 0;
    for line in file.split_inclusive('\n') {
        let name = line
            .trim_end()
            .strip_prefix('[')
            .and_then(|l| l.strip_suffix(']'));
        if let Some(name) = name.filter(|n| n.bytes().all(is_head_byte) && !n.is_empty()) {
            heads.push((name, at, at + line.len()));
        }
        at += line.len();
    }
    let ends = heads
        .iter()
        .skip(1)
        .map(|(_, start, _)| *start)
        .chain([file.len()]);
    heads
        .iter()
        .zip(ends)
        .filter_map(|((name, _, start), end)| Some((*name, file.get(*start..end)?)))
        .collect()
}

/// Strips the line ends of a text of several lines; a closing `%%` keeps the empty lines before it.
fn several_lines(body: &'static str) -> &'static str {
    body.strip_suffix("\n%%\n")
        .unwrap_or_else(|| body.trim_end_matches('\n'))
}

fn is_head_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || matches!(byte, b'_' | b'[' | b']')
}

fn parse_alternative(text: &'static str) -> Vec<GrammarSymbol> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        let Some((inside, tail)) = after.split_once('»') else {
            break;
        };
        if !before.is_empty() {
            out.push(GrammarSymbol::Text(before));
        }
        out.push(GrammarSymbol::parse(inside));
        rest = tail;
    }
    if !rest.is_empty() {
        out.push(GrammarSymbol::Text(rest));
    }
    out
}

impl GrammarSymbol {
    fn parse(inside: &'static str) -> GrammarSymbol {
        if let Some((low, high)) = inside.strip_prefix('#').and_then(parse_range) {
            return GrammarSymbol::Number { low, high };
        }
        if let Some((low, high)) = inside.strip_prefix('%').and_then(parse_range) {
            return GrammarSymbol::Decimal { low, high };
        }
        match inside.split_once(':') {
            Some(("hex", len)) => GrammarSymbol::Hex(len.parse().unwrap_or(8)),
            Some(("b62", len)) => GrammarSymbol::Base62(len.parse().unwrap_or(8)),
            _ if inside == "uuid" => GrammarSymbol::Uuid,
            _ => GrammarSymbol::parse_reference(inside),
        }
    }

    fn parse_reference(inside: &'static str) -> GrammarSymbol {
        let (inside, spelling) = match inside.split_once('|') {
            Some((inside, spelling)) => (inside, Spelling::parse(spelling)),
            None => (inside, Spelling::AsIs),
        };
        let (bind, inside) = match inside.split_once('=') {
            Some((bind, inside)) => (Some(bind), inside),
            None => (None, inside),
        };
        let (name, times) = match inside.split_once(['*', '+']) {
            Some((name, bounds)) => {
                let joint = if inside.contains('*') { '\n' } else { ' ' };
                (
                    name,
                    parse_range(bounds).map(|(low, high)| Repetition { low, high, joint }),
                )
            }
            None => (inside, None),
        };
        GrammarSymbol::Rule {
            name,
            bind,
            spelling,
            times,
        }
    }
}

fn parse_range(text: &str) -> Option<(u64, u64)> {
    let (low, high) = text.split_once('-')?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

impl Spelling {
    fn parse(name: &str) -> Spelling {
        match name {
            "camel" => Spelling::Camel,
            "snake" => Spelling::Snake,
            "kebab" => Spelling::Kebab,
            "upper" => Spelling::Upper,
            "title" => Spelling::Title,
            "cap" => Spelling::Capital,
            _ => Spelling::AsIs,
        }
    }

    fn apply(self, text: &str) -> String {
        let words = || text.split([' ', '-']);
        match self {
            Spelling::AsIs => text.to_owned(),
            Spelling::Camel => words().map(capitalize).collect(),
            Spelling::Snake => text.replace([' ', '-'], "_"),
            Spelling::Kebab => text.replace(' ', "-"),
            Spelling::Upper => text.replace([' ', '-'], "_").to_uppercase(),
            Spelling::Title => words().map(capitalize).collect::<Vec<_>>().join(" "),
            Spelling::Capital => capitalize(text),
        }
    }
}

fn capitalize(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "
[noun]
ledger entry
[[class]]
class «n=noun|camel»:
    «body*2-2»
[[body]]
# «n»
x = «n|snake»
";

    #[test]
    fn a_rule_binds_spells_repeats_and_indents() {
        let text = Grammar::new(&[SAMPLE]).expand("class", &[], &mut Random::new(1));
        let body = "    # ledger entry\n    x = ledger_entry";
        assert_eq!(text, format!("class LedgerEntry:\n{body}\n{body}"));
    }

    #[test]
    fn a_given_variable_wins_and_an_unknown_name_stays_visible() {
        let grammar = Grammar::new(&["\n[greeting]\nhi «who», «nobody»\n"]);
        let text = grammar.expand("greeting", &[("who", "Ada")], &mut Random::new(1));
        assert_eq!(text, "hi Ada, «nobody»");
    }
}
