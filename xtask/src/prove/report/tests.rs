//! The report says what held, what broke and what was not run, and quotes output as text.

use super::*;

fn row(outcome: ProofOutcome) -> ProofRow {
    ProofRow {
        name: "kill",
        promise: Promise::LostBytes,
        shows: "nothing is torn",
        trials: 12,
        outcome,
        seconds: 1.25,
        printed: vec!["12 killed, 0 torn <b>".to_owned()],
    }
}

#[test]
fn a_row_for_programs_has_the_outcome_and_its_reason() {
    let broken = row(ProofOutcome::Broken("a byte was lost".to_owned()));
    let expected = json!({
        "name": "kill", "promise": "no byte lost or torn", "shows": "nothing is torn", "trials": 12, "outcome": "broken",
        "reason": "a byte was lost", "seconds": 1.3, "printed": ["12 killed, 0 torn <b>"],
    });
    assert_eq!(broken.to_json(), expected);
    let line = broken.broken_line();
    assert_eq!(line.as_deref(), Some("kill: a byte was lost"));
    assert_eq!(row(ProofOutcome::Holds).broken_line(), None);
}

#[test]
fn the_page_quotes_what_was_printed_and_sums_promises() {
    let report = json!({
        "surroundings": { "rustc": "1.0" },
        "proofs": [row(ProofOutcome::NotRun("nobody asked".to_owned())).to_json()],
        "promises": sum_promises(&[row(ProofOutcome::Holds)]),
    });
    let page = render_page(&report);
    for part in [
        "<tr><th>rustc</th><td>1.0</td></tr>",
        "<td class=\"not-run\">not run</td><td>12</td>",
        "<pre>12 killed, 0 torn &lt;b&gt;\nnobody asked</pre>",
        "<tr><th>no byte lost or torn</th><td class=\"broken\"></td><td class=\"holds\">kill</td><td>12</td><td class=\"not-run\"></td></tr>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn a_promise_counts_the_trials_of_what_holds_alone() {
    let rows = [
        row(ProofOutcome::Holds),
        row(ProofOutcome::Broken("a byte was lost".to_owned())),
        row(ProofOutcome::NotRun("nobody asked".to_owned())),
    ];
    let sums = sum_promises(&rows);
    let expected = json!({
        "promise": "no byte lost or torn", "trials": 12, "holds": ["kill"], "broken": ["kill"], "not_run": ["kill"],
    });
    assert!(sums.contains(&expected), "{sums:?}");
    assert_eq!(sums.len(), Promise::ALL.len());
}

#[test]
fn the_last_lines_are_those_that_say_something() {
    assert_eq!(last_lines("a\n\nb\n \n"), ["a", "b"]);
    let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(last_lines(&many.join("\n")), many[20 - KEPT_LINES..]);
}

#[test]
fn a_field_is_what_stands_behind_its_colon() {
    let text = "vendor\t: x\nmodel name\t: Some CPU @ 2 GHz\n";
    assert_eq!(find_field(text, "model name"), "Some CPU @ 2 GHz");
    assert_eq!(find_field(text, "absent"), "");
}
