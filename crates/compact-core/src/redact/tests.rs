use proptest::prelude::*;

use super::*;

#[path = "testdata/planted.rs"]
mod planted;

use planted::{PlantedSecret, harmless_texts, placed_secrets, planted_secrets};

fn redactor() -> Redactor {
    RedactionRules::default()
        .redactor(RedactionBoundary::Summary)
        .unwrap()
}

fn exporter() -> Redactor {
    RedactionRules::default()
        .redactor(RedactionBoundary::Export)
        .unwrap()
}

fn redact(redactor: &Redactor, text: &str) -> (String, Vec<String>) {
    let mut counts = RedactionCounts::new();
    let out = redactor.redact(text, &mut counts).into_owned();
    (out, counts.into_keys().collect())
}

/// Fake secrets are put together here, so that no scanner takes this file for a leak.
fn noise(alphabet: &str, length: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = length as u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        alphabet[(state >> 16) as usize % alphabet.len()]
    };
    (0..length).map(|_| next()).collect()
}

fn alnum(length: usize) -> String {
    noise("aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uV", length)
}

fn hex(length: usize) -> String {
    noise("0a1b2c3d4e5f6789f", length)
}

fn pem(newline: &str) -> String {
    let lines: Vec<String> = (0..12).map(|i| alnum(64 - i % 2)).collect();
    let frame = |word: &str| format!("-----{word} RSA {} KEY-----", "PRIVATE");
    format!(
        "{}{newline}{}{newline}{}",
        frame("BEGIN"),
        lines.join(newline),
        frame("END")
    )
}

/// Rule name, secret.
fn formats() -> Vec<(&'static str, String)> {
    let join = |parts: &[&str]| parts.concat();
    vec![
        ("llm-key", join(&["sk", "-proj-", &alnum(48)])),
        ("llm-key", join(&["sk", "-", &alnum(48)])),
        ("llm-key", join(&["sk", "-ant-", "api03-", &alnum(90)])),
        ("llm-key", join(&["sk", "-or-v1-", &hex(64)])),
        ("google-key", join(&["AI", "za", &alnum(35)])),
        ("google-token", join(&["ya", "29.", &alnum(60)])),
        ("google-secret", join(&["GOC", "SPX-", &alnum(28)])),
        ("aws-key", join(&["AK", "IA", &noise("ABCDEFGH234567", 16)])),
        ("aws-key", join(&["AS", "IA", &noise("ABCDEFGH234567", 16)])),
        ("github-token", join(&["gh", "p_", &alnum(36)])),
        ("github-token", join(&["gh", "o_", &alnum(36)])),
        ("github-token", join(&["gh", "s_", &alnum(36)])),
        (
            "github-token",
            join(&["github", "_pat_", &alnum(22), "_", &alnum(59)]),
        ),
        ("gitlab-token", join(&["gl", "pat-", &alnum(20)])),
        (
            "slack-token",
            join(&["xo", "xb-", &noise("123456", 12), "-", &alnum(24)]),
        ),
        ("stripe-key", join(&["sk", "_live_", &alnum(24)])),
        ("stripe-key", join(&["rk", "_live_", &alnum(24)])),
        ("stripe-webhook", join(&["wh", "sec_", &alnum(32)])),
        ("npm-token", join(&["np", "m_", &alnum(36)])),
        (
            "pypi-token",
            join(&["py", "pi-", "AgEIcHlwaS5vcmc", &alnum(60)]),
        ),
        ("huggingface-token", join(&["h", "f_", &alnum(34)])),
        (
            "sendgrid-key",
            join(&["S", "G.", &alnum(22), ".", &alnum(43)]),
        ),
        ("twilio-key", join(&["S", "K", &hex(32)])),
        ("groq-key", join(&["gs", "k_", &alnum(52)])),
        ("xai-key", join(&["xa", "i-", &alnum(80)])),
        ("perplexity-key", join(&["pp", "lx-", &alnum(48)])),
        ("replicate-token", join(&["r", "8_", &alnum(37)])),
        ("digitalocean-token", join(&["dop", "_v1_", &hex(64)])),
        ("databricks-token", join(&["da", "pi", &hex(32)])),
        ("shopify-token", join(&["shp", "at_", &hex(32)])),
        ("vault-token", join(&["hv", "s.", &alnum(24)])),
        ("docker-token", join(&["dckr", "_pat_", &alnum(27)])),
        ("linear-key", join(&["lin", "_api_", &alnum(40)])),
        ("mailgun-key", join(&["ke", "y-", &hex(32)])),
        ("atlassian-token", join(&["ATA", "TT3", &alnum(180)])),
        (
            "age-key",
            join(&[
                "AGE-SECRET",
                "-KEY-1",
                &noise("QPZRY9X8GF2TVDW0S3JN54KH", 58),
            ]),
        ),
        (
            "jwt",
            join(&[
                "ey",
                "J",
                &alnum(30),
                ".ey",
                "J",
                &alnum(60),
                ".",
                &alnum(43),
            ]),
        ),
        ("private-key", pem("\n")),
        ("private-key", pem("\\n")),
        ("private-key", pem("\\\\n")),
    ]
}

/// Text before the secret, the secret, text after it; only the secret may go.
#[expect(clippy::too_many_lines, reason = "a table")]
fn contexts() -> Vec<(&'static str, String, String, &'static str)> {
    let azure = "AccountName=a;Account".to_owned() + "Key=";
    vec![
        (
            "azure-key",
            azure,
            noise("aB3+/cD4", 86) + "==",
            ";EndpointSuffix=core",
        ),
        (
            "aws-secret",
            "aws_secret_access_key = ".into(),
            noise("aB3+cD4/eF5gH6iJ7k", 40),
            "\n",
        ),
        (
            "url-password",
            "postgres://app:".into(),
            "s3cr3t!x".into(),
            "@db.internal:5432/app",
        ),
        (
            "url-password",
            "redis://:".into(),
            "hunter2".into(),
            "@cache:6379",
        ),
        (
            "authorization",
            "Authorization: Bearer ".into(),
            "abc123def".into(),
            "\r\n",
        ),
        (
            "authorization",
            "Authorization: Basic ".into(),
            "dXNlcjpwYXNz".into(),
            "\"}",
        ),
        ("bearer-token", "curl -H 'X: Bearer ".into(), alnum(32), "'"),
        ("password", "password: ".into(), "hunter2".into(), "\n"),
        (
            "password",
            "DB_PASSWORD=".into(),
            "swordfish".into(),
            "\nNEXT=1",
        ),
        (
            "password",
            "\"password\": \"".into(),
            "correct-h0rse".into(),
            "\", \"user\": \"x\"",
        ),
        (
            "password",
            "\\\"password\\\":\\\"".into(),
            "hunter2".into(),
            "\\\",\\\"user\\\"",
        ),
        (
            "password",
            "conn = connect(password='".into(),
            "tr0ub4dor&3".into(),
            "')",
        ),
        (
            "password",
            "let password: &str = \"".into(),
            "tr0ub4dor&3".into(),
            "\";",
        ),
        (
            "password",
            "Server=db;Password=".into(),
            "P@ssw0rd".into(),
            ";User=sa",
        ),
        ("api-key", "api_key=".into(), "abc123".into(), " next"),
        ("api-key", "API-KEY : ".into(), "9f8e7d6c".into(), "\n"),
        (
            "api-key",
            "const apiKey: string = \"".into(),
            alnum(20),
            "\";",
        ),
        ("secret", "client_secret: ".into(), alnum(24), "\n"),
        ("secret", "TWILIO_AUTH_TOKEN=".into(), hex(32), "\n"),
        (
            "secret",
            "//registry.npmjs.org/:_authToken=".into(),
            hex(8) + "-" + &hex(4) + "-4" + &hex(3) + "-" + &hex(12),
            "\n",
        ),
        ("secret", "'credential' => '".into(), alnum(30), "',"),
        (
            "slack-webhook",
            "https://hooks.slack.com/services/".into(),
            format!("T0{}/B0{}/{}", "ABCDEF1", "GHIJKL2", alnum(24)),
            "\"",
        ),
        (
            "telegram-token",
            "bot ".into(),
            "1234567890:".to_owned() + "AA" + &alnum(33),
            "/getMe",
        ),
    ]
}

#[test]
fn every_maintained_pattern_compiles() {
    let compiled = context::CONTEXTS.iter().map(context::SecretContext::regex);
    assert_eq!(
        compiled.filter(|regex| !regex.as_str().is_empty()).count(),
        context::CONTEXTS.len()
    );
    let lines = form::FORMATS.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(form::FORMS.len(), lines.count());
}

/// Python writes JSON in ASCII: what a password is called must be understood in escapes too.
#[test]
fn a_name_in_escapes_is_a_name() {
    let redactor = redactor();
    let json = r#"{"text":"\u043f\u0430\u0440\u043e\u043b\u044c: Tr0ub4dor","n":1}"#;
    let redacted = redactor.redact_json(json, &mut RedactionCounts::new());
    let value: Value = serde_json::from_str(&redacted).unwrap();
    let placeholder = placeholder("password", "Tr0ub4dor");
    assert_eq!(
        value,
        serde_json::json!({"text": format!("пароль: {placeholder}"), "n": 1})
    );
    let call = serde_json::json!({"arguments": json}).to_string();
    let redacted = redactor.redact_json(&call, &mut RedactionCounts::new());
    assert!(!redacted.contains("Tr0ub4dor"), "{redacted}");
    let plain = r#"{"text":"gr\u00fcn","n":1}"#;
    assert_eq!(
        redactor.redact_json(plain, &mut RedactionCounts::new()),
        plain
    );
}

#[test]
fn no_secret_format_gets_through() {
    for (rule, secret) in formats() {
        for (before, after) in [
            ("", ""),
            ("use ", " now"),
            ("\"k\":\"", "\","),
            ("line\\n", "\\nmore"),
        ] {
            let text = format!("{before}{secret}{after}");
            let (out, rules) = redact(&redactor(), &text);
            let expected = format!("{before}{}{after}", placeholder(rule, &secret));
            assert_eq!((out, rules), (expected, vec![rule.to_owned()]), "{text}");
        }
    }
}

/// How many times each planted secret is made up.
const SEEDS: u64 = 20;

#[test]
fn ninety_nine_of_a_hundred_planted_secrets_are_found() {
    let redactor = redactor();
    let planted: Vec<PlantedSecret> = (0..SEEDS)
        .flat_map(|seed| [planted_secrets(seed), placed_secrets(seed)].concat())
        .collect();
    let (mut missed, mut escaped) = (Vec::new(), Vec::new());
    for secret in &planted {
        if redact(&redactor, &secret.text).0.contains(&secret.value) {
            missed.push(&secret.kind);
        }
        let json = serde_json::to_string(&secret.text).unwrap();
        let value = serde_json::to_string(&secret.value).unwrap();
        let found = redactor.redact_json(&json, &mut RedactionCounts::new());
        if found.contains(value.trim_matches('"')) {
            escaped.push(&secret.kind);
        }
    }
    assert!(planted.len() / SEEDS as usize >= 160);
    for list in [missed, escaped] {
        assert!(
            list.len() * 100 <= planted.len(),
            "{} of {}: {list:?}",
            list.len(),
            planted.len()
        );
    }
}

#[test]
fn what_looks_drawn_and_is_public_stays() {
    let redactor = redactor();
    let texts = (0..SEEDS).flat_map(harmless_texts);
    let changed = texts.filter_map(|text| {
        let out = redact(&redactor, &text).0;
        (out != text).then(|| format!("{text}  →  {out}"))
    });
    assert_eq!(changed.collect::<Vec<_>>().join("\n"), "");
}

#[test]
fn assigned_secrets_keep_their_name() {
    for (rule, before, secret, after) in contexts() {
        let text = format!("{before}{secret}{after}");
        let (out, rules) = redact(&redactor(), &text);
        let expected = format!("{before}{}{after}", placeholder(rule, &secret));
        assert_eq!((out, rules), (expected, vec![rule.to_owned()]), "{text}");
    }
}

#[test]
fn placeholders_are_counted_by_rule() {
    let (key, other) = (placeholder("aws-key", "a"), placeholder("pattern-1", "b"));
    let text = format!("{key} and {key}, {other}, [REDACTED:Not one], [REDACTED: x:12345]");
    let expected = [("aws-key", 2), ("pattern-1", 1)];
    let expected = expected.map(|(rule, count)| (rule.to_owned(), count));
    assert_eq!(count_placeholders(&text), RedactionCounts::from(expected));
}

#[test]
fn a_key_read_with_line_numbers_is_redacted_whole() {
    let numbered: Vec<String> = pem("\n")
        .lines()
        .enumerate()
        .map(|(i, line)| format!("{:>6}→{line}", i + 1))
        .collect();
    let (out, _) = redact(&redactor(), &numbered.join("\n"));
    assert!(
        out.starts_with("     1→[REDACTED:private-key:") && out.ends_with(']'),
        "{out}"
    );
}

#[test]
fn a_key_cut_off_by_a_tool_is_redacted_too() {
    let whole = pem("\n");
    let cut = whole.get(..400).unwrap();
    let (out, _) = redact(&redactor(), &format!("{cut}\n[truncated]"));
    assert_eq!(
        out,
        format!("{}\n[truncated]", placeholder("private-key", cut))
    );
}

#[test]
fn ordinary_code_is_left_alone() {
    let lines: Vec<&str> = include_str!("testdata/ordinary.txt").lines().collect();
    let redactor = redactor();
    let wrong: Vec<String> = lines
        .iter()
        .map(|line| (line, redact(&redactor, line).0))
        .filter(|(line, out)| *line != out)
        .map(|(line, out)| format!("{line}  →  {out}"))
        .collect();
    assert!(lines.len() >= 250);
    assert!(wrong.len() * 100 <= lines.len(), "{}", wrong.join("\n"));
}

#[test]
fn one_secret_has_one_placeholder_and_two_have_two() {
    let text = format!(
        "password={} then password={} then password={}",
        "hunter2", "hunter3", "hunter2"
    );
    let (out, _) = redact(&redactor(), &text);
    let found: Vec<&str> = out
        .split("password=")
        .skip(1)
        .map(|p| p.split(' ').next().unwrap())
        .collect();
    assert_eq!(found[0], found[2]);
    assert_ne!(found[0], found[1]);
}

#[test]
fn counts_are_kept_per_rule() {
    let mut counts = RedactionCounts::new();
    redactor().redact(
        "password=hunter2 api_key=abc123 password=hunter2",
        &mut counts,
    );
    assert_eq!(
        counts,
        RedactionCounts::from([("password".into(), 2), ("api-key".into(), 1)])
    );
}

#[test]
fn text_without_secrets_is_borrowed() {
    assert!(matches!(
        redactor().redact("fn main() {}", &mut RedactionCounts::new()),
        Cow::Borrowed(_)
    ));
}

#[test]
fn personal_data_is_replaced_on_export_only() {
    let cases = [
        ("email", "mail ", "jane.doe+x@example.co.uk", " now"),
        ("credit-card", "card ", "4111 1111 1111 1111", "."),
        ("credit-card", "", "378282246310005", ""),
        ("iban", "to ", "DE89 3704 0044 0532 0130 00", " TODAY"),
        ("iban", "to ", "GB82WEST12345698765432", ","),
        ("ssn", "ssn ", "123-45-6789", ""),
        ("phone", "call ", "+49 30 1234567", ""),
        ("phone", "call ", "(415) 555-2671", ""),
        ("phone", "call ", "415-555-2671", ""),
    ];
    for (rule, before, value, after) in cases {
        let text = format!("{before}{value}{after}");
        let (out, _) = redact(&exporter(), &text);
        assert_eq!(out, format!("{before}{}{after}", placeholder(rule, value)));
        assert_eq!(redact(&redactor(), &text).0, text);
    }
}

#[test]
fn look_alikes_are_not_personal_data() {
    for text in [
        "4111 1111 1111 1112",
        "1234567890123456",
        "000-12-3456",
        "DE89 3704 0044 0532 0130 01",
        "2025-11-15T21:19:07",
        "127.0.0.1:8080",
        "v1.415.555.2671",
        "550e8400-e29b-41d4-a716-446655440000",
        "user@localhost",
        "1731705547123",
    ] {
        assert_eq!(redact(&exporter(), text).0, text);
    }
}

#[test]
fn the_allow_list_lets_values_through() {
    let rules = RedactionRules {
        allow: vec![r"[^@]+@example\.com".into(), "hunter2".into()],
        ..RedactionRules::default()
    };
    let redactor = rules.redactor(RedactionBoundary::Export).unwrap();
    let (out, _) = redact(
        &redactor,
        "bob@example.com eve@example.org password=hunter2 password=hunter22",
    );
    assert_eq!(
        out,
        format!(
            "bob@example.com {} password=hunter2 password={}",
            placeholder("email", "eve@example.org"),
            placeholder("password", "hunter22"),
        )
    );
}

#[test]
fn patterns_and_functions_of_the_user_apply() {
    let rules = RedactionRules {
        patterns: vec![r"PROJ-\d+".into(), r"badge (?<secret>\w+)".into()],
        ..RedactionRules::default()
    };
    let rename = |text: &str| {
        assert!(!text.contains("hunter2"), "a callback sees no secret");
        let name = placeholder("code-name", "falcon");
        text.contains("falcon")
            .then(|| text.replace("falcon", &name))
    };
    let redactor = Redactor::new(&rules)
        .unwrap()
        .with_callback("Code Name", Arc::new(rename));
    let (out, rules) = redact(&redactor, "PROJ-12 badge x9 falcon password=hunter2");
    assert_eq!(rules, ["code-name", "password", "pattern-1", "pattern-2"]);
    assert_eq!(
        out,
        format!(
            "{} badge {} {} password={}",
            placeholder("pattern-1", "PROJ-12"),
            placeholder("pattern-2", "x9"),
            placeholder("code-name", "falcon"),
            placeholder("password", "hunter2"),
        )
    );
}

#[test]
fn a_callback_that_panics_has_its_text_withheld() {
    let fails = |text: &str| {
        assert!(!text.contains("boom"), "it cannot cope");
        None
    };
    let redactor = redactor().with_callback("mine", Arc::new(fails));
    let mut counts = RedactionCounts::new();
    assert_eq!(redactor.redact("fine", &mut counts), "fine");
    assert_eq!(
        redactor.redact("boom and more", &mut counts),
        placeholder("mine", "boom and more")
    );
    assert_eq!(counts, RedactionCounts::from([("mine-failed".into(), 1)]));
}

#[test]
fn a_boundary_whose_sink_is_off_lets_text_through() {
    let mut rules = RedactionRules::default();
    let text = "password=hunter2";
    let at = |rules: &RedactionRules, b| redact(&rules.redactor(b).unwrap(), text).0;
    assert_eq!(at(&rules, RedactionBoundary::Archive), text);
    assert_ne!(at(&rules, RedactionBoundary::Export), text);
    assert_ne!(at(&rules, RedactionBoundary::Summary), text);
    rules.sinks = Sinks {
        archive: true,
        export: false,
        summary_prompt: false,
    };
    assert_ne!(at(&rules, RedactionBoundary::Archive), text);
    assert_eq!(at(&rules, RedactionBoundary::Export), text);
    rules.enabled = false;
    assert_eq!(at(&rules, RedactionBoundary::Archive), text);
}

#[test]
fn a_bad_pattern_is_named_with_its_field() {
    let message = |patterns: &[&str], allow: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|p| (*p).to_owned()).collect();
        let rules = RedactionRules {
            patterns: own(patterns),
            allow: own(allow),
            ..RedactionRules::default()
        };
        Redactor::new(&rules).unwrap_err().to_string()
    };
    assert_eq!(
        message(&["fine", "(open"], &[]),
        "redaction.patterns[1]: the pattern `(open` cannot be used: unclosed group"
    );
    assert_eq!(
        message(&[], &["[z-a]"]),
        "redaction.allow[0]: the pattern `[z-a]` cannot be used: invalid character class range, the start must be <= the end"
    );
    assert!(
        message(&["\\w{1000}{1000}"], &[])
            .ends_with("cannot be used: it compiles to more than 1048576 bytes")
    );
}

#[test]
fn a_long_token_is_redacted_to_its_end() {
    let secret = [
        "ey",
        "J",
        &alnum(300),
        ".ey",
        "J",
        &alnum(4000),
        ".",
        &alnum(43),
    ]
    .concat();
    let (out, _) = redact(&redactor(), &format!("jwt {secret} end"));
    assert_eq!(out, format!("jwt {} end", placeholder("jwt", &secret)));
}

#[test]
fn json_keeps_its_layout_and_loses_its_secrets() {
    let rules = RedactionRules {
        patterns: vec![r"ticket \S+".into()],
        ..RedactionRules::default()
    };
    let redactor = Redactor::new(&rules).unwrap();
    let json = r#"{ "a": "ticket \"x1\" to\nbob@example.org",  "password":"hunter2", "n": 1e3 }"#;
    let out = redactor
        .redact_json(json, &mut RedactionCounts::new())
        .into_owned();
    let expected = format!(
        r#"{{ "a": "{} to\n{}",  "password":"{}", "n": 1e3 }}"#,
        placeholder("pattern-1", "ticket \"x1\""),
        placeholder("email", "bob@example.org"),
        placeholder("password", "hunter2"),
    );
    assert_eq!(out, expected);
}

/// A rule that took quadratic time would not come back from these.
#[test]
fn hostile_repetition_comes_to_an_end() {
    let redactor = exporter();
    for unit in [
        "token:",
        "eyJ",
        "password=\"",
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "://a:",
        "@a.",
        "\\",
        "token=token:",
        " -p",
        "curl -u a:",
        "cookie: a=b; ",
        "$6$",
        "-----END PRIVATE KEY-----\n",
        "aB3dE5fG7hI9",
        "aB3dE5fG7hI9jK1lM2nO/",
        "password,",
        "a,password\n",
        "password for bob ",
        "password was ",
        "user ",
        "user a pass ",
        "login is a / ",
        "the pin for ",
        "card 4111 ",
        "cvv ",
        "cookie: session=",
        "secret = \"",
    ] {
        let once = redactor
            .redact(&unit.repeat(10_000), &mut RedactionCounts::new())
            .into_owned();
        assert_eq!(
            redactor.redact(&once, &mut RedactionCounts::new()),
            once,
            "{unit}"
        );
    }
}

/// Text made of what rules look for, and of what could trip them.
fn fragments() -> impl Strategy<Value = String> {
    let secrets: Vec<String> = formats()
        .into_iter()
        .map(|(_, secret)| secret)
        .chain(
            contexts()
                .into_iter()
                .map(|(_, before, secret, after)| before + &secret + after),
        )
        .collect();
    let glue = prop::sample::select(vec![
        "\"",
        "\\",
        "\\\"",
        "'",
        "`",
        "=",
        ":",
        " ",
        "\n",
        "\\n",
        "\\u00e9",
        "é",
        "→",
        "]",
        "[REDACTED:",
        "[REDACTED:jwt:12ab]",
        "password",
        "token=",
        "secret:",
        "api_key",
        "://",
        "@",
        "a@b.co",
        "Bearer ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "+49 30 1234567",
        "123-45-6789",
        ",",
        "{",
        "}",
    ]);
    let piece = prop_oneof![
        prop::sample::select(secrets),
        glue.prop_map(str::to_owned),
        any::<String>()
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        fragments().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof![
            fragments(),
            Just("password".to_owned()),
            Just("token".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|pairs| pairs.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn custom() -> Redactor {
    let rules = RedactionRules {
        patterns: vec![
            r#"(?i)word\W+\S+"#.into(),
            r"\bKEY\w*".into(),
            r".u00".into(),
        ],
        ..RedactionRules::default()
    };
    Redactor::new(&rules).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn redacting_twice_is_redacting_once(text in fragments()) {
        for redactor in [redactor(), exporter(), custom()] {
            let once = redact(&redactor, &text).0;
            let (twice, rules) = redact(&redactor, &once);
            prop_assert_eq!(&twice, &once);
            prop_assert!(rules.is_empty());
        }
    }

    #[test]
    fn valid_json_stays_valid(value in json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let secrets = redact(&redactor(), &text).0;
        let export = exporter().redact_json(&text, &mut RedactionCounts::new()).into_owned();
        let own = custom().redact_json(&text, &mut RedactionCounts::new()).into_owned();
        for out in [secrets, export, own] {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{} → {}", text, out);
        }
    }

    #[test]
    fn no_planted_secret_survives(
        (_, secret) in prop::sample::select(formats()),
        before in "[a-z .,\n]{0,40}",
        after in "[ .,\n][a-z .,\n]{0,40}",
    ) {
        let text = format!("{before} {secret}{after}");
        prop_assert!(!redact(&redactor(), &text).0.contains(&secret));
    }
}

/// What the two redactors of a compaction are called.
fn named(rules: &RedactionRules) -> String {
    let at = |boundary| rules.redactor(boundary).unwrap();
    let archive = at(RedactionBoundary::Archive);
    fingerprint(
        &at(RedactionBoundary::Summary),
        rules.sinks.archive.then_some(&archive),
    )
}

#[test]
fn a_fingerprint_names_everything_that_redaction_does() {
    let rules = RedactionRules {
        patterns: vec!["alpha".into(), "beta".into()],
        allow: vec!["one".into(), "two".into()],
        ..RedactionRules::default()
    };
    let with = |change: fn(&mut RedactionRules)| {
        let mut changed = rules.clone();
        change(&mut changed);
        changed
    };
    let changed = [
        with(|r| r.enabled = false),
        with(|r| r.patterns.clear()),
        with(|r| r.patterns.push("gamma".into())),
        // `pattern-1` stands for another word then, and the view shows which.
        with(|r| r.patterns.reverse()),
        with(|r| r.foreign_patterns.push("gamma, of a project".into())),
        with(|r| r.allow.clear()),
        with(|r| r.sinks.archive = true),
        with(|r| r.sinks.summary_prompt = false),
    ];
    let names: BTreeSet<String> = changed.iter().chain([&rules]).map(named).collect();
    // Off everywhere and off in summaries come to the same.
    assert_eq!(names.len(), changed.len());
    assert_eq!(named(&changed[0]), named(&changed[7]));
    for same in [
        with(|_| {}),
        with(|r| r.allow.reverse()),
        // Neither a summary nor an archive has to do with them.
        with(|r| r.pii_deny.clear()),
        with(|r| r.sinks.export = false),
    ] {
        assert_eq!(named(&same), named(&rules));
    }
}

#[test]
fn a_fingerprint_knows_functions_by_their_names() {
    let with = |names: &[&str]| {
        let add = |made: Redactor, name: &&str| made.with_callback(name, Arc::new(|_: &str| None));
        fingerprint(&names.iter().fold(redactor(), add), None)
    };
    let names = [
        with(&[]),
        with(&["a"]),
        with(&["a", "b"]),
        with(&["b", "a"]),
    ];
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4);
    assert_eq!(with(&["a"]), names[1]);
}

#[test]
fn the_security_page_counts_what_is_tried() {
    let page = include_str!("../../../../SECURITY.md");
    let kinds = planted_secrets(0).len() + placed_secrets(0).len();
    let harmless = harmless_texts(0).len();
    for said in [
        format!("| {kinds} kinds of made-up secrets"),
        format!("| {harmless} kinds of strings that look drawn and are public"),
    ] {
        assert!(page.contains(&said), "SECURITY.md lacks: {said}");
    }
}

/// Sentences in which people give a password away, with `X` in its place.
#[test]
fn passwords_in_plain_sentences_are_found() {
    let secret = ["Birke", "Tal", "47"].join("-");
    let marked = ["Birke", "&", "Tal47"].concat();
    let rows = [
        "The password for the mail server is X.",
        "password for the test host: X",
        "The passphrase of the signing key is X",
        "La contraseña de la base es X.",
        "Le mot de passe du compte est X.",
        "Das Passwort für den Server ist X.",
        "пароль от сервера: X",
        "I changed the root password to X",
        "Set MYSQL_PASSWORD to X",
        "Please reset the admin password to X.",
    ];
    for row in rows {
        let text = row.replace(
            'X',
            if row.contains("mot de") {
                &marked
            } else {
                &secret
            },
        );
        let (out, _) = redact(&redactor(), &text);
        assert!(out.contains("[REDACTED:password"), "{out}");
        assert!(!out.contains("Birke") && !out.contains("47"), "{out}");
    }
    let (out, _) = redact(&redactor(), &format!("sshpass -p '{marked}' ssh a@b"));
    assert!(!out.contains("Tal"), "{out}");
}

/// Sentences about passwords that hold none.
#[test]
fn sentences_about_passwords_stay() {
    let rows = [
        "The password for the mail server is stored in the vault.",
        "The password for the service is required by RFC-8252.",
        "password for the user: required",
        "The token of the parser is Base64-encoded.",
        "Set the password to something longer.",
        "I changed the password to be optional.",
        "The password of the user is hashed with SHA256-based crypt.",
        "Reset the password to the default value.",
    ];
    for row in rows {
        assert_eq!(redact(&redactor(), row), (row.to_owned(), vec![]));
    }
}
