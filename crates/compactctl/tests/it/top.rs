//! `top`: the newest sessions, once or until it is told to stop.

use super::place::{Place, lines};

#[test]
fn where_nobody_watches_the_list_is_printed_once() {
    let place = Place::new();
    let empty = place.run(&["top"]).ok();
    assert!(empty.text().contains("nothing has been compacted yet"));
    place.write("s.jsonl", lines(0..40));
    let compact = ["compact", "s.jsonl", "--session", "shop"];
    place
        .run(&[&compact[..], &["--budget", "1500"]].concat())
        .ok();
    let text = place.run(&["top"]).ok().text();
    assert!(
        text.starts_with("  1 session, $0.00 in the last hour (0 requests)"),
        "{text}"
    );
    assert!(text.contains("shop") && !text.contains('\x1b'), "{text}");
    let json = place.json(&["top", "-n", "5"]);
    assert_eq!(
        (&json["total"], &json["sessions"][0]["session_id"]),
        (&1.into(), &"shop".into())
    );
    let before = json["sessions"][0]["tokens_before"].as_u64().unwrap();
    assert!(before > json["sessions"][0]["tokens_after"].as_u64().unwrap());
    let wrong = place.run(&["top", "--seconds", "0"]);
    assert!(
        wrong.stderr.contains("choose between 0.1 and 3600 seconds"),
        "{}",
        wrong.stderr
    );
}
