use super::Charset::{Ascii, Unicode};
use super::bar::bar;
use super::number;
use super::table::{Column, Table};
use super::text::{fit, one_line, printable};
use unicode_width::UnicodeWidthStr;

#[test]
fn bars_fill_by_share_and_never_overflow() {
    assert_eq!(bar(0.0, 8, Ascii), "........");
    assert_eq!(bar(0.001, 8, Ascii), "#.......");
    assert_eq!(bar(0.5, 8, Ascii), "####....");
    assert_eq!(bar(7.0, 8, Ascii), "########");
    assert_eq!(bar(f64::NAN, 4, Ascii), "....");
    assert_eq!(bar(0.5, 8, Unicode), "████░░░░");
    assert_eq!(bar(0.51, 4, Unicode), "██░░");
    assert_eq!(bar(0.54, 4, Unicode), "██▏░");
    assert_eq!(bar(0.0, 0, Unicode), "");
    for step in 0..=100 {
        assert_eq!(bar(f64::from(step) / 100.0, 13, Unicode).width(), 13);
    }
}

#[test]
fn numbers_read_well() {
    assert_eq!(number::group_digits(0), "0");
    assert_eq!(number::group_digits(999), "999");
    assert_eq!(number::group_digits(1_000), "1,000");
    assert_eq!(number::group_digits(12_345_678), "12,345,678");
    assert_eq!(number::format_bytes(999), "999 B");
    assert_eq!(number::format_bytes(1_664_806), "1.7 MB");
    assert_eq!(number::format_bytes(999_999), "1.0 MB");
    assert_eq!(number::format_count(1, "turn", "turns"), "1 turn");
    assert_eq!(number::format_elapsed(1_240), "1.2 s");
    assert_eq!(number::format_percent(0.1234), "12.3 %");
}

#[test]
fn tables_align_by_display_width() {
    let mut table = Table::new([Column::left(), Column::right(), Column::left()]);
    table.add_row(["a".into(), "1".into(), "x".into()]);
    table.add_row(["日本".into(), "1,000".into(), String::new()]);
    table.add_row([String::new(), "7".into(), "z".into()]);
    assert_eq!(
        table.render(),
        "  a         1  x\n  日本  1,000\n            7  z\n"
    );
}

#[test]
fn text_from_transcripts_cannot_drive_the_terminal() {
    assert_eq!(
        printable("a\u{1b}]0;title\u{7}b\r\u{202e}c"),
        "a?]0;title?b??c"
    );
    assert_eq!(one_line("  two\n lines\there ", 40), "two lines here");
}

#[test]
fn text_is_cut_at_a_column_and_says_so() {
    assert_eq!(fit("abcdefgh", 8), "abcdefgh");
    assert_eq!(fit("abcdefghi", 8), "abcde...");
    assert_eq!(fit("日本語日本語", 8), "日本...");
    assert_eq!(one_line(&"x".repeat(1 << 20), 10), "xxxxxxx...");
}

#[test]
fn no_two_names_look_alike_for_what_nobody_sees() {
    assert_eq!(one_line("main\u{200b}", 80), "main?");
    assert_eq!(one_line("m\u{e0061}ai\u{ad}n\u{2060}", 80), "m?ai?n?");
    assert_eq!(
        one_line("👩\u{200d}💻 \u{2764}\u{fe0f}", 80),
        "👩\u{200d}💻 \u{2764}\u{fe0f}"
    );
}
