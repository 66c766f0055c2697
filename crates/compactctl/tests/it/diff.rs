use expect_test::expect;

use crate::place::{Place, claude, lines};

fn compacted(input: &str, budget: &str) -> Place {
    let place = Place::new();
    place.write("a.jsonl", input);
    place
        .run(&[
            "compact", "a.jsonl", "--budget", budget, "-o", "b.jsonl", "-q",
        ])
        .ok();
    place
}

#[test]
fn a_diff_accounts_for_every_entry() {
    let place = compacted(&claude(20), "1500");
    let json = place.json(&["diff", "a.jsonl", "b.jsonl"]);
    let count = |key: &str| json[key].as_array().unwrap().len() as u64;
    let kept = json["kept"].as_u64().unwrap();
    let entries = |file: &str| place.json(&["inspect", file])["entries"].as_u64().unwrap();
    assert_eq!(count("removed") + kept, entries("a.jsonl"));
    assert_eq!(count("added") + kept, entries("b.jsonl"));
    let tokens = |file: &str| place.json(&["inspect", file])["tokens"]["history"].clone();
    assert_eq!(json["tokens_before"], tokens("a.jsonl"));
    assert_eq!(json["tokens_after"], tokens("b.jsonl"));
}

#[test]
fn a_file_does_not_differ_from_itself() {
    let place = Place::new();
    place.write("a.jsonl", lines(0..3) + &lines(0..3));
    let json = place.json(&["diff", "a.jsonl", "a.jsonl"]);
    assert_eq!(json["kept"], 18);
    assert_eq!(
        json["removed"].as_array().unwrap().len() + json["added"].as_array().unwrap().len(),
        0
    );
}

#[test]
fn a_diff_is_told_to_people() {
    let place = Place::new();
    place.write("a.jsonl", lines(0..3));
    place.write(
        "b.jsonl",
        lines(1..3) + r#"{"role":"user","content":"A <new> | thing"}"#,
    );
    let text = place.run(&["diff", "a.jsonl", "b.jsonl"]).ok().text();
    expect![[r#"
        --- a.jsonl
        +++ b.jsonl

          before  ########################################  558
          after   ###########################.............  382  -31.5 %

          3 removed, 6 kept, 1 added

        - user            17  Please handle case 0 in src/case_0.rs.
        - assistant      155  Working on case 0. the parser reads field 0 of record R...
        - assistant       14  Case 0 is done; the build passes.
        + user            10  A <new> | thing
    "#]]
    .assert_eq(&text);
    let text = place
        .run(&["diff", "a.jsonl", "b.jsonl", "--format", "md"])
        .ok()
        .text();
    expect![[r#"
        # a.jsonl → b.jsonl

        558 → 382 tokens · 3 removed · 6 kept · 1 added

        ## Removed

        | # | role | tokens | begins |
        |--:|---|--:|---|
        | 0 | user | 17 | Please handle case 0 in src/case\_0.rs. |
        | 1 | assistant | 155 | Working on case 0. the parser reads field 0 of record R-0000 the parser reads field 0 of record R-0000 the parser reads field 0 of record R-0000 the parser reads field 0 of record R-0000 the parser... |
        | 2 | assistant | 14 | Case 0 is done; the build passes. |

        ## Added

        | # | role | tokens | begins |
        |--:|---|--:|---|
        | 6 | user | 10 | A &lt;new> \| thing |
    "#]].assert_eq(&text);
}

#[test]
fn the_page_escapes_what_it_shows() {
    let place = Place::new();
    place.write("a.jsonl", lines(0..1));
    place.write(
        "b.jsonl",
        r#"{"role":"user","content":"<script>alert(1)</script>"}"#,
    );
    let page = place
        .run(&["diff", "a.jsonl", "b.jsonl", "--format", "html", "--quiet"])
        .ok()
        .text();
    assert!(page.starts_with("<!doctype html>"));
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"));
}

/// Strips of one scale: what was kept is as wide before as after, and names are escaped.
#[test]
fn the_picture_shows_what_was_kept_and_what_was_not() {
    let place = Place::new();
    place.write("a<b.jsonl", lines(0..40));
    place
        .run(&[
            "compact",
            "a<b.jsonl",
            "-o",
            "view.jsonl",
            "--budget",
            "1500",
        ])
        .ok();
    let picture = place
        .run(&["diff", "a<b.jsonl", "view.jsonl", "--format", "svg"])
        .ok()
        .text();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("a&lt;b.jsonl") && !picture.contains("a<b"));
    let widths = |colour: &str, top: &str| -> f64 {
        let rects = picture.lines().filter(|line| {
            line.contains(&format!("fill=\"{colour}\"")) && line.contains(&format!("y=\"{top}\""))
        });
        let width = |line: &str| -> f64 {
            let (_, rest) = line.split_once("width=\"").unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        rects.map(width).sum()
    };
    let (kept, gone) = ("#2da44e", "#8c959f");
    assert!(widths(gone, "36") > widths(kept, "36"));
    assert!((widths(kept, "36") - widths(kept, "106")).abs() < 1.0);
    assert_eq!(widths(gone, "106"), 0.0);
    assert!(
        widths("#0969da", "106") > 0.0,
        "the summary is there: {picture}"
    );
}
