//! Values that are of the right kind and still make no sense.

use std::collections::BTreeMap;

use compact_core::pin::PinRules;
use compact_core::redact::Redactor;

use super::layer::{EffectiveValue, ValueOrigin, value_problem};
use super::{Config, ConfigError, ConfigProblem, gateway, model, storage};

/// Reports every value out of range.
pub(super) fn check(
    config: &Config,
    values: &BTreeMap<String, EffectiveValue>,
) -> Result<(), ConfigError> {
    // A default that no longer fits, such as the buffer of a tiny window, is nobody's mistake.
    let set = |path: &str| {
        values
            .get(path)
            .filter(|v| v.origin != ValueOrigin::Default)
    };
    let mut problems: Vec<ConfigProblem> = check_ranges(config)
        .into_iter()
        .filter_map(|(path, message)| Some(value_problem(set(path)?, &message)))
        .collect();
    problems.extend(check_patterns(config));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::Invalid(problems))
    }
}

/// Paths with what their values should be.
fn check_ranges(config: &Config) -> Vec<(&'static str, String)> {
    let policy = &config.policy;
    let mut wrong = Vec::new();
    let mut expect = |fine: bool, path, message: &str| {
        if !fine {
            wrong.push((path, message.to_owned()));
        }
    };
    // Above 1.0 is the documented way to say never; far above it, somebody means per cent.
    expect(
        policy.trigger_pct > 0.0 && policy.trigger_pct <= 2.0,
        "policy.trigger_pct",
        "must be a share of the window such as 0.85, greater than 0 and at most 2 (above 1.0 means never)",
    );
    expect(
        policy
            .soft_pct
            .is_none_or(|soft| soft > 0.0 && soft <= policy.trigger_pct),
        "policy.soft_pct",
        "must be greater than 0 and at most policy.trigger_pct",
    );
    expect(
        policy.target_of_trigger > 0.0 && policy.target_of_trigger < 1.0,
        "policy.target_of_trigger",
        "must be greater than 0 and less than 1: a view at the trigger would trigger again",
    );
    expect(
        (0.0..=1.0).contains(&policy.summary_share),
        "policy.summary_share",
        "must be between 0 and 1",
    );
    expect(
        (0.0..=1.0).contains(&policy.economy.rework_share.unwrap_or_default()),
        "policy.economy.rework_share",
        "must be between 0 and 1",
    );
    for (tokens, path) in [
        (policy.target_tokens, "policy.target_tokens"),
        (policy.summary_tokens, "policy.summary_tokens"),
    ] {
        expect(tokens != Some(0), path, "must be at least 1");
    }
    expect(
        policy.attempts_per_turn > 0,
        "policy.attempts_per_turn",
        "must be at least 1",
    );
    expect(
        !policy.protected_flag.is_empty(),
        "policy.protected_flag",
        "must not be empty",
    );
    let window = config.max_context_tokens;
    expect(
        window.is_none_or(|w| w > 0),
        "max_context_tokens",
        "must be at least 1",
    );
    expect(
        window.is_none_or(|w| policy.hard_cap_buffer < w),
        "policy.hard_cap_buffer",
        "must be smaller than max_context_tokens",
    );
    wrong.extend(storage::check_storage(&config.storage));
    if !model::is_url(config.telemetry.otlp.endpoint.as_deref()) {
        wrong.push(("telemetry.otlp.endpoint", model::URL_EXPECTED.to_owned()));
    }
    wrong.extend(model::check_models(&config.summarizer, &config.embeddings));
    wrong.extend(gateway::check_gateway(&config.gateway));
    wrong
}

/// Checks the regular expressions; a problem names the field.
fn check_patterns(config: &Config) -> Vec<ConfigProblem> {
    let redaction = Redactor::new(&config.redaction)
        .err()
        .map(|e| ("redaction", e.to_string()));
    let protected = PinRules::new(&config.policy)
        .err()
        .map(|e| ("policy.protected_patterns", e.to_string()));
    let problem = |(path, message): (&str, String)| ConfigProblem {
        path: path.to_owned(),
        message,
    };
    redaction
        .into_iter()
        .chain(protected)
        .map(problem)
        .collect()
}
