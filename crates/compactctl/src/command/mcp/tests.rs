#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use compact::recall::fence_text;
use proptest::prelude::*;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Value, json};

use super::page::{PAGE, TextPage};
use super::tool::{TOOLS, ToolEntry, failure_result};
use crate::app::App;
use crate::args::{Cli, GlobalArgs};

/// A server's world with nothing in it.
struct Empty {
    app: App,
    global: GlobalArgs,
    _dir: tempfile::TempDir,
}

impl Empty {
    fn new() -> Empty {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("compact.yaml");
        let store = dir.path().join("store");
        std::fs::write(&config, format!("storage:\n  path: {}\n", store.display())).unwrap();
        let config = config.display().to_string();
        let cli: Cli = clap::Parser::parse_from(["compactctl", "mcp", "--config", &config, "-q"]);
        Empty {
            app: App::load(&cli.global).unwrap(),
            global: cli.global,
            _dir: dir,
        }
    }

    fn call(&self, name: &str, arguments: &Value) -> CallToolResult {
        let offer = TOOLS.iter().find(|offer| offer.name == name).unwrap();
        let arguments: JsonObject = arguments.as_object().unwrap().clone();
        match (offer.call)(arguments, &self.app, &self.global) {
            Ok(result) => result,
            Err(failure) => failure_result(&failure),
        }
    }

    /// The words of a call that must be refused.
    fn refused(&self, name: &str, arguments: &Value) -> String {
        let result = self.call(name, arguments);
        assert_eq!(result.is_error, Some(true), "{name} {arguments}");
        let text = result.content[0].as_text().unwrap().text.clone();
        assert!(text.contains("\nhelp: "), "no way on: {text}");
        text
    }
}

fn schemas() -> Vec<(&'static str, Value)> {
    let described = |offer: &ToolEntry| (offer.name, json!((offer.describe)()));
    TOOLS.iter().map(described).collect()
}

#[test]
fn each_tool_says_when_to_use_it_and_what_it_takes_and_gives() {
    let mut table = String::new();
    for (name, tool) in schemas() {
        let about = tool["description"].as_str().unwrap();
        assert!((60..400).contains(&about.len()), "{name}: {}", about.len());
        let keys = |schema: &Value| {
            let properties = schema["properties"].as_object().unwrap();
            properties.keys().cloned().collect::<Vec<_>>().join(" ")
        };
        let (takes, gives) = (keys(&tool["inputSchema"]), keys(&tool["outputSchema"]));
        table.push_str(&format!("{name}: {takes} -> {gives}\n"));
    }
    expect_test::expect![[r#"
        recall: query session after latest limit offset -> note hits next_offset has_all_words unknown_words unreadable
        remember: session offset -> note session_id receipt_id summary_version created_at text offset total_chars next_offset
        expand: pointer session grep lines around raw offset -> note pointer session_id role heading exact beside text offset total_chars next_offset
        compact: path budget note output session session_index whole -> outcome receipt_id session_id tokens_before tokens_after budget retention summary_version output reason
    "#]].assert_eq(&table);
}

/// Some clients know no widths of numbers, no references and no lists of types.
#[test]
fn schemas_are_plain() {
    for (name, tool) in schemas() {
        let text = tool.to_string();
        for word in ["\"format\":\"", "$ref", "null", "$schema"] {
            assert!(!text.contains(word), "{name} has {word}: {text}");
        }
        for side in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[side]["type"], "object");
            for (key, property) in tool[side]["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{name}: {key}");
            }
        }
    }
}

#[test]
fn bad_arguments_are_refused_with_what_to_do() {
    let empty = Empty::new();
    for (name, arguments, says) in [
        ("recall", json!({}), "missing field `query`"),
        ("recall", json!({"q": "x"}), "query, session (optional)"),
        ("recall", json!({"query": 7}), "expected a string"),
        ("recall", json!({"query": "-"}), "query"),
        ("recall", json!({"query": "x", "limit": 0}), "from 1 to 50"),
        (
            "recall",
            json!({"query": "x", "offset": 100_000}),
            "too far",
        ),
        ("recall", json!({"query": "x".repeat(9000)}), "at most 2000"),
        ("recall", json!({"query": "port"}), "nothing was compacted"),
        ("expand", json!({"pointer": "nonsense"}), "nonsense"),
        ("expand", json!({"pointer": "a#1", "offset": -1}), "offset"),
        ("remember", json!({}), "nothing was compacted"),
        ("remember", json!({"session": "none"}), "'none'"),
        ("compact", json!({"path": "-"}), "absolute path"),
        ("compact", json!({"path": ""}), "absolute path"),
        ("compact", json!({"path": "/dev/zero"}), "is not a file"),
        (
            "compact",
            json!({"path": "/no/such"}),
            "cannot read /no/such",
        ),
        (
            "compact",
            json!({"path": env!("CARGO_MANIFEST_DIR").to_owned() + "/Cargo.toml", "output": "/dev/stdout"}),
            "no name for a view",
        ),
    ] {
        let text = empty.refused(name, &arguments);
        assert!(text.contains(says), "{name} {arguments}: {text}");
    }
}

/// Whatever a client or a transcript calls things.
#[test]
fn what_is_said_about_a_mistake_is_short() {
    let empty = Empty::new();
    let long = "ä".repeat(1_000_000);
    for (name, arguments) in [
        ("remember", json!({"session": long})),
        ("expand", json!({"pointer": long})),
        ("compact", json!({"path": long})),
        ("recall", json!({long: "x"})),
    ] {
        let text = empty.refused(name, &arguments);
        assert!(text.chars().count() < 4_100, "{name}");
    }
}

#[test]
fn the_end_of_a_text_is_told_from_behind_it() {
    let whole = "ä".repeat(PAGE + 1);
    let first = TextPage::starting_at(&whole, 0).unwrap();
    assert_eq!(first.next_offset, Some(PAGE as u64));
    let last = TextPage::starting_at(&whole, PAGE as u64).unwrap();
    let want = TextPage {
        text: "ä".to_owned(),
        offset: PAGE as u64,
        total_chars: PAGE as u64 + 1,
        next_offset: None,
    };
    assert_eq!(last, want);
    assert!(TextPage::starting_at(&whole, PAGE as u64 + 1).is_err());
    assert_eq!(TextPage::starting_at("", 0).unwrap().text, "");
}

proptest! {
    /// Pages laid end to end are the text, and none is larger than a page.
    #[test]
    fn pages_make_up_the_whole(seed in "[a-zä`\n]{1,40}", times in 1usize..3000) {
        let whole = seed.repeat(times);
        let mut joined = String::new();
        let mut offset = Some(0);
        while let Some(at) = offset {
            let page = TextPage::starting_at(&whole, at).unwrap();
            prop_assert!(page.text.chars().count() <= PAGE);
            joined.push_str(&page.text);
            offset = page.next_offset;
        }
        prop_assert_eq!(joined, whole);
    }

    /// No line of a quotation ends it early.
    #[test]
    fn no_text_leaves_its_fence(text in "[a`~ \n]{0,60}") {
        let quoted = fence_text(&text);
        let fence = quoted.lines().next().unwrap();
        let inside = quoted.strip_prefix(&format!("{fence}\n")).unwrap();
        let inside = inside.strip_suffix(&format!("{fence}\n")).unwrap();
        prop_assert_eq!(inside.trim_end_matches('\n'), text.trim_end_matches('\n'));
        prop_assert!(inside.ends_with('\n'));
        prop_assert!(fence.len() >= 3 && !text.contains(fence));
    }
}
