use super::*;
use crate::message::Role;
use crate::token::{Chars4, Heuristic};

const AT: ClipPointer<'static> = ClipPointer {
    receipt: "0123456789abcdef",
    ordinal: 57,
};

#[test]
fn a_long_text_keeps_head_and_tail_and_says_where_the_whole_is() {
    let whole = format!("HEAD{}TAIL", "x".repeat(5000));
    let cut = clip_text(&whole, Units(200), &Chars4, AT).unwrap();
    assert!(cut.starts_with("HEAD") && cut.ends_with("TAIL"), "{cut}");
    assert!(cut.contains("chars cut: 0123456789ab#57"), "{cut}");
    assert!(cut.chars().count() <= 200);
}

#[test]
fn a_text_is_cut_between_words_where_a_blank_is_near() {
    let whole = "one message number thirty-seven in a section ".repeat(40);
    let words: Vec<&str> = whole.split_whitespace().collect();
    for limit in 160..260 {
        let cut = clip_text(&whole, Units(limit), &Chars4, AT).unwrap();
        let (head, rest) = cut.split_once(" […").unwrap();
        let (said, tail) = rest.split_once("…] ").unwrap();
        let mut kept = head.split_whitespace().chain(tail.split_whitespace());
        assert!(kept.all(|word| words.contains(&word)), "{cut}");
        let shown = head.chars().count() + tail.chars().count();
        let left_out = whole.chars().count() - shown;
        assert!(said.starts_with(&format!("{left_out} chars")), "{cut}");
        assert!(
            cut.chars().count() as u64 + 2 * WORD as u64 >= limit,
            "{cut}"
        );
    }
}

#[test]
fn a_text_that_fits_is_left_alone() {
    assert_eq!(clip_text("short", Units(200), &Chars4, AT), None);
}

/// A cut that would hide less than its own words take is none.
#[test]
fn a_text_of_which_hardly_anything_would_go_is_left_alone() {
    let whole = "The build is done; all 42 tests pass, two skipped.";
    assert_eq!(clip_text(whole, Units(45), &Chars4, AT), None);
    let alone = clip_text(whole, Units(0), &Chars4, AT).unwrap();
    assert_eq!(alone, " […50 chars cut: 0123456789ab#57…]");
    assert_eq!(clip_text("All 42 tests pass.", Units(0), &Chars4, AT), None);
    // What is cut hides more than the marker says.
    let request = "Compare with the base branch and list what changed. ".repeat(8);
    let cut = clip_text(&request, Units(300), &Chars4, AT).unwrap();
    assert!(cut.chars().count() <= request.chars().count() - 36, "{cut}");
}

/// Two half sentences around a pointer tell less than the message, for hardly fewer tokens.
#[test]
fn a_short_message_is_whole_or_its_pointer() {
    let whole = "The new test TestFutureRefill covers it; I also made the bucket take a clock, so that a test can \
        turn it back, and the refill ignores times before the last one (it used now()) as well.";
    for limit in [40, 80, 120, 180] {
        assert_eq!(clip_message(whole, Units(limit), &Chars4, AT), None);
    }
    let alone = clip_message(whole, Units(10), &Chars4, AT).unwrap();
    assert!(alone.starts_with(" […"), "{alone}");
    let long = format!("{whole} {whole} {whole}");
    for limit in 40..600 {
        let Some(cut) = clip_message(&long, Units(limit), &Chars4, AT) else {
            assert!(limit > 300, "{limit}");
            continue;
        };
        let (head, rest) = cut.split_once(" […").unwrap();
        let (_, tail) = rest.split_once("…]").unwrap();
        let shown = head.chars().count() + tail.chars().count();
        assert!(
            long.chars().count() - shown >= HIDDEN.min(long.chars().count() / 3),
            "{cut}"
        );
        assert!(!head.ends_with(' ') && !tail.starts_with("  "), "{cut}");
    }
}

/// A long word at the end of a short piece goes, too.
#[test]
fn a_piece_ends_at_a_word_if_half_of_it_is_left() {
    let text = "The new test TestFutureRefill covers it";
    assert_eq!(
        whole_words_before("The new test TestFutureR", text),
        "The new test "
    );
    assert_eq!(whole_words_after("Refill covers it", text), " covers it");
}

#[test]
fn multi_byte_texts_are_cut_between_characters() {
    let whole = "日本語のテキスト🎉".repeat(500);
    for limit in [0, 1, 50, 333] {
        let cut = clip_text(&whole, Units(limit), &Heuristic, AT).unwrap();
        assert!(cut.contains("chars cut"));
    }
}

#[test]
fn clipped_arguments_stay_a_json_object() {
    let arguments = serde_json::json!({
        "path": "src/lib.rs",
        "content": "fn main() {}\n".repeat(900),
        "nested": [{"old": "a".repeat(4000)}],
    })
    .to_string();
    let entry_with_call = Entry {
        blocks: vec![Block::ToolCall {
            id: "c1".into(),
            name: "write".into(),
            arguments,
        }],
        ..Entry::from_text("e", Role::Assistant, "")
    };
    for level in [10, 100, 600, 2000] {
        let edits = clip_entry(&entry_with_call, Units(level), &Chars4, AT);
        let [(0, BlockEdit::SetText(cut))] = edits.as_slice() else {
            panic!("{edits:?}")
        };
        let value: Value = serde_json::from_str(cut).unwrap();
        assert!(value.is_object());
        assert!(
            cut.chars().count() as u64 <= (level * CALL_SHARE).max(2),
            "{level}: {}",
            cut.len()
        );
    }
}

#[test]
fn a_call_that_is_cut_still_says_what_it_asks_for() {
    let arguments =
        r#"{"pattern":"fn open_archive_of_the_session","path":"crates/store/src/lib.rs"}"#;
    let cut = arguments_within(arguments, Units(60), &Chars4, AT).unwrap();
    assert_eq!(
        cut,
        r#"{"pattern":"fn open_archive_…","path":"…store/src/lib.rs"}"#
    );
}

#[test]
fn an_answer_of_which_only_scraps_are_left_is_its_pointer() {
    let whole = "line of output\n".repeat(100);
    let alone = clip_answer(&whole, Units(80), &Chars4, AT).unwrap();
    assert_eq!(alone, " […1500 chars cut: 0123456789ab#57…]");
    let cut = clip_answer(&whole, Units(200), &Chars4, AT).unwrap();
    assert!(cut.starts_with("line of output"), "{cut}");
}

#[test]
fn what_a_host_put_behind_an_answer_goes_first() {
    let listing = "fn open() {}\n".repeat(20);
    let noticed = |n: usize| {
        let notice = "Whenever you read a file, consider it. ".repeat(n);
        format!("{listing}\n<system-reminder>\n{notice}\n</system-reminder>\n")
    };
    let cut = |whole: &str, limit| clip_answer(whole, Units(limit), &Chars4, AT).unwrap();
    let own = listing.trim_end();
    assert_eq!(
        cut(&noticed(8), 400),
        format!("{own} […352 chars cut: 0123456789ab#57…]")
    );
    // Where the answer alone fits and its pointer does not, and where neither does.
    for limit in [own.len() as u64 + 4, 100] {
        let cut = cut(&noticed(8), limit);
        assert!(Chars4.count_units(&cut) <= Units(limit), "{cut}");
        assert!(limit > 100 || !cut.contains("reminder"), "{cut}");
    }
}

#[test]
fn small_blocks_stay_whole_and_large_ones_share_the_rest() {
    let costs = [Units(10), Units(500), Units(20), Units(900)];
    assert_eq!(water_level(&costs, Units(230)), Units(100));
    assert_eq!(water_level(&costs, Units(5000)), Units(u64::MAX));
    assert_eq!(water_level(&[], Units(0)), Units(u64::MAX));
    assert_eq!(water_level(&costs, Units(0)), Units(0));
}

#[test]
fn a_cut_request_keeps_the_sentences_that_rule() {
    let item = |n| format!("Item {n}: the page lists orders by day and by client, newest first.\n");
    let items: String = (0..40).map(item).collect();
    let whole = format!(
        "Build the report.\n{items}\n## Constraints\n- Do not change the review pipeline.\n- Never edit tests.\n\n{items}Report at the end."
    );
    let entry = Entry::from_text("u", Role::User, whole.as_str());
    let cut = clip_entry(&entry, Units(900), &Chars4, AT);
    let [(0, BlockEdit::SetText(cut))] = cut.as_slice() else {
        panic!("{cut:?}");
    };
    assert!(cut.starts_with("Build the report."), "{cut}");
    assert!(cut.ends_with("Report at the end."), "{cut}");
    assert!(
        cut.contains("- Do not change the review pipeline.\n- Never edit tests.\n"),
        "{cut}"
    );
    assert!(cut.contains("chars cut: 0123456789ab#57"), "{cut}");
    assert!(cut.chars().count() <= 900);
    // What was pasted goes first, and a rule out of it says so.
    let page = format!("# Guide\n{items}\nAlways run the installer.\n{items}");
    let pasted = format!("Here is the page:\n```\n{page}```\nNever edit tests.");
    let entry = Entry::from_text("u", Role::User, pasted.as_str());
    let cut = format!("{:?}", clip_entry(&entry, Units(900), &Chars4, AT));
    assert!(
        cut.contains("Never edit tests.") && !cut.contains("- Always"),
        "{cut}"
    );
    let mixed = format!("{whole}\nHere is the page:\n{page}");
    let entry = Entry::from_text("u", Role::User, mixed.as_str());
    let cut = format!("{:?}", clip_entry(&entry, Units(900), &Chars4, AT));
    assert!(cut.contains("- Never edit tests."), "{cut}");
    assert!(
        cut.contains("- [pasted] Always run the installer."),
        "{cut}"
    );
    // Of a tool's answer, head and tail tell the most.
    let answer = Entry::from_text("a", Role::Tool, whole.as_str());
    let cut = format!("{:?}", clip_entry(&answer, Units(900), &Chars4, AT));
    assert!(!cut.contains("Never edit tests"), "{cut}");
}

#[test]
fn a_cut_reply_keeps_what_it_is_about_and_what_it_concluded() {
    let step =
        |n| format!("{n}. Let me look at the next part of the module and see what is there.\n");
    let steps: String = (0..40).map(step).collect();
    let whole = format!(
        "The report is slow.\n{steps}The root cause is that every row opens a connection of its own.\n{steps}Tell me what you think."
    );
    let reply = Entry::from_text("a", Role::Assistant, whole.as_str());
    let cut = clip_entry(&reply, Units(600), &Chars4, AT);
    let [(0, BlockEdit::SetText(cut))] = cut.as_slice() else {
        panic!("{cut:?}");
    };
    assert!(cut.starts_with("The report is slow."), "{cut}");
    assert!(
        cut.contains("The root cause is that every row opens a connection of its own."),
        "{cut}"
    );
    assert!(cut.ends_with("chars cut: 0123456789ab#57…]"), "{cut}");
    assert!(Chars4.count_units(cut) <= Units(600));
}

#[test]
fn a_listing_is_cut_to_what_it_declares() {
    let imports = "use std::a;\n".repeat(20);
    let body = "    let x = 1;\n    let y = 2;\n".repeat(6);
    let text = format!(
        "{imports}fn first_row(a: u32) -> u32 {{\n{body}}}\n\nfn last_row(b: u32) -> u32 {{\n{body}}}\n"
    );
    let pointer = ClipPointer {
        receipt: "0123456789abcdef",
        ordinal: 7,
    };
    let limit = Chars4.count_units(&text).0 / 3;
    let cut = clip_answer(&text, Units(limit), &Chars4, pointer).unwrap();
    assert!(Chars4.count_units(&cut).0 <= limit, "{cut}");
    assert!(cut.contains("0123456789ab#7"), "{cut}");
    assert!(
        cut.contains("fn first_row(a: u32)") && cut.contains("fn last_row(b: u32)"),
        "{cut}"
    );
    assert_eq!(cut.matches("use std::a").count(), 1, "{cut}");
    // A complaint shows code, too.
    let complaint = format!("error[E0308]: mismatched types\n{text}error: could not compile");
    let cut = clip_answer(&complaint, Units(limit), &Chars4, pointer).unwrap();
    assert!(
        cut.starts_with("error[E0308]") && cut.ends_with("could not compile"),
        "{cut}"
    );
    // A log declares nothing, and its end tells how it ended.
    let log = format!("{}2 passed", "step done\n".repeat(80));
    let cut = clip_answer(&log, Units(limit), &Chars4, pointer).unwrap();
    assert!(cut.ends_with("2 passed"), "{cut}");
}

#[test]
fn a_report_of_what_failed_is_cut_to_its_complaints() {
    let passing: String = (0..80)
        .map(|n| format!("ok   store/part{n}  0.0{n}s\n"))
        .collect();
    let failure = "--- FAIL: TestEvictsOldest (0.02s)\n    cache_test.go:88: expected 3 rows\n    cache_test.go:89: the cursor stood at 7\n";
    let text = format!("$ go test ./...\n{passing}{failure}{passing}FAIL");
    let limit = Chars4.count_units(&text).0 / 6;
    let cut = clip_answer(&text, Units(limit), &Chars4, AT).unwrap();
    assert!(Chars4.count_units(&cut).0 <= limit, "{cut}");
    assert!(
        cut.starts_with("$ go test ./...") && cut.ends_with("FAIL"),
        "{cut}"
    );
    assert!(
        cut.contains(failure) && cut.contains("0123456789ab#57"),
        "{cut}"
    );
    // There is room for some of what passed, too.
    assert!(Chars4.count_units(&cut).0 * 10 >= limit * 8, "{cut}");
}
