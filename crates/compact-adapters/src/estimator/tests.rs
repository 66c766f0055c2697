use std::time::{Duration, Instant};

use compact_core::message::{Block, Entry, EntryId, Meta, Role};
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
        let counts = (Bpe::Cl100k.units(text).0, Bpe::O200k.units(text).0);
        assert_eq!(counts, (cl100k, o200k), "{text:?}");
    }
}

#[test]
fn an_entry_costs_its_text_and_its_framing() {
    let entry = Entry {
        id: EntryId("e".to_owned()),
        role: Role::User,
        blocks: vec![Block::Text("hello world".to_owned())],
        meta: Meta::default(),
    };
    assert_eq!(Bpe::O200k.entry(&entry), Units(2 + 4));
}

#[test]
fn the_model_decides_what_auto_means() {
    for (model, bpe) in [
        ("gpt-4o-mini", Bpe::O200k),
        ("gpt-4.1", Bpe::O200k),
        ("GPT-5-reasoning", Bpe::O200k),
        ("o3", Bpe::O200k),
        ("claude-opus-4", Bpe::O200k),
        ("", Bpe::O200k),
        ("gpt-4", Bpe::Cl100k),
        ("azure/gpt-4-32k", Bpe::Cl100k),
        ("ft:gpt-4-0613:acme::abc", Bpe::Cl100k),
        ("openai:gpt-3.5-turbo", Bpe::Cl100k),
    ] {
        assert_eq!(Bpe::for_model(model), bpe, "{model}");
        assert_eq!(Choice::Auto.estimator(Some(model)).name(), bpe.name());
    }
}

#[test]
fn names_lead_to_estimators() {
    let named: Vec<String> = Choice::ALL
        .iter()
        .map(|choice| by_name(choice.as_str(), None).unwrap().name().to_owned())
        .collect();
    assert_eq!(named, ["o200k", "o200k", "cl100k", "heuristic", "chars4"]);
    assert_eq!(
        by_name("gpt2", None).err().unwrap().to_string(),
        "unknown estimator `gpt2`: use auto, o200k, cl100k, heuristic or chars4"
    );
}

#[test]
fn pathological_texts_are_counted_quickly() {
    let texts = [
        "a".repeat(200_000),
        " ".repeat(200_000),
        "\n\u{301}".repeat(60_000),
        "あ".repeat(60_000),
    ];
    Bpe::O200k.units("load the tables first");
    let start = Instant::now();
    for text in &texts {
        assert!(Bpe::O200k.units(text).0 > 100);
    }
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
}

proptest! {
    #[test]
    fn any_text_has_at_most_a_token_per_byte(text: String) {
        for bpe in [Bpe::O200k, Bpe::Cl100k] {
            let units = bpe.units(&text).0;
            prop_assert!(units <= text.len() as u64 && (units > 0) != text.is_empty());
        }
    }
}
