//! Holds counts against bpe-openai, which is built on the same vocabularies and on the encodings' own
//! patterns.

use std::path::PathBuf;
use std::{env, fs};

use bpe_openai::Tokenizer;
use compact_bpe::Encoding;
use proptest::prelude::*;

const ENCODINGS: [(Encoding, &str); 2] = [(Encoding::O200k, "o200k"), (Encoding::Cl100k, "cl100k")];

fn oracle(encoding: Encoding) -> &'static Tokenizer {
    match encoding {
        Encoding::O200k => bpe_openai::o200k_base(),
        Encoding::Cl100k => bpe_openai::cl100k_base(),
    }
}

fn assert_equal_counts(text: &str) {
    for (encoding, _) in ENCODINGS {
        let counts = (encoding.count(text), oracle(encoding).count(text));
        assert_eq!(counts.0, counts.1, "{encoding:?} of {text:?}");
    }
}

/// `UPDATE_EXPECT=1` writes the vocabularies from the oracle's.
#[test]
fn the_vocabularies_are_those_of_the_oracle() {
    for (encoding, name) in ENCODINGS {
        let bpe = &oracle(encoding).bpe;
        let mut expected = Vec::new();
        for token in 0..bpe.num_tokens() as u32 {
            let bytes = bpe.token_bytes(token);
            expected.push(u8::try_from(bytes.len()).expect("a token of at most 255 bytes"));
            expected.extend_from_slice(bytes);
        }
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("data/{name}.vocabulary"));
        if env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &expected).expect("the data folder is writable");
        }
        assert!(
            fs::read(&path).expect("the data is there") == expected,
            "{name} differs"
        );
    }
}

#[test]
fn every_token_by_itself_counts_as_the_oracle_says() {
    let bpe = &oracle(Encoding::O200k).bpe;
    for token in 0..bpe.num_tokens() as u32 {
        assert_equal_counts(&String::from_utf8_lossy(bpe.token_bytes(token)));
    }
}

#[test]
fn every_character_counts_as_the_oracle_says_wherever_it_stands() {
    for number in (0..0x11_0000u32).filter(|number| number % 0x10000 < 0x3000 || number % 7 == 0) {
        if let Some(character) = char::from_u32(number) {
            assert_equal_counts(&format!(
                "{character} a{character}B  {character}'s{character}\n{character}1"
            ));
        }
    }
}

/// Unbroken runs, in which nearly all neighbours can be merged.
#[test]
fn runs_without_a_break_count_as_the_oracle_says() {
    let jumble = |length: usize| -> String {
        let letter = |at: usize| char::from(b'a' + ((at * 7919 + at / 3) % 26) as u8);
        (0..length).map(letter).collect()
    };
    for unit in [
        "a", " ", "\n", "日", "=-", "😀", "ab", "\u{301}", "'s", "\r\n", "0", "aB", "é",
    ] {
        for length in [1, 2, 3, 50, 63, 64, 65, 300, 100_000] {
            assert_equal_counts(&unit.repeat(length));
        }
    }
    for length in [10, 63, 64, 65, 1_000, 300_000] {
        assert_equal_counts(&jumble(length));
    }
}

/// Characters of every kind that a pattern asks for, common ones often.
fn text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        " the",
        "Function",
        "HTTPServer",
        "don't",
        "WE'LL",
        "'S",
        "i'ſ",
        "\n\n",
        "\r\n",
        "  ",
        "\t",
        " \n ",
        "12345",
        "٣٤",
        "½",
        "日本語",
        "한글",
        "ア",
        "Ωmega",
        "ÉCOLE",
        "ǅ",
        "ʰ",
        "\u{301}",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\u{2028}",
        "😀",
        "👩\u{200d}💻",
        "//",
        "/*",
        "==",
        "{\"",
        "\\n",
        "</",
        " {",
        "...",
        "A",
        "a",
        "B",
        "_",
        "-",
        "<|endoftext|>",
    ]);
    let piece = prop_oneof![8 => words.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from), 1 => "\\PC{0,8}"];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_text_counts_as_the_oracle_says(text in text()) {
        assert_equal_counts(&text);
    }
}
