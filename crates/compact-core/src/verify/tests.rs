use super::*;
use crate::message::{Entry, Role};
use crate::summarize::SummaryBody;
use crate::token::{Chars4, Estimator, Units};

fn ledger() -> Ledger {
    Ledger::from_entries(
        &[
            Entry::from_text(
                "0",
                Role::User,
                "Never deploy on Fridays. Look at apps/web/src/main.ts.",
            ),
            Entry::from_text(
                "1",
                Role::Assistant,
                "I will call rotate_keys() for order #W4082615.",
            ),
            Entry::from_text("2", Role::Assistant, "And fetch_prices too."),
        ],
        0,
    )
}

fn of(ledger: &Ledger, dropped: &dyn Fn(u64) -> bool) -> Vec<Anchor> {
    anchors(
        ledger,
        &NameRanking::from_ledger(ledger, summarize::Style::TaskState, None),
        dropped,
    )
}

fn texts(anchors: &[Anchor]) -> Vec<&str> {
    let mut texts: Vec<&str> = anchors.iter().map(|a| a.text.as_str()).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn anchors_are_what_people_and_the_model_named_in_the_dropped_part() {
    let anchors = of(&ledger(), &|ordinal| ordinal < 2);
    let expected = [
        "#W4082615",
        "Never deploy on Fridays.",
        "main.ts",
        "rotate_keys",
        "src/main.ts",
    ];
    assert_eq!(texts(&anchors), expected);
}

#[test]
fn a_path_is_shown_by_its_last_two_components_and_a_name_by_itself_only() {
    let anchors = of(&ledger(), &|_| true);
    let text = "in /x/y/src/main.ts we call rotate_keys_now; never deploy on Fridays. fetch_prices";
    let shown: Vec<&str> = anchors
        .iter()
        .zip(shown_anchors(&anchors, text))
        .filter(|(_, shown)| *shown)
        .map(|(anchor, _)| anchor.text.as_str())
        .collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(!shown.contains(&"rotate_keys"));
}

fn summary(text: &str) -> SummaryBody {
    SummaryBody {
        text: text.to_owned(),
        cost: Chars4.count_units(text),
    }
}

#[test]
fn repair_puts_rules_before_the_fence_and_the_rest_inside() {
    let anchors = of(&ledger(), &|_| true);
    let missing: Vec<&Anchor> = anchors.iter().collect();
    let mended = |text: &str| {
        repair(&ledger(), &summary(text), &missing, Units(4000), &Chars4)
            .unwrap()
            .text
    };
    let text = mended("Prose by a model.");
    assert!(
        shown_anchors(&anchors, &text).into_iter().all(|s| s),
        "{text}"
    );
    let (before, fenced) = text.split_once(summarize::FENCE_HEAD).unwrap();
    assert!(before.contains("Never deploy on Fridays.") && !before.contains("rotate_keys"));
    assert!(fenced.contains("rotate_keys") && text.ends_with(summarize::FENCE));
    // Repairing again finds the sections that are there.
    let again = mended(&text);
    assert_eq!(again.matches(summarize::FENCE_HEAD).count(), 1, "{again}");
    assert_eq!(again.matches(repair::RULES_HEAD).count(), 1, "{again}");
}

/// A rule whose names are missing too, said twice, beside a name of the same message.
#[test]
fn repair_says_each_thing_once() {
    let rule = "Never drop the column ledger_rows.amount_legacy before the table billing_events is closed.";
    let said = [
        format!(
            "We move src/ledger/rows.py to the API of POST_BATCH_7. {rule} See docs/close.md then."
        ),
        "I read src/ledger/rows.py and read_rows_now next to sum_rows_then in it.".to_owned(),
        format!("Once more. {rule}"),
    ];
    let roles = [Role::User, Role::Assistant, Role::User];
    let entries: Vec<Entry> = said
        .iter()
        .zip(roles)
        .map(|(text, role)| Entry::from_text("e", role, text))
        .collect();
    let ledger = Ledger::from_entries(&entries, 0);
    let anchors = of(&ledger, &|_| true);
    let missing: Vec<&Anchor> = anchors.iter().collect();
    let mended = repair(
        &ledger,
        &SummaryBody::default(),
        &missing,
        Units(4000),
        &Chars4,
    );
    let text = mended.unwrap().text;
    assert!(
        shown_anchors(&anchors, &text).into_iter().all(|s| s),
        "{text}"
    );
    for once in [
        rule,
        "docs/close.md",
        "read_rows_now next to sum_rows_then",
        "POST_BATCH_7",
    ] {
        assert_eq!(text.matches(once).count(), 1, "{once} in {text}");
    }
    assert_eq!(text.matches("billing_events").count(), 1, "{text}");
}

#[test]
fn repair_stays_within_its_room() {
    let anchors = of(&ledger(), &|_| true);
    let missing: Vec<&Anchor> = anchors.iter().collect();
    for room in 0..400 {
        let mended = repair(
            &ledger(),
            &summary("Prose."),
            &missing,
            Units(room),
            &Chars4,
        );
        if let Some(mended) = mended {
            assert!(Chars4.count_units(&mended.text) <= mended.cost);
            assert!(mended.cost <= Units(6 + room));
        }
    }
}

#[test]
fn a_rule_is_shown_by_all_its_words_to_the_last() {
    let entries = [
        Entry::from_text("0", Role::User, "Never restart host db1"),
        Entry::from_text("1", Role::User, "Never restart host db10"),
    ];
    let ledger = Ledger::from_entries(&entries, 0);
    let anchors = of(&ledger, &|_| true);
    let shown = |text: &str| {
        let shown = anchors.iter().zip(shown_anchors(&anchors, text));
        let shown = shown.filter(|(anchor, shown)| *shown && anchor.text.contains(' '));
        shown
            .map(|(anchor, _)| anchor.text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown("- \"Never restart host db10.\""),
        ["Never restart host db10"]
    );
    assert_eq!(shown("Never restart host db1.internal"), [""; 0]);
    assert_eq!(shown("Never restart host db1 on Sundays."), [""; 0]);
    assert_eq!(
        shown("- Never restart host db1\n- Rest"),
        ["Never restart host db1"]
    );
    assert_eq!(
        shown("(Never restart\nhost db1) please"),
        ["Never restart host db1"]
    );
}

#[test]
fn a_rule_that_fell_is_counted_and_not_put_back() {
    let entries = [
        Entry::from_text("0", Role::User, "Keep answers under 100 words."),
        Entry::from_text("1", Role::User, "Keep answers under 250 words."),
    ];
    let ledger = Ledger::from_entries(&entries, 0);
    let anchors = of(&ledger, &|_| true);
    let missing: Vec<&Anchor> = anchors.iter().collect();
    let mended = repair(&ledger, &summary("Prose."), &missing, Units(4000), &Chars4).unwrap();
    let rules = [
        "Keep answers under 250 words.",
        "Keep answers under 100 words.",
    ];
    let counted: Vec<&str> = anchors
        .iter()
        .map(|a| a.text.as_str())
        .filter(|t| t.contains(' '))
        .collect();
    assert_eq!(counted, rules);
    assert_eq!(rules.map(|rule| mended.text.contains(rule)), [true, false]);
}
