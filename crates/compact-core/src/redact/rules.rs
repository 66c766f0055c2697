//! The maintained rules: which texts are secrets, by the words that give them away.
//!
//! One automaton looks for every rule's trigger words in a single pass; a rule's own pattern runs
//! only where a trigger stands, anchored there and bounded, so ordinary text costs one pass and
//! hostile text stays linear. No pattern crosses a quote or cuts an escape, which keeps JSON valid.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::{Captures, Regex};

use super::secret_check::{self, AssignedValue};
use super::{RedactionFindings, RedactionSpan};

/// What a rule's match must satisfy beyond its shape.
#[derive(Clone, Copy)]
enum MatchCheck {
    /// The shape is proof enough.
    Shape,
    /// The trigger must open a word: `sk-` is no key in `task-`.
    WordStart,
    /// As `WordStart`, and the value must look random: `sk-estimator-container` is no key.
    RandomWord,
    /// The value must not be a template such as `${PASSWORD}` or `<token>`.
    NotTemplate,
    /// The value must look random.
    Random,
    /// A value is assigned to a name that promises a secret: anything but code is one.
    Named,
    /// A value is assigned to a name that may hold a secret: it must look random too.
    Suspected,
    /// Not a secret: what an earlier pass left in its place.
    Placeholder,
}

/// Enough to know a secret, short enough that a million triggers in one line stay cheap.
const REACH: usize = 512;

/// For secrets with an end to find. Two triggers of such a rule never look at the same bytes.
const FAR: usize = 64 * 1024;

struct SecretRule {
    name: &'static str,
    triggers: &'static [&'static str],
    pattern: &'static str,
    check: MatchCheck,
    /// How many bytes the pattern may look at.
    reach: usize,
    regex: OnceLock<Regex>,
}

const fn rule(
    name: &'static str,
    check: MatchCheck,
    triggers: &'static [&'static str],
    pattern: &'static str,
) -> SecretRule {
    SecretRule {
        name,
        triggers,
        pattern,
        check,
        reach: REACH,
        regex: OnceLock::new(),
    }
}

/// `name = "value"` in any language, a header or a query; the value's kind is its group's name.
macro_rules! assignment {
    () => {
        concat!(
            "^(?<key>[A-Za-z_][A-Za-z0-9_-]{0,48})(?<closed>\\\\*[\"'`])?[ \t]{0,8}",
            "(?<op>\\??:[ \t]*[A-Za-z_&][A-Za-z0-9_<>\\[\\]|&'. ]{0,30}?[ \t]=[ \t]|:=|=>|[=!]==?|[:=])",
            "[ \t]{0,8}(?:",
            "[A-Za-z]{0,2}\\\\*\"(?<double>(?:[^\"\\\\\r\n]|\\\\[^\"\r\n])+)|",
            "[A-Za-z]{0,2}\\\\*'(?<single>(?:[^'\"\\\\\r\n]|\\\\[^'\"\r\n])+)|",
            "\\\\*`(?<tick>[^`'\"\\\\\r\n]+)|",
            "(?<bare>[^\\s\"'`\\\\,;(){}<>\\[\\]]+))",
        )
    };
}

/// A private key's frame and its lines, also with `\n` escapes and line numbers between them.
const PEM: &str = concat!(
    r"^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    r"(?:\s|\\+[nrt])*(?:[A-Za-z][A-Za-z-]{2,20}: [^\n\\]{0,100}(?:\s|\\+[nr])+)*",
    r"(?:[0-9]{1,6}(?:\s|→|\|)+)?[A-Za-z0-9+/]{16,}=*",
    r"(?:(?:\s|\\+[nrt]|→|\|)+[A-Za-z0-9+/=]+)*",
    r"(?:(?:\s|\\+[nrt]|→|\|)*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
);

/// In order of authority: when two rules find the same text, the first one names it.
/// Where a pattern has a group, the group is what is replaced.
static RULES: [SecretRule; 43] = {
    use MatchCheck::{
        Named, NotTemplate, Placeholder, Random, RandomWord, Shape, Suspected, WordStart,
    };
    [
        rule(
            "",
            Placeholder,
            &["[redacted:"],
            r"^\[REDACTED:[a-z0-9-]+:[0-9a-f]{4}\]",
        ),
        rule("private-key", Shape, &["-----begin "], PEM).far(),
        rule(
            "age-key",
            Shape,
            &["age-secret-key-1"],
            r"^AGE-SECRET-KEY-1[0-9A-Z]{58}",
        ),
        // Most vendors of models prefix their keys so.
        rule("llm-key", RandomWord, &["sk-"], r"^sk-[A-Za-z0-9_-]{20,}"),
        rule("google-key", Shape, &["aiza"], r"^AIza[A-Za-z0-9_-]{35,}"),
        rule(
            "google-token",
            WordStart,
            &["ya29."],
            r"^ya29\.[A-Za-z0-9_-]{20,}",
        ),
        rule(
            "google-secret",
            Shape,
            &["gocspx-"],
            r"^GOCSPX-[A-Za-z0-9_-]{20,}",
        ),
        rule(
            "aws-key",
            WordStart,
            &["akia", "asia", "abia"],
            r"^A[KSB]IA[A-Z0-9]{16}\b",
        ),
        rule(
            "aws-secret",
            Random,
            &["secret_access_key", "secretaccesskey"],
            "^[A-Za-z_]{15,17}\\\\*[\"']?[ \t]*[:=][ \t]*\\\\*[\"']?([A-Za-z0-9/+]{40})",
        ),
        rule(
            "github-token",
            Shape,
            &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
            r"^(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{30,}",
        ),
        rule(
            "gitlab-token",
            WordStart,
            &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"],
            r"^gl[a-z]{2,4}-[A-Za-z0-9_.-]{20,}",
        ),
        rule(
            "slack-token",
            WordStart,
            &["xox", "xapp-"],
            r"^x(?:ox[a-z](?:\.xox[a-z])?|app)-[A-Za-z0-9-]{10,}",
        ),
        rule(
            "slack-webhook",
            Shape,
            &["hooks.slack.com/services/"],
            r"^hooks\.slack\.com/services/(T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]+)",
        ),
        rule(
            "discord-webhook",
            Shape,
            &["/api/webhooks/"],
            r"^/api/webhooks/[0-9]{15,20}/([A-Za-z0-9_-]{50,})",
        ),
        rule(
            "telegram-token",
            Shape,
            &[":aa"],
            r"^:(AA[A-Za-z0-9_-]{33})",
        ),
        rule(
            "stripe-key",
            WordStart,
            &["sk_live_", "rk_live_", "sk_test_", "rk_test_"],
            r"^[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
        ),
        rule(
            "stripe-webhook",
            WordStart,
            &["whsec_"],
            r"^whsec_[A-Za-z0-9+/=]{24,}",
        ),
        rule("npm-token", WordStart, &["npm_"], r"^npm_[A-Za-z0-9]{36,}"),
        rule(
            "pypi-token",
            WordStart,
            &["pypi-"],
            r"^pypi-[A-Za-z0-9_-]{50,}",
        ),
        rule(
            "huggingface-token",
            WordStart,
            &["hf_"],
            r"^hf_[A-Za-z0-9]{30,}",
        ),
        rule(
            "sendgrid-key",
            WordStart,
            &["sg."],
            r"^SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}",
        ),
        rule("twilio-key", WordStart, &["sk"], r"^SK[0-9a-f]{32}\b"),
        rule(
            "azure-key",
            Shape,
            &["accountkey=", "sharedaccesskey="],
            r"^(?i:accountkey|sharedaccesskey)=([A-Za-z0-9+/]{40,}={0,2})",
        ),
        rule(
            "azure-sas",
            WordStart,
            &["sig="],
            r"^sig=([A-Za-z0-9%+/]{40,}(?:%3D|=)*)",
        ),
        rule("groq-key", WordStart, &["gsk_"], r"^gsk_[A-Za-z0-9]{40,}"),
        rule("xai-key", WordStart, &["xai-"], r"^xai-[A-Za-z0-9]{40,}"),
        rule(
            "perplexity-key",
            WordStart,
            &["pplx-"],
            r"^pplx-[A-Za-z0-9]{40,}",
        ),
        rule(
            "replicate-token",
            WordStart,
            &["r8_"],
            r"^r8_[A-Za-z0-9]{37,}",
        ),
        rule(
            "digitalocean-token",
            WordStart,
            &["dop_v1_", "doo_v1_", "dor_v1_"],
            r"^do[opr]_v1_[0-9a-f]{64}",
        ),
        rule(
            "databricks-token",
            WordStart,
            &["dapi"],
            r"^dapi[0-9a-f]{32}",
        ),
        rule(
            "shopify-token",
            WordStart,
            &["shpat_", "shpss_", "shpca_", "shppa_"],
            r"^shp[a-z]{2}_[0-9a-fA-F]{32}",
        ),
        rule(
            "vault-token",
            WordStart,
            &["hvs.", "hvb."],
            r"^hv[sb]\.[A-Za-z0-9_-]{24,}",
        ),
        rule(
            "docker-token",
            WordStart,
            &["dckr_pat_"],
            r"^dckr_pat_[A-Za-z0-9_-]{20,}",
        ),
        rule(
            "grafana-token",
            WordStart,
            &["glsa_", "glc_"],
            r"^gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}",
        ),
        rule(
            "linear-key",
            WordStart,
            &["lin_api_"],
            r"^lin_api_[A-Za-z0-9]{32,}",
        ),
        rule(
            "atlassian-token",
            WordStart,
            &["atatt3"],
            r"^ATATT3[A-Za-z0-9_=-]{60,}",
        ),
        rule("mailgun-key", WordStart, &["key-"], r"^key-[0-9a-f]{32}\b"),
        rule(
            "jwt",
            WordStart,
            &["eyj"],
            r"^eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){1,3}",
        )
        .far(),
        rule(
            "url-password",
            NotTemplate,
            &["://"],
            "^://[^\\s/@:\"'`\\\\<>]{0,100}:([^\\s/@\"'`\\\\<>]{1,200})@[A-Za-z0-9\\[]",
        ),
        rule(
            "authorization",
            NotTemplate,
            &["authorization"],
            "^(?i:authorization)\\\\*[\"']?[ \t]*[:=][ \t]*\\\\*[\"'`]?(?i:bearer|basic|token|apikey|digest)[ \t]+([A-Za-z0-9._~+/-]{6,}=*)",
        ),
        rule(
            "bearer-token",
            Random,
            &["bearer "],
            r"^(?i:bearer) +([A-Za-z0-9._~+/-]{16,}=*)",
        ),
        rule(
            "password",
            Named,
            &[
                "password",
                "passwd",
                "passphrase",
                "pwd",
                "api_key",
                "api-key",
                "apikey",
            ],
            assignment!(),
        ),
        rule(
            "secret",
            Suspected,
            &[
                "token",
                "secret",
                "credential",
                "access_key",
                "accesskey",
                "private_key",
                "privatekey",
                "signing_key",
                "encryption_key",
                "_auth",
                "_pass",
            ],
            assignment!(),
        ),
    ]
};

struct TriggerWords {
    automaton: AhoCorasick,
    /// The rule of each trigger, by the automaton's numbering.
    owners: Vec<usize>,
}

static TRIGGERS: LazyLock<Option<TriggerWords>> = LazyLock::new(|| {
    let words = RULES.iter().flat_map(|rule| rule.triggers);
    let owners = RULES
        .iter()
        .enumerate()
        .flat_map(|(i, rule)| rule.triggers.iter().map(move |_| i))
        .collect();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .ok()?;
    Some(TriggerWords { automaton, owners })
});

/// Finds every secret and every placeholder of a text.
pub(super) fn scan_secrets(text: &str, found: &mut RedactionFindings<'_>) {
    let Some(triggers) = &*TRIGGERS else { return };
    for hit in triggers.automaton.find_overlapping_iter(text) {
        let priority = triggers
            .owners
            .get(hit.pattern().as_usize())
            .copied()
            .unwrap_or_default();
        let Some(rule) = RULES.get(priority) else {
            continue;
        };
        let Some(range) = rule.find_at(text, hit.start()) else {
            continue;
        };
        match rule.check {
            MatchCheck::Placeholder => found.placeholders.push(range),
            MatchCheck::Named => found.spans.push(RedactionSpan {
                range: range.clone(),
                priority,
                rule: assigned_rule_name(text, hit.range()),
            }),
            _ => found.spans.push(RedactionSpan {
                range,
                priority,
                rule: rule.name,
            }),
        }
    }
    found.placeholders.sort_by_key(|p| p.start);
}

/// Name, trigger words and pattern of a maintained rule: what tells one set of rules from another.
pub(super) type RuleIdentity = (&'static str, &'static [&'static str], &'static str);

/// The maintained rules, in order of authority.
pub(super) fn identities() -> Vec<RuleIdentity> {
    let identity = |rule: &SecretRule| (rule.name, rule.triggers, rule.pattern);
    RULES.iter().map(identity).collect()
}

/// Passwords and API keys share their rule, not their name.
fn assigned_rule_name(text: &str, trigger: Range<usize>) -> &'static str {
    let is_key = text.get(trigger).is_some_and(|t| t.starts_with(['a', 'A']));
    if is_key { "api-key" } else { "password" }
}

impl SecretRule {
    const fn far(mut self) -> SecretRule {
        self.reach = FAR;
        self
    }

    /// The secret that the trigger at `start` gives away, if it does.
    fn find_at(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let before = text.get(..start)?;
        let needs_start = matches!(self.check, MatchCheck::WordStart | MatchCheck::RandomWord);
        if needs_start && !opens_word(before) {
            return None;
        }
        let end = text.floor_char_boundary(start.saturating_add(self.reach).min(text.len()));
        let within = text.get(start..end)?;
        if self.is_assignment() && !secret_check::may_assign(within) {
            return None;
        }
        let captures = self.regex().captures(within)?;
        let value = self.accepted(&captures, text.get(start..)?)?;
        let found = start + value.start..start + value.end;
        let found = after_escape(text, found.start)..beyond_reach(text, found.end, end);
        (!found.is_empty()).then_some(found)
    }

    fn is_assignment(&self) -> bool {
        matches!(self.check, MatchCheck::Named | MatchCheck::Suspected)
    }

    fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| constant(self.pattern))
    }

    /// The part to replace when the check holds.
    fn accepted(&self, captures: &Captures<'_>, rest: &str) -> Option<Range<usize>> {
        if self.is_assignment() {
            let assigned = AssignedValue::from_captures(captures, rest)?;
            let secret = match self.check {
                MatchCheck::Named => secret_check::is_named_secret(&assigned),
                _ => secret_check::is_suspected_secret(&assigned),
            };
            return secret.then_some(assigned.range);
        }
        let value = captures.get(1).or_else(|| captures.get(0))?;
        let accepted = match self.check {
            MatchCheck::Random | MatchCheck::RandomWord => {
                secret_check::looks_random(value.as_str())
            }
            MatchCheck::NotTemplate => !secret_check::is_template(value.as_str()),
            _ => true,
        };
        accepted.then_some(value.range())
    }
}

/// A value that fills the reach goes on as long as it looks like one.
fn beyond_reach(text: &str, end: usize, reach: usize) -> usize {
    if end < reach {
        return end;
    }
    let more = text.get(end..).unwrap_or_default().bytes();
    end + more
        .take_while(|b| b.is_ascii_alphanumeric() || b"+/=_-.".contains(b))
        .count()
}

/// True when a word can begin after `before`; in raw JSON the `n` of `\n` is no letter.
fn opens_word(before: &str) -> bool {
    let continues = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !before.chars().next_back().is_some_and(continues) || ends_in_escape(before)
}

/// True when the last characters are an escape such as `\n` or `\u00e9`.
pub(super) fn ends_in_escape(before: &str) -> bool {
    let start = before.len();
    (1..=5).any(|back| {
        let Some(slash) = start.checked_sub(back + 1) else {
            return false;
        };
        escape_at(before, slash).is_some_and(|length| slash + length == start)
    })
}

/// The place at or after `start` that cuts no escape of a JSON string in two.
pub(super) fn after_escape(text: &str, start: usize) -> usize {
    let cut = (1..=5).find_map(|back| {
        let slash = start.checked_sub(back)?;
        let length = escape_at(text, slash)?;
        (slash + length > start).then_some(slash + length)
    });
    cut.unwrap_or(start)
}

/// The length of the escape that begins at `slash`, if one does.
fn escape_at(text: &str, slash: usize) -> Option<usize> {
    let (before, from) = text.split_at_checked(slash)?;
    let mut chars = from.chars();
    if chars.next() != Some('\\') || trailing_backslashes(before) % 2 == 1 {
        return None;
    }
    match chars.next()? {
        'u' if chars.take(4).filter(char::is_ascii_hexdigit).count() == 4 => Some(6),
        next => Some(1 + next.len_utf8()),
    }
}

fn trailing_backslashes(text: &str) -> usize {
    text.bytes().rev().take_while(|b| *b == b'\\').count()
}

/// Compiles a pattern of this crate.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants and a test compiles each"
)]
pub(super) fn constant(pattern: &'static str) -> Regex {
    Regex::new(pattern).expect("a maintained pattern compiles")
}

#[cfg(test)]
pub(super) fn compile_all() -> usize {
    RULES
        .iter()
        .filter(|rule| !rule.regex().as_str().is_empty())
        .count()
}
