use std::collections::BTreeSet;

use super::*;

fn window(model: &str) -> u64 {
    Window::for_model(None, Some(model)).tokens.0
}

#[test]
fn the_seed_table_holds() {
    let table = [
        ("claude_3_5_sonnet", 200_000),
        ("claude_3_opus", 200_000),
        ("claude_3_haiku", 200_000),
        ("claude_4_sonnet", 200_000),
        ("claude_4_opus", 200_000),
        ("gpt_4o", 128_000),
        ("gpt_4_turbo", 128_000),
        ("gpt_4_1", 1_047_576),
        ("o1", 200_000),
        ("o3", 200_000),
        ("gemini_pro", 1_000_000),
        ("gemini_flash", 1_000_000),
        ("no-such-model", 128_000),
    ];
    for (model, tokens) in table {
        assert_eq!(window(model), tokens, "{model}");
    }
}

#[test]
fn explicit_beats_registry_beats_default() {
    let of = |explicit: Option<u64>, model| {
        let window = Window::for_model(explicit.map(Tokens), model);
        (window.tokens.0, window.source)
    };
    assert_eq!(of(Some(9), Some("gpt-4o")), (9, WindowSource::Explicit));
    assert_eq!(
        of(None, Some("gpt-4o")),
        (128_000, WindowSource::Registry("gpt-4o"))
    );
    assert_eq!(of(None, Some("mystery")), (128_000, WindowSource::Default));
    assert_eq!(of(None, None), (128_000, WindowSource::Default));
}

#[test]
fn names_are_found_however_they_are_spelled() {
    let found = |name: &str| find_model(name).map(|m| m.name);
    for (spelled, name) in [
        ("GPT-4o", "gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("gpt-4o-2031-01-01", "gpt-4o"),
        ("gpt-5-reasoning", "gpt-5"),
        ("gpt-5.2-preview", "gpt-5.2"),
        ("some-host/deep/path/gpt-5.2", "gpt-5.2"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4-5-20310101", "claude-sonnet-4-5"),
        ("claude-opus-4.5", "claude-opus-4-5"),
        ("claude-4.5-opus", "claude-opus-4-5"),
        ("claude-4.5-opus-latest", "claude-opus-4-5"),
        (
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
        (
            "mars.anthropic.claude-sonnet-4-5-20310101-v9:0",
            "claude-sonnet-4-5",
        ),
        ("anthropic/claude-sonnet-4.5:thinking", "claude-sonnet-4-5"),
        ("claude-opus-4-5@20310101", "claude-opus-4-5"),
        ("models/gemini-2.5-pro-next", "gemini-2.5-pro"),
        (
            "ft:gpt-4o-mini-2024-07-18:acme::x",
            "ft:gpt-4o-mini-2024-07-18",
        ),
        ("ft:gpt-5:acme::x", "gpt-5"),
        ("azure/gpt-5", "azure/gpt-5"),
        ("deepseek-chat", "deepseek-chat"),
        ("o1-next", "o1"),
    ] {
        assert_eq!(found(spelled), Some(name), "{spelled}");
    }
}

#[test]
fn hosts_and_dates_do_not_change_a_window() {
    for (spelled, input) in [
        ("gpt-4o-mini-2024-07-18", 128_000),
        ("openai/gpt-5.1-codex", 272_000),
        ("azure/gpt-5.1-codex", 272_000),
        ("gpt-5.4-2026-03-05", 922_000),
        ("anthropic/claude-3.7-sonnet:thinking", 200_000),
        ("claude-3-5-sonnet-latest", 200_000),
        ("vertex_ai/claude-opus-4@20250514", 200_000),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 262_144),
        ("ollama/llama3.1:8b", 128_000),
    ] {
        let found = find_model(spelled).map(|model| model.input);
        let about = |input: u64| found.is_some_and(|found| found.abs_diff(input) * 20 < input);
        assert!(about(input), "{spelled}: {found:?}");
    }
}

#[test]
fn models_that_bind_their_thinking_are_marked() {
    for (name, binds) in [
        ("claude-opus-5-5", true),
        ("anthropic/claude-sonnet-5.5", true),
        ("us.anthropic.claude-fable-5-1", true),
        ("claude-haiku-5-5-20260901", true),
        ("claude-mythos-5-1", true),
        ("claude-opus-4-8", false),
        ("claude-sonnet-5", false),
        ("gpt-5", false),
    ] {
        assert_eq!(find_model(name).unwrap().binds_thinking, binds, "{name}");
    }
}

#[test]
fn part_of_a_word_is_no_match() {
    for name in [
        "turbo1",
        "foo1",
        "o10",
        "proto3",
        "gpt-4omni",
        "my-o1",
        "",
        "-",
        ".",
    ] {
        assert_eq!(find_model(name), None, "{name}");
    }
}

#[test]
fn the_registry_is_sound() {
    let models = models();
    assert!(models.len() >= 4_000, "{}", models.len());
    let rows = include_str!("../../data/models.json")
        .matches("\n[")
        .count();
    assert!(models.len() >= rows, "{rows} rows, {} models", models.len());
    let mut names = BTreeSet::new();
    for model in models {
        assert!(model.input >= 1_000, "{}", model.name);
        let is_above = |total| total >= model.input;
        assert!(model.total.is_none_or(is_above), "{}", model.name);
        for name in model.aliases.iter().chain([&model.name]) {
            assert!(names.insert(*name), "{name} is listed twice");
            assert_eq!(find_model(name).as_ref(), Some(model));
        }
    }
    let share = |has: fn(&ModelInfo) -> bool| models.iter().filter(|m| has(m)).count();
    assert!(share(|m| m.output.is_some()) >= 2_000);
    assert!(share(|m| m.price.is_some()) >= 2_000);
    assert!(share(|m| m.price.is_some_and(|p| p.cache_read.is_some())) >= 500);
    assert!(share(|m| m.total.is_some()) >= 40);
}

#[test]
fn every_override_says_something() {
    let text = include_str!("../../data/overrides.json");
    let by_hand: serde_json::Value = serde_json::from_str(text).unwrap();
    for row in by_hand["models"].as_array().unwrap() {
        let model = find_model(row[0].as_str().unwrap()).unwrap();
        assert_eq!(
            (model.name, model.input),
            (row[0].as_str().unwrap(), row[1].as_u64().unwrap())
        );
    }
    for (alias, name) in by_hand["aliases"].as_object().unwrap() {
        assert_eq!(find_model(alias).unwrap().name, name.as_str().unwrap());
    }
}
