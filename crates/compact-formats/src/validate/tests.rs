use expect_test::expect_file;

use super::*;

/// `docs/validate.md`, with every rule.
fn reference() -> String {
    let mut out = include_str!("reference.md").to_owned();
    for provider in Provider::ALL {
        out.push_str(&format!(
            "\n### {provider}\n\n| id | rule | checked | what must hold | source |\n|---|---|---|---|---|\n"
        ));
        out.extend(rules(provider).iter().map(row));
    }
    out
}

fn row(rule: &ProviderRule) -> String {
    let checked = match (rule.is_checked(), rule.unseen) {
        (false, _) => "no",
        (true, Some(_)) => "part",
        (true, None) => "yes",
    };
    let strict = match rule.strictness {
        Strictness::Strict => ", `--strict`",
        Strictness::Vendor => "",
    };
    let unseen = rule
        .unseen
        .map_or_else(String::new, |unseen| format!("<br>*Not seen:* {unseen}"));
    format!(
        "| {} | `{}` | {checked}{strict} | {}{unseen} | {} |\n",
        rule.id, rule.name, rule.summary, rule.source
    )
}

#[test]
fn the_reference_is_up_to_date() {
    println!("where docs/validate.md differs, `cargo xtask docs` writes it again");
    expect_file!["../../../../docs/validate.md"].assert_eq(&reference());
}

#[test]
fn providers_are_found_by_name() {
    for provider in Provider::ALL {
        assert_eq!(provider.name().parse(), Ok(provider));
    }
    assert_eq!(
        "bedrock".parse::<Provider>().unwrap_err().to_string(),
        "unknown provider `bedrock`; one of openai-chat, openai-responses, anthropic, gemini"
    );
}
