use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

/// The beginning of a picture of 1000 × 500.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAA+gAAAH0CAIAAAA=";
const GIF: &str = "R0lGODlhQAHIAAAAAA==";
const JPEG: &str = "/9j/4AAQSkZJRgAAAAAAAAAAAAD/4QAoRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUX/xAAEaGj//8IAEQgCWAMgAw==";
const WEBP_X: &str = "UklGRgAAAABXRUJQVlA4WAoAAAAAAAAAfwcANwQA";
const WEBP: &str = "UklGRgAAAABXRUJQVlA4IAoAAAAAAACdASqAAuAB";
/// The same, with the bits set that ask for it to be shown larger.
const WEBP_SCALED: &str = "UklGRgAAAABXRUJQVlA4IAoAAAAAAACdASqAQuAB";
const WEBP_L: &str = "UklGRgAAAABXRUJQVlA4TAoAAAAvY0AMAA==";

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn size(text: &str) -> Option<(u64, u64)> {
    size_of(&raw(&format!("\"{text}\""))).map(|size| (size.width, size.height))
}

#[test]
fn headers_tell_the_size() {
    for (data, expected) in [
        (PNG, (1000, 500)),
        (GIF, (320, 200)),
        (JPEG, (800, 600)),
        (WEBP_X, (1920, 1080)),
        (WEBP, (640, 480)),
        (WEBP_SCALED, (640, 480)),
        (WEBP_L, (100, 50)),
    ] {
        assert_eq!(size(data), Some(expected));
        assert_eq!(size(&format!("data:image/x;base64,{data}")), Some(expected));
        assert_eq!(size(&data.replace('/', "\\/")), Some(expected));
        // Cut short, it says nothing.
        let torn: String = data.chars().take(12).collect();
        assert_eq!(size(&torn), None);
    }
    for none in [
        "",
        "https://example.com/a.png",
        "data:image/png,abc",
        "AAAA",
        "{}",
    ] {
        assert_eq!(size(none), None, "{none}");
    }
}

#[test]
fn providers_charge_by_their_own_formula() {
    let of = |width, height| Some(ImageSize { width, height });
    for (size, openai, anthropic, gemini) in [
        // OpenAI's and Google's own examples: 1024², 2048 × 4096, 960 × 540.
        (of(1024, 1024), 765, 1399, 1032),
        (of(2048, 4096), 1105, 1600, 4644),
        (of(960, 540), 765, 692, 1548),
        (of(200, 200), 255, 54, 258),
        (of(1, 1), 255, 1, 258),
        (None, 765, 1600, 258),
    ] {
        let found = [
            MediaPricing::OpenAi,
            MediaPricing::Anthropic,
            MediaPricing::Gemini,
        ]
        .map(|p| p.image_tokens(size));
        assert_eq!(found, [openai, anthropic, gemini], "{size:?}");
    }
}

#[test]
fn parts_say_whose_they_are() {
    for (part, tokens) in [
        (
            format!(
                r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{PNG}"}}}}"#
            ),
            425,
        ),
        (
            format!(
                r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{PNG}","detail":"low"}}}}"#
            ),
            85,
        ),
        (
            format!(r#"{{"type":"input_image","image_url":"data:image/png;base64,{PNG}"}}"#),
            425,
        ),
        (
            r#"{"type":"input_image","detail":"low","image_url":"https://a.b/c.png"}"#.to_owned(),
            85,
        ),
        (r#"{"type":"input_image","file_id":"f"}"#.to_owned(), 765),
        (
            format!(r#"{{"type":"image","source":{{"type":"base64","data":"{PNG}"}}}}"#),
            667,
        ),
        (
            r#"{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}"#.to_owned(),
            1600,
        ),
    ] {
        assert_eq!(image_part_tokens(&raw(&part)), tokens, "{part}");
    }
}

#[test]
fn gemini_names_its_data_in_either_case() {
    let media = |label: &str, tokens| {
        Some(Block::Media {
            label: label.to_owned(),
            tokens,
        })
    };
    for (part, expected) in [
        (
            format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}"#),
            media("image/png", 2064),
        ),
        (
            format!(r#"{{"inline_data":{{"mime_type":"image/gif","data":"{GIF}"}}}}"#),
            media("image/gif", 258),
        ),
        (
            r#"{"fileData":{"mimeType":"application/pdf","fileUri":"https://a.b/c"}}"#.to_owned(),
            media("application/pdf", 258),
        ),
        (
            format!(
                r#"{{"inlineData":{{"mimeType":"audio/wav","data":"{}"}}}}"#,
                "A".repeat(998)
            ),
            media("audio/wav", 10),
        ),
        (r#"{"text":"no data"}"#.to_owned(), None),
    ] {
        assert_eq!(gemini_media(&raw(&part)), expected, "{part}");
    }
}

#[test]
fn a_model_tells_whose_formula_it_is() {
    let url = raw(&format!(r#""data:image/png;base64,{PNG}""#));
    for (model, tokens) in [
        ("claude-sonnet-4-5", 667),
        ("google/gemini-3-pro", 2064),
        ("gpt-5", 425),
    ] {
        let pricing = MediaPricing::of_model(model);
        assert_eq!(
            pricing.data_tokens("image/png", Some(&url)),
            tokens,
            "{model}"
        );
    }
    assert_eq!(MediaPricing::OpenAi.data_tokens("text/plain", None), 0);
}

#[test]
fn documents_cost_by_the_page() {
    assert_eq!(MediaPricing::Anthropic.document_tokens(0), 2_250);
    assert_eq!(MediaPricing::Anthropic.document_tokens(660_000), 22_500);
    assert_eq!(MediaPricing::Gemini.document_tokens(660_000), 2_580);
}

proptest! {
    #[test]
    fn any_bytes_are_an_image_or_none(bytes: Vec<u8>, mark in 0..7_usize) {
        let marks: [&[u8]; 7] = [b"", b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8", b"RIFFxxxxWEBPVP8X", b"RIFFxxxxWEBPVP8 ", b"RIFFxxxxWEBPVP8L"];
        let whole = [marks[mark], &bytes].concat();
        if let Some(size) = ImageHeader(&whole).size() {
            for pricing in [MediaPricing::OpenAi, MediaPricing::Anthropic, MediaPricing::Gemini] {
                pricing.image_tokens(Some(size));
            }
        }
    }
}
