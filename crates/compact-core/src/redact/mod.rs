//! Redaction: secrets and personal data become stable placeholders before text crosses a boundary.
//!
//! Secrets (keys, tokens, passwords) are replaced at every boundary. Personal data is replaced only
//! where text leaves the process: an agent that supports a customer needs the customer's address,
//! an exporter does not. The same secret always gets the same placeholder, so a reader can still
//! tell that two lines speak of one key. Redaction never fails once its rules are compiled, and
//! redacting twice gives the same text as redacting once.
//!
//! It does not decide what may be exported at all; exporters carry counts and ids.

mod assignment;
mod callback;
mod column;
mod context;
mod entry;
mod escape;
mod fingerprint;
mod form;
mod json;
mod key_block;
mod letters;
mod pii;
mod rules;
mod secret_check;
mod stray;
#[cfg(test)]
mod tests;
mod word_filter;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use callback::ScrubCallback;

pub use callback::Scrub;
pub use fingerprint::fingerprint;
pub use pii::PiiClass;

/// How often each rule fired.
pub type RedactionCounts = BTreeMap<String, u64>;

/// The patterns that the configuration starts with. The maintained rules do what
/// they ask for, keep the key's name and leave code such as `password: str` alone.
pub const SEED_PATTERNS: [&str; 2] = [
    r"(?i)api[_-]?key\s*[:=]\s*\S+",
    r"(?i)password\s*[:=]\s*\S+",
];

/// A line that text crosses, each with its own needs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RedactionBoundary {
    /// The archive on disk or in an object store.
    Archive,
    /// Exporters and logs: whatever leaves the process and is not for a model.
    Export,
    /// Whatever a model reads: a summarizer's prompt, the summary in the view, what hooks tell an
    /// agent, what recall and its tools give back.
    Summary,
}

/// Where redaction applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sinks {
    /// Redact what is archived. Restore then returns the redacted bytes, and the receipt says so.
    pub archive: bool,
    /// Redact what exporters, logs and hooks receive.
    pub export: bool,
    /// Redact what a summarizer reads and the summary that goes back into the view.
    pub summary_prompt: bool,
}

impl Default for Sinks {
    fn default() -> Self {
        Sinks {
            archive: false,
            export: true,
            summary_prompt: true,
        }
    }
}

/// What is redacted, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedactionRules {
    /// Whether anything is redacted; if not, an event of high severity reports it.
    pub enabled: bool,
    /// Further patterns, in addition to the built-in rules. The group `secret` is replaced if the
    /// pattern has one, the whole match if not. Matching takes linear time.
    pub patterns: Vec<String>,
    /// Classes of personal data that are replaced where text leaves the process.
    pub pii_deny: BTreeSet<PiiClass>,
    /// Patterns of values that are never redacted; each must match the whole value.
    pub allow: Vec<String>,
    /// Where redaction applies.
    pub sinks: Sinks,
    /// Patterns of somebody who may hide but not destroy: they apply everywhere but in the archive.
    #[serde(skip)]
    pub foreign_patterns: Vec<String>,
}

impl Default for RedactionRules {
    fn default() -> Self {
        RedactionRules {
            enabled: true,
            patterns: SEED_PATTERNS.map(str::to_owned).to_vec(),
            pii_deny: PiiClass::ALL.into_iter().collect(),
            allow: Vec::new(),
            sinks: Sinks::default(),
            foreign_patterns: Vec::new(),
        }
    }
}

impl RedactionRules {
    /// The rules as they apply at one boundary: nothing when its sink is off, personal data only
    /// on export.
    pub fn at_boundary(&self, boundary: RedactionBoundary) -> RedactionRules {
        let sink = match boundary {
            RedactionBoundary::Archive => self.sinks.archive,
            RedactionBoundary::Export => self.sinks.export,
            RedactionBoundary::Summary => self.sinks.summary_prompt,
        };
        let mut rules = self.clone();
        rules.enabled &= sink;
        if boundary != RedactionBoundary::Export {
            rules.pii_deny.clear();
        }
        if boundary == RedactionBoundary::Archive {
            rules.foreign_patterns.clear();
        }
        rules
    }

    /// The same at their strictest: everywhere, every class, no exception.
    #[must_use]
    pub fn strictest(&self) -> RedactionRules {
        let mut rules = self.strictest_where_shown();
        rules.sinks.archive = true;
        rules
    }

    /// The same at their strictest but in the archive, where hiding is destroying. Where nothing was
    /// redacted there, nothing is.
    #[must_use]
    pub fn strictest_where_shown(&self) -> RedactionRules {
        RedactionRules {
            enabled: true,
            pii_deny: PiiClass::ALL.into_iter().collect(),
            allow: Vec::new(),
            sinks: Sinks {
                archive: self.enabled && self.sinks.archive,
                export: true,
                summary_prompt: true,
            },
            ..self.clone()
        }
    }

    /// The compiled rules of one boundary.
    pub fn redactor(&self, boundary: RedactionBoundary) -> Result<Redactor, RedactError> {
        Redactor::new(&self.at_boundary(boundary))
    }
}

/// A rule that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{field}: the pattern `{pattern}` cannot be used: {reason}")]
pub struct RedactError {
    /// The field that holds it, e.g. `redaction.patterns[2]`.
    pub field: String,
    /// The pattern as written.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A compiled set of rules. The default one redacts nothing.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: bool,
    pii: Vec<PiiClass>,
    custom: Vec<CustomPattern>,
    allow: Option<RegexSet>,
    callbacks: Vec<ScrubCallback>,
}

/// A pattern of the user's.
#[derive(Clone, Debug)]
struct CustomPattern {
    name: String,
    regex: Regex,
}

/// Something found: where it is and which rule found it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RedactionSpan<'r> {
    range: Range<usize>,
    /// Lower wins when two rules find the same text: formats are more telling than assignments.
    priority: usize,
    rule: &'r str,
}

/// What one pass over a text saw.
#[derive(Default)]
struct RedactionFindings<'r> {
    spans: Vec<RedactionSpan<'r>>,
    /// Placeholders of an earlier pass: nothing that touches them is redacted again.
    placeholders: Vec<Range<usize>>,
}

/// Which of a redactor's rules a pass applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleScope {
    /// Every rule.
    All,
    /// The maintained secrets, which never break JSON.
    Secrets,
    /// Personal data and the user's own rules.
    Personal,
    /// What an id may not hold: any of it but numbers and random strings, which ids are made of.
    Ids,
}

/// Text without placeholders gets shorter with every pass, so the passes end; a pattern that needs
/// more than these feeds on its own output.
const MAX_PASSES: usize = 16;

/// More than any sane pattern compiles to.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Enough for `\w+` and a few classes like it.
const MAX_FOREIGN_PATTERN_BYTES: usize = 1 << 17;

impl Redactor {
    /// Compiles the rules; an error names the field and the pattern.
    pub fn new(rules: &RedactionRules) -> Result<Redactor, RedactError> {
        if !rules.enabled {
            return Ok(Redactor::default());
        }
        let mut custom = Vec::new();
        let patterns = rules.patterns.iter().chain(&rules.foreign_patterns);
        for (i, pattern) in patterns.enumerate() {
            if SEED_PATTERNS.contains(&pattern.as_str()) {
                continue;
            }
            let regex = RegexBuilder::new(pattern)
                .size_limit(MAX_PATTERN_BYTES)
                .build();
            custom.push(CustomPattern {
                name: format!("pattern-{}", i + 1),
                regex: regex.map_err(|e| unusable("patterns", i, pattern, &e))?,
            });
        }
        Ok(Redactor {
            secrets: true,
            pii: rules.pii_deny.iter().copied().collect(),
            custom,
            allow: allowed(&rules.allow)?,
            callbacks: Vec::new(),
        })
    }

    /// Adds a rule of the user's own, called after all others.
    #[must_use]
    pub fn with_callback(mut self, name: &str, scrub: Arc<dyn Scrub>) -> Redactor {
        self.callbacks.push(ScrubCallback::new(name, scrub));
        self
    }

    /// True when nothing is ever replaced.
    pub fn is_off(&self) -> bool {
        !self.secrets && self.pii.is_empty() && self.custom.is_empty() && self.callbacks.is_empty()
    }

    /// Replaces what the rules find; borrowed when nothing is found.
    pub fn redact<'t>(&self, text: &'t str, counts: &mut RedactionCounts) -> Cow<'t, str> {
        self.passes(text, RuleScope::All, counts)
    }

    /// Like [`redact`](Self::redact), for a name that somebody gave a session: digits that look like a
    /// telephone's and strings that a machine drew are what such names are made of, and stay.
    pub fn redact_id<'t>(&self, id: &'t str, counts: &mut RedactionCounts) -> Cow<'t, str> {
        self.passes(id, RuleScope::Ids, counts)
    }

    /// Like [`redact`](Self::redact), for JSON text: valid JSON stays valid and keeps its layout.
    /// Personal data and user patterns are looked for in each decoded string; bare numbers stay.
    pub fn redact_json<'t>(&self, json: &'t str, counts: &mut RedactionCounts) -> Cow<'t, str> {
        let secrets = self.passes(json, RuleScope::Secrets, counts);
        let is_personal =
            !(self.custom.is_empty() && self.pii.is_empty() && self.callbacks.is_empty());
        // A name in another script may be written in escapes, which only the decoded text shows.
        if !is_personal && !secrets.contains("\\u") {
            return secrets;
        }
        let redacted = json::map_strings(&secrets, |text| {
            let scope = match text.is_ascii() {
                true => RuleScope::Personal,
                false => RuleScope::All,
            };
            let redacted = self.passes(text, scope, counts);
            // JSON within JSON, such as the arguments of a call, has escapes of its own.
            let inner = match redacted.contains("\\u") {
                true => self.redact_json(&redacted, counts),
                false => Cow::Borrowed(&*redacted),
            };
            (inner != text).then(|| inner.into_owned())
        });
        redacted.map_or(secrets, Cow::Owned)
    }

    /// Redacts every text of a JSON value; keys and numbers stay.
    pub fn redact_value(&self, value: &mut Value, counts: &mut RedactionCounts) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redact(text, counts) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.redact_value(item, counts)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|field| self.redact_value(field, counts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn passes<'t>(
        &self,
        text: &'t str,
        scope: RuleScope,
        counts: &mut RedactionCounts,
    ) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        if self.is_off() {
            return out;
        }
        for _ in 0..MAX_PASSES {
            let spans = self.find(&out, scope);
            if spans.is_empty() {
                break;
            }
            out = Cow::Owned(replace(&out, &spans, counts));
        }
        if scope == RuleScope::Secrets {
            return out;
        }
        self.callbacks
            .iter()
            .fold(out, |text, callback| callback.apply(text, counts))
    }

    /// The disjoint spans to replace, in order.
    fn find(&self, text: &str, scope: RuleScope) -> Vec<RedactionSpan<'_>> {
        let mut found = RedactionFindings::default();
        rules::scan_secrets(text, &mut found);
        if !self.secrets || scope == RuleScope::Personal {
            found.spans.clear();
        }
        if scope == RuleScope::Ids {
            found.spans.retain(|span| span.rule != rules::RANDOM_STRING);
        }
        if scope != RuleScope::Secrets {
            self.pii
                .iter()
                .filter(|class| scope != RuleScope::Ids || !class.is_number())
                .for_each(|class| class.find(text, &mut found));
            self.custom
                .iter()
                .for_each(|custom| custom.find(text, &mut found));
        }
        found.spans.retain(|span| self.is_denied(text, span));
        found.disjoint()
    }

    fn is_denied(&self, text: &str, span: &RedactionSpan<'_>) -> bool {
        match (text.get(span.range.clone()), &self.allow) {
            (None | Some(""), _) => false,
            (Some(value), Some(allow)) => !allow.is_match(value),
            (Some(_), None) => true,
        }
    }
}

impl CustomPattern {
    fn find<'r>(&'r self, text: &str, found: &mut RedactionFindings<'r>) {
        let matches = self.regex.captures_iter(text);
        let secrets = matches.filter_map(|c| c.name("secret").or_else(|| c.get(0)));
        found.spans.extend(secrets.map(|secret| RedactionSpan {
            range: secret.range(),
            priority: usize::MAX,
            rule: &self.name,
        }));
    }
}

impl<'r> RedactionFindings<'r> {
    /// Unites what overlaps, so that no part of a secret is left beside a placeholder.
    fn disjoint(mut self) -> Vec<RedactionSpan<'r>> {
        let mut placeholders = self.placeholders.iter().peekable();
        self.spans
            .sort_by_key(|s| (s.range.start, s.range.end, s.priority));
        let mut out: Vec<RedactionSpan<'r>> = Vec::new();
        for span in self.spans {
            while placeholders
                .next_if(|p| p.end <= span.range.start)
                .is_some()
            {}
            if placeholders
                .peek()
                .is_some_and(|p| p.start < span.range.end)
            {
                continue;
            }
            match out.last_mut() {
                Some(last) if span.range.start < last.range.end => last.unite(&span),
                _ => out.push(span),
            }
        }
        out
    }
}

impl<'r> RedactionSpan<'r> {
    fn unite(&mut self, other: &RedactionSpan<'r>) {
        self.range.end = self.range.end.max(other.range.end);
        if other.priority < self.priority {
            self.priority = other.priority;
            self.rule = other.rule;
        }
    }
}

fn replace(text: &str, spans: &[RedactionSpan<'_>], counts: &mut RedactionCounts) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.push_str(text.get(at..span.range.start).unwrap_or_default());
        let secret = text.get(span.range.clone()).unwrap_or_default();
        out.push_str(&placeholder(span.rule, secret));
        *counts.entry(span.rule.to_owned()).or_default() += 1;
        at = span.range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// What stands for a secret: four hex digits tell secrets apart and say nothing about them.
pub fn placeholder(rule: &str, secret: &str) -> String {
    let key = blake3::derive_key("compact redaction placeholder", secret.as_bytes());
    let [a, b, ..] = key;
    format!("[REDACTED:{rule}:{a:02x}{b:02x}]")
}

/// How many placeholders of each rule stand in a text, whoever put them there.
pub fn count_placeholders(text: &str) -> RedactionCounts {
    let mut counts = RedactionCounts::new();
    for after in text.split("[REDACTED:").skip(1) {
        let inside = after.split_once(']').map_or("", |(inside, _)| inside);
        let Some((rule, digits)) = inside.rsplit_once(':') else {
            continue;
        };
        if digits.len() == 4 && placeholder_label(rule) == rule {
            *counts.entry(rule.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// A name that can stand in a placeholder.
fn placeholder_label(name: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let label: String = name.chars().map(keep).collect();
    if label.is_empty() {
        "callback".to_owned()
    } else {
        label
    }
}

fn allowed(patterns: &[String]) -> Result<Option<RegexSet>, RedactError> {
    for (i, pattern) in patterns.iter().enumerate() {
        let regex = RegexBuilder::new(pattern)
            .size_limit(MAX_PATTERN_BYTES)
            .build();
        regex.map_err(|e| unusable("allow", i, pattern, &e))?;
    }
    if patterns.is_empty() {
        return Ok(None);
    }
    let whole = patterns.iter().map(|p| format!("^(?:{p})$"));
    let set = RegexSetBuilder::new(whole)
        .size_limit(MAX_PATTERN_BYTES * 8)
        .build();
    let reason = |e: regex::Error| RedactError {
        field: "redaction.allow".to_owned(),
        pattern: patterns.join(" | "),
        reason: explain(&e),
    };
    set.map(Some).map_err(reason)
}

fn unusable(list: &str, index: usize, pattern: &str, error: &regex::Error) -> RedactError {
    RedactError {
        field: format!("redaction.{list}[{index}]"),
        pattern: pattern.to_owned(),
        reason: explain(error),
    }
}

/// True for a pattern that compiles to more than somebody who is not trusted may make others run.
pub fn is_heavy_pattern(pattern: &str) -> bool {
    let built = RegexBuilder::new(pattern)
        .size_limit(MAX_FOREIGN_PATTERN_BYTES)
        .build();
    matches!(built, Err(regex::Error::CompiledTooBig(_)))
}

/// The last line of a syntax error says what is wrong; the lines before it draw the pattern.
fn explain(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => format!("it compiles to more than {limit} bytes"),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or(&text);
            last.trim_start_matches("error: ").to_owned()
        }
    }
}
