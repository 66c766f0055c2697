//! `validate`: a provider's rules over any message list, with no session, store or model needed.

use compact::format::validate::{Provider, ProviderRule, Strictness, Violation, check, rules};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::args::{GlobalArgs, ValidateArgs};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::progress::TerminalProgress;
use crate::report::number::format_count;
use crate::report::text::printable;

/// A person reads no more than this; `--json` has them all.
const SHOWN: usize = 50;

/// Checks a file, or lists the rules.
pub(super) fn run(args: &ValidateArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let (Some(file), Some(provider), false) = (&args.file, args.provider, args.list_rules) else {
        return Ok(list_rules(args.provider));
    };
    let strictness = match args.strict {
        true => Strictness::Strict,
        false => Strictness::Vendor,
    };
    let source = InputSource::read(file)?.select_session(args.session_index)?;
    let _progress = TerminalProgress::over_bytes(global, source.bytes.len(), "validating");
    let violations = check(provider, strictness, &source.bytes)
        .map_err(|error| Failure::from(error).with_context(&source.name))?;
    let ok = violations.is_empty();
    let json = json!({
        "ok": ok,
        "provider": provider.name(),
        "strict": args.strict,
        "rules": count_rules(provider, strictness),
        "violations": violations.iter().map(violation_json).collect::<Vec<_>>(),
    });
    let human = match ok {
        true => render_valid(&source.name, provider, strictness),
        false => render_violations(&source.name, provider, &violations),
    };
    let code = if ok { 0 } else { FailureCode::Check as u8 };
    Ok(CommandAnswer::new(json, human).with_code(code))
}

/// How many rules were asked.
fn count_rules(provider: Provider, strictness: Strictness) -> usize {
    let is_asked = |rule: &&ProviderRule| rule.is_checked() && rule.strictness <= strictness;
    rules(provider).iter().filter(is_asked).count()
}

fn violation_json(violation: &Violation) -> Value {
    json!({
        "rule": violation.rule.name,
        "id": violation.rule.id,
        "entry": violation.entry,
        "message": violation.message,
        "source": violation.rule.source,
    })
}

fn render_valid(name: &str, provider: Provider, strictness: Strictness) -> String {
    let asked = format_count(count_rules(provider, strictness) as u64, "rule", "rules");
    format!(
        "{} {}: {asked} of {provider} hold\n",
        "valid".green().bold(),
        printable(name)
    )
}

fn render_violations(name: &str, provider: Provider, violations: &[Violation]) -> String {
    let found = format_count(violations.len() as u64, "violation", "violations");
    let mut out = format!(
        "{} {}: {found} of {provider}'s rules\n",
        "invalid".red().bold(),
        printable(name)
    );
    for violation in violations.iter().take(SHOWN) {
        let rule = violation.rule;
        out.push_str(&format!(
            "  {} {}{}\n    {}\n    {}\n",
            rule.id.bold(),
            rule.name.bold(),
            violation
                .entry
                .map_or_else(String::new, |entry| format!(", entry {entry}")),
            printable(&violation.message),
            rule.source.dimmed(),
        ));
    }
    if violations.len() > SHOWN {
        let more = violations.len() - SHOWN;
        out.push_str(&format!("  and {more} more; --json has them all\n"));
    }
    out
}

fn list_rules(provider: Option<Provider>) -> CommandAnswer {
    let wanted = |one: &Provider| provider.is_none_or(|provider| provider == *one);
    let listed: Vec<&ProviderRule> = Provider::ALL
        .iter()
        .filter(|one| wanted(one))
        .flat_map(|one| rules(*one))
        .collect();
    let json: Vec<Value> = listed.iter().map(|rule| rule_json(rule)).collect();
    let human: Vec<String> = listed.iter().map(|rule| rule_words(rule)).collect();
    CommandAnswer::new(json!(json), human.concat())
}

fn rule_json(rule: &ProviderRule) -> Value {
    json!({
        "rule": rule.name,
        "id": rule.id,
        "provider": rule.provider.name(),
        "summary": rule.summary,
        "source": rule.source,
        "strict": rule.strictness == Strictness::Strict,
        "checked": rule.is_checked(),
        "unseen": rule.unseen,
    })
}

fn rule_words(rule: &ProviderRule) -> String {
    let mut marks = String::new();
    if rule.strictness == Strictness::Strict {
        marks.push_str(" (--strict)");
    }
    if !rule.is_checked() {
        marks.push_str(" (not checked)");
    }
    let unseen = rule
        .unseen
        .map_or_else(String::new, |unseen| format!("    not seen: {unseen}\n"));
    format!(
        "{} {} {}{marks}\n    {}\n{unseen}    {}\n",
        rule.provider,
        rule.id.bold(),
        rule.name.bold(),
        rule.summary,
        rule.source.dimmed(),
    )
}
