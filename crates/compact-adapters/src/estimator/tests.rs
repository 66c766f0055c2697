use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};
use compact_core::token::EstimatorExt;
use proptest::prelude::*;

use super::*;

/// Counts that OpenAI's cookbook gives for both encodings.
#[test]
fn counts_are_those_of_tiktoken() {
    for (text, cl100k, o200k) in [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 9, 8),
        ("<|endoftext|>", 7, 7),
    ] {
        let counts = (
            BpeEstimator::Cl100k.count_units(text).0,
            BpeEstimator::O200k.count_units(text).0,
        );
        assert_eq!(counts, (cl100k, o200k), "{text:?}");
    }
}

#[test]
fn an_entry_costs_its_text_and_its_framing() {
    let entry = Entry {
        id: EntryId("e".to_owned()),
        role: Role::User,
        blocks: vec![Block::Text("hello world".to_owned())],
        meta: EntryMeta::default(),
    };
    assert_eq!(BpeEstimator::O200k.count_entry(&entry), Units(2 + 4));
}

#[test]
fn the_model_decides_what_auto_means() {
    for (model, bpe) in [
        ("gpt-4o-mini", BpeEstimator::O200k),
        ("gpt-4.1", BpeEstimator::O200k),
        ("GPT-5-reasoning", BpeEstimator::O200k),
        ("o3", BpeEstimator::O200k),
        ("claude-opus-4", BpeEstimator::O200k),
        ("", BpeEstimator::O200k),
        ("gpt-4", BpeEstimator::Cl100k),
        ("azure/gpt-4-32k", BpeEstimator::Cl100k),
        ("ft:gpt-4-0613:acme::abc", BpeEstimator::Cl100k),
        ("openai:gpt-3.5-turbo", BpeEstimator::Cl100k),
    ] {
        assert_eq!(BpeEstimator::for_model(model), bpe, "{model}");
    }
    for (model, name) in [
        ("gpt-5", "o200k"),
        ("gpt-4", "cl100k"),
        ("claude-opus-4", "o200kx1.18"),
        ("us.anthropic.claude-sonnet-5-5", "o200kx1.18"),
        ("claude-of-tomorrow", "o200kx1.18"),
        ("gemini-2.5-pro", "o200kx1.20"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "o200kx1.06"),
        ("mistral-large-latest", "o200kx1.10"),
        ("deepseek-chat", "o200kx1.05"),
        ("meta-llama/Llama-3.3-70B-Instruct", "o200k"),
        ("some-model", "o200k"),
    ] {
        assert_eq!(
            EstimatorChoice::Auto.build_estimator(Some(model)).name(),
            name,
            "{model}"
        );
    }
}

#[test]
fn a_factor_is_applied_once_over_the_whole() {
    let scaled = by_name("o200kx1.18", None).unwrap();
    assert_eq!(scaled.count_units("hello world"), Units(236));
    assert_eq!(scaled.to_tokens(Units(236)).0, 3);
    assert_eq!(scaled.to_tokens(Units(236 * 50)).0, 118);
    let hello = Entry::from_text("e", Role::User, "hello world");
    assert_eq!(scaled.count_entry(&hello), Units((2 + 4) * 118));
}

#[test]
fn a_receipt_finds_its_factor_again() {
    for name in ["o200kx1.18", "o200kx0.95", "o200kx3.99"] {
        assert_eq!(by_name(name, Some("gpt-4")).unwrap().name(), name);
    }
    assert_eq!(by_name("o200k×1.20", None).unwrap().name(), "o200kx1.20");
    for name in [
        "o200kx",
        "o200kx1",
        "o200kx1.2",
        "o200kx9.00",
        "o200kx-1.00",
        "cl100k×1.10",
        "o200kx1.1é",
    ] {
        assert!(by_name(name, None).is_err(), "{name}");
    }
}

#[test]
fn names_lead_to_estimators() {
    let named: Vec<String> = EstimatorChoice::ALL
        .iter()
        .map(|choice| by_name(choice.as_str(), None).unwrap().name().to_owned())
        .collect();
    assert_eq!(named, ["o200k", "o200k", "cl100k", "heuristic", "chars4"]);
    assert_eq!(
        by_name("gpt2", None).err().unwrap().to_string(),
        "unknown estimator `gpt2`: use auto, o200k, cl100k, heuristic or chars4"
    );
}

/// A counter that took quadratic time would not come back from these.
#[test]
fn pathological_texts_are_counted() {
    let texts = [
        "a".repeat(200_000),
        " ".repeat(200_000),
        "\n\u{301}".repeat(60_000),
        "あ".repeat(60_000),
    ];
    for text in &texts {
        assert!(BpeEstimator::O200k.count_units(text).0 > 100);
    }
}

proptest! {
    #[test]
    fn any_text_has_at_most_a_token_per_byte(text: String) {
        for bpe in [BpeEstimator::O200k, BpeEstimator::Cl100k] {
            let units = bpe.count_units(&text).0;
            prop_assert!(units <= text.len() as u64 && (units > 0) != text.is_empty());
        }
    }
}

#[test]
fn a_long_text_costs_the_same_the_second_time() {
    let texts: Vec<String> = (0..300)
        .map(|n| format!("line {n} of a log\n").repeat(1_000))
        .collect();
    for encoding in [BpeEstimator::O200k, BpeEstimator::Cl100k] {
        for text in texts.iter().chain(texts.iter().rev()) {
            let exact = encoding.encoding().count(text) as u64;
            assert_eq!(encoding.count_units(text), Units(exact));
        }
    }
}
