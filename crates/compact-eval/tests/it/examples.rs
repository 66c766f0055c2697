use std::path::Path;

use compact_eval::example;
use compact_formats::{Format, TranscriptScope, parse};

/// `cargo xtask examples` brings the folder up to date.
#[test]
fn the_committed_examples_are_what_the_generator_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in example::all_files() {
        let committed = std::fs::read_to_string(folder.join(file.name)).unwrap_or_default();
        assert!(
            committed == file.content,
            "examples/{} is out of date: cargo xtask examples",
            file.name
        );
    }
}

#[test]
fn every_example_is_read_as_what_it_is_without_a_complaint() {
    let wanted = [
        ("coding-session.jsonl", Format::ClaudeCode),
        ("support-session.json", Format::OpenAiChat),
        ("research-session.jsonl", Format::CodexRollout),
    ];
    let files = example::all_files();
    for (name, format) in wanted {
        let file = files.iter().find(|file| file.name == name).unwrap();
        let parsed = parse(file.content.clone(), None, TranscriptScope::Live).unwrap();
        assert_eq!(parsed.document.format(), format);
        assert_eq!(parsed.problems, [], "{name}");
    }
}
