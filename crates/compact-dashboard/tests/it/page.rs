//! What pages say, and that the words of a transcript stay words.

use compact_dashboard::ActionMode;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use compact::clock::{Clock, ManualClock};
use compact::format::Format;
use compact::overview::{FAILED_EVENT, NameLoss};
use compact::reset::ResetOutcome;
use compact::store::Attempt;
use compact::token::Tokens;
use compact::{Compact, History};
use http::StatusCode;
use http::header::LOCATION;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::scene::{Scene, body_text, compact_session, get, post, turns};

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>\u{202e}gnp.exe";

#[tokio::test]
async fn markup_in_a_transcript_is_text_on_every_page() {
    let scene = Scene::new(ActionMode::Allowed);
    let name = "<i>\"runs\"&amp;\u{202e}\u{200b}";
    let receipt = compact_session(&scene.compact, name, &turns(40, MARKUP)).await;
    let name = "%3Ci%3E%22runs%22%26amp%3B%E2%80%AE%E2%80%8B";
    let pages = [
        "/".to_owned(),
        "/?q=%3Cscript%3Ealert".to_owned(),
        "/money".to_owned(),
        format!("/session?name={name}"),
        format!("/compaction?name={name}&receipt={receipt}"),
        format!("/entry?name={name}&receipt={receipt}&at=0"),
        format!("/ledger?name={name}"),
        format!("/new?name={name}"),
        format!("/?q=run&session={name}"),
    ];
    for path in pages {
        let page = scene.page(&path).await;
        // Forms send names back as they are.
        let shown = page.replace(
            "value=\"&lt;i&gt;&quot;runs&quot;&amp;amp;\u{202e}\u{200b}\"",
            "",
        );
        for mark in ["<script>alert", "<img", "<i>", "\u{202e}", "\u{200b}"] {
            assert!(!shown.contains(mark), "{path} has {mark:?}");
        }
        assert!(
            !page.contains("<title>&lt;i&gt;") || page.contains("⟨U+202E⟩"),
            "{path}"
        );
    }
    let none = scene.send(get("/session?name=%E2%80%AEgone")).await;
    assert!(!body_text(none).await.contains('\u{202e}'));
    let entry = scene
        .page(&format!("/entry?name={name}&receipt={receipt}&at=0"))
        .await;
    assert!(entry.contains("&lt;script&gt;alert(1)") && entry.contains("⟨U+202E⟩gnp.exe"));
}

#[tokio::test]
async fn a_line_of_a_megabyte_is_shown_in_parts() {
    let scene = Scene::new(ActionMode::Allowed);
    let mut messages = turns(40, "");
    messages[0]["content"] = "x<y ".repeat(250_000).into();
    let receipt = compact_session(&scene.compact, "long", &messages).await;
    let paths = [
        "/session?name=long".to_owned(),
        format!("/compaction?name=long&receipt={receipt}"),
        format!("/entry?name=long&receipt={receipt}&at=0"),
        format!("/entry?name=long&receipt={receipt}&at=0&page=16"),
    ];
    for path in paths {
        let page = scene.page(&path).await;
        assert!(page.len() <= 250_000, "{path} weighs {}", page.len());
    }
}

#[tokio::test]
async fn a_session_that_is_not_there_is_a_page_that_says_so() {
    let scene = Scene::new(ActionMode::Allowed);
    let answer = scene.send(crate::scene::get("/session?name=gone")).await;
    assert_eq!(answer.status(), http::StatusCode::NOT_FOUND);
    let text = crate::scene::body_text(answer).await;
    assert!(
        text.contains("nothing on record is called “gone”"),
        "{text}"
    );
}

/// Compacts a session twice, the second time what the first left with new turns behind it; returns the second receipt.
async fn compact_twice(scene: &Scene, name: &str) -> String {
    let mut session = scene.compact.session(name);
    let first = session.compact(&turns(40, "early"), None).await.unwrap();
    let mut messages: Vec<Value> = first.messages().unwrap();
    messages.extend(turns(30, "late"));
    compact_session(&scene.compact, name, &messages).await
}

/// Sends a form, and returns where it leads.
async fn act(scene: &Scene, action: &str, fields: &[(&str, &str)]) -> String {
    let answer = send_form(scene, action, fields).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let text = body_text(answer).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    headers[LOCATION].to_str().unwrap().to_owned()
}

async fn send_form(
    scene: &Scene,
    action: &str,
    fields: &[(&str, &str)],
) -> http::Response<axum::body::Body> {
    let token = scene.token("/session?name=runs").await;
    let fields = [&[("token", token.as_str())][..], fields].concat();
    scene.send(post(&format!("/do/{action}"), &fields)).await
}

#[tokio::test]
async fn a_session_before_a_compaction_has_all_that_went_into_it() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    let compact = &scene.compact;
    let fields = [("name", "runs"), ("receipt", receipt.as_str())];
    let told = scene.page(&act(&scene, "undo", &fields).await).await;
    let (_, told) = told.split_once("id=\"notice\"").unwrap();
    assert!(
        told.contains("as this one did before compaction 2"),
        "{told}"
    );
    let (_, address) = told.split_once("href=\"").unwrap();
    let address = address.split_once('"').unwrap().0.to_owned();
    let branch = compact.session_records("runs~before-2").await.unwrap();
    let state = branch.last().unwrap();
    let undone = compact.session_records("runs").await.unwrap().remove(1);
    let held = compact.restore_session(&undone).await.unwrap().bytes;
    let page = scene.page(&address).await;
    let before = undone.receipt.tokens_before().unwrap().0.to_string();
    let before = format!(
        "{},{}",
        &before[..before.len() - 3],
        &before[before.len() - 3..]
    );
    assert!(
        page.contains(&format!("<strong>≈ {before}</strong> of ")),
        "{page}"
    );
    assert!(
        page.contains("<dt>Calls archived</dt><dd>70</dd>"),
        "{page}"
    );
    assert!(
        page.contains("<code><bdi>runs~before-2</bdi></code>"),
        "{page}"
    );
    let download = scene.page("/original?name=runs~before-2").await;
    assert_eq!(download.as_bytes(), held);
    let found = scene
        .page("/?q=late+Measure+run+29&session=runs~before-2")
        .await;
    assert!(found.contains("Measure run 29. late"), "{found}");
    let (entry, _) = found.split_once("\">whole entry").unwrap();
    let entry = scene.page(entry.rsplit_once("href=\"").unwrap().1).await;
    assert!(entry.contains("late"), "{entry}");
    compact.verify(&state.receipt_id).await.unwrap();
    let fields = [("name", "runs~before-2"), ("budget", "3000")];
    let page = scene.page(&act(&scene, "compact", &fields).await).await;
    assert!(page.contains("Compacted: "), "{page}");
    let branch = compact.session_records("runs~before-2").await.unwrap();
    let whole = compact.restore_session(branch.last().unwrap()).await;
    assert_eq!(whole.unwrap().bytes, held);
}

#[tokio::test]
async fn an_agent_goes_on_from_a_session_before_a_compaction() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    let compact = &scene.compact;
    let branched = compact.branch_before("runs", &receipt, "again");
    branched.await.unwrap();
    let state = compact.restore(&receipt).await.unwrap().bytes;
    let mut messages: Vec<Value> = serde_json::from_slice(&state).unwrap();
    messages.extend(turns(20, "third"));
    compact_session(compact, "again", &messages).await;
    let records = compact.session_records("again").await.unwrap();
    let whole = compact.restore_session(records.last().unwrap()).await;
    let whole = String::from_utf8(whole.unwrap().bytes.to_vec()).unwrap();
    for words in ["early", "late", "third"] {
        let turns = whole.matches(words).count();
        let expected = [("early", 40), ("late", 30), ("third", 20)];
        assert!(expected.contains(&(words, turns)), "{words}: {turns}");
    }
}

#[tokio::test]
async fn what_was_done_is_told_once_and_on_the_page_of_its_session() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    compact_session(&scene.compact, "other", &turns(41, "")).await;
    let fields = [("name", "runs"), ("receipt", receipt.as_str())];
    let address = act(&scene, "verify", &fields).await;
    let other = address.replace("name=runs", "name=other");
    assert!(!scene.page(&other).await.contains("Verified"));
    assert!(scene.page(&address).await.contains("Verified"));
    assert!(!scene.page(&address).await.contains("Verified"));
}

#[tokio::test]
async fn what_is_no_page_is_told_on_one() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let long = "n".repeat(9_000);
    let cases = [
        ("/session".to_owned(), 400),
        ("/session?name=runs&done=x".to_owned(), 400),
        (format!("/entry?name=runs&receipt={receipt}&at=-1"), 400),
        ("/entry?pointer=nonsense".to_owned(), 400),
        (format!("/session?name={long}"), 404),
        ("/nope".to_owned(), 404),
        ("/nope/deeper".to_owned(), 404),
        ("/do/compact".to_owned(), 405),
    ];
    for (path, status) in cases {
        let answer = scene.send(get(&path)).await;
        assert_eq!(answer.status(), status, "{path}");
        let text = body_text(answer).await;
        assert!(
            text.contains("<h1><bdi>That did not work</bdi></h1>"),
            "{path}: {text}"
        );
        assert!(text.len() < 4_000, "{path} weighs {}", text.len());
    }
}

#[tokio::test]
async fn a_form_that_cannot_be_followed_says_what_to_type() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let long = "n".repeat(300);
    let cases = [
        (
            "compact",
            "budget",
            "many",
            400,
            "“many” is no number of tokens",
        ),
        ("start", "new", " ", 400, "needs a name of its own"),
        ("start", "new", long.as_str(), 400, "at most 200 characters"),
        (
            "start",
            "new",
            "runs",
            409,
            "there is a session called `runs` already.</p><p>choose another name",
        ),
    ];
    for (action, field, value, status, words) in cases {
        let fields = [
            ("name", "runs"),
            ("receipt", receipt.as_str()),
            (field, value),
        ];
        let answer = send_form(&scene, action, &fields).await;
        assert_eq!(answer.status(), status, "{action} {value}");
        let text = body_text(answer).await;
        assert!(
            text.contains(words) && !text.contains("load the page again"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn names_that_are_not_all_shown_are_counted_and_can_be_searched() {
    let scene = Scene::new(ActionMode::Allowed);
    let turn = |n: usize| {
        let file = format!("src/part_{n}/file_{n}.rs");
        [
            json!({"role": "user", "content": format!("Fix {file} and ticket SHOP-{n}77.")}),
            json!({"role": "assistant", "content": format!("It was E0{n}99 in {file}. ").repeat(9)}),
        ]
    };
    let messages: Vec<Value> = (100..700).flat_map(turn).collect();
    let id = &compact_session(&scene.compact, "runs", &messages).await;
    let record = scene.compact.find_record(id).await.unwrap();
    let missing = scene.compact.left_out_names(&record);
    let missing = missing.await.unwrap().into_iter();
    let left = missing.filter(|name| name.loss == NameLoss::Now).count() - 24;
    assert!(left > 600);
    let page = scene
        .page(&format!("/compaction?name=runs&receipt={id}"))
        .await;
    let digits = match left {
        0..1_000 => left.to_string(),
        _ => format!("{},{:03}", left / 1_000, left % 1_000),
    };
    assert!(
        page.contains(&format!("These are 600 of {digits}")),
        "{digits}"
    );
    assert!(page.contains("<dt>Not in the view, but in the archive</dt>"));
    assert!(!page.contains("lost</dt>"));
}

#[tokio::test]
async fn a_compaction_that_is_not_needed_ends_the_warning() {
    let scene = Scene::new(ActionMode::Allowed);
    compact_session(&scene.compact, "runs", &turns(8, "")).await;
    scene.fail_attempt("runs").await;
    let warning = "The last compaction failed";
    assert!(scene.page("/session?name=runs").await.contains(warning));
    let page = scene
        .page(&act(&scene, "compact", &[("name", "runs")]).await)
        .await;
    assert!(page.contains("it fits as it is"), "{page}");
    assert!(!page.contains(warning), "{page}");
}

/// Returns the numbers of a row of the table of sums: entries, tokens that went in, tokens that came out.
fn sums_of(page: &str, name: &str) -> [u64; 3] {
    let head = format!("<th scope=\"row\">{name}</th>");
    let (_, row) = page.split_once(&head).expect(name);
    let (row, _) = row.split_once("</tr>").unwrap();
    let cells = row.split("</td>").filter_map(|cell| cell.rsplit_once('>'));
    let numbers = cells.filter_map(|(_, number)| number.replace(',', "").parse().ok());
    numbers.collect::<Vec<u64>>().try_into().unwrap()
}

#[tokio::test]
async fn what_went_in_and_what_came_out_add_up_to_the_receipt() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    let page = format!("/compaction?name=runs&receipt={receipt}");
    let page = scene.page(&page).await;
    let record = scene
        .compact
        .session_records("runs")
        .await
        .unwrap()
        .remove(1);
    let parts = ["kept whole", "cut", "left to the summary", "the summary"];
    let parts = parts.map(|name| sums_of(&page, name));
    let all = sums_of(&page, "together");
    for column in 0..3 {
        assert_eq!(
            parts.iter().map(|part| part[column]).sum::<u64>(),
            all[column]
        );
    }
    assert_eq!(Some(Tokens(all[1])), record.receipt.tokens_before());
    assert_eq!(Some(Tokens(all[2])), record.receipt.tokens_after());
    assert!(
        page.contains("Tokens on this page are estimated by "),
        "{page}"
    );
}

#[tokio::test]
async fn the_parts_of_a_window_add_up_to_it() {
    let scene = Scene::new(ActionMode::Allowed);
    let turn = |n: usize| {
        let call = json!({"id": format!("c{n}"), "type": "function", "function": {"name": format!("tool_{}", n % 12), "arguments": format!("{{\"path\":\"src/{}.rs\"}}", n % 12)}});
        [
            json!({"role": "user", "content": format!("Step {n}.")}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": "let total = cart.sum();\n".repeat(n + 1)}),
            json!({"role": "assistant", "content": format!("Step {n} is done.")}),
        ]
    };
    let mut messages = vec![json!({"role": "system", "content": "You are a careful engineer."})];
    messages.extend((0..60).flat_map(turn));
    compact_session(&scene.compact, "runs", &messages).await;
    let page = scene.page("/session?name=runs").await;
    let (_, window) = page.split_once("<p class=\"quiet\">≈ ").unwrap();
    let total = window.split_once(" tokens").unwrap().0;
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    for title in ["By who spoke", "By tool", "By file"] {
        let (_, part) = page.split_once(&format!("<h3>{title}</h3>")).unwrap();
        let (part, _) = part.split_once("</ul>").unwrap();
        let rows = part.split("<span class=\"number\">").skip(1);
        let rows = rows.map(|row| number(row.split_once('<').unwrap().0));
        assert_eq!(rows.sum::<u64>(), number(total), "{title}");
    }
    assert!(
        page.contains("other tools") && page.contains("no file"),
        "{page}"
    );
}

#[tokio::test]
async fn a_search_says_what_it_did_not_find() {
    let scene = Scene::new(ActionMode::Allowed);
    compact_session(&scene.compact, "runs", &turns(40, "Mind the lexer.")).await;
    let exact = scene.page("/?q=lexer").await;
    assert!(!exact.contains("class=\"gap\""), "{exact}");
    let near = scene.page("/?q=lexer+unicorn").await;
    assert!(
        near.contains("No entry has all of these words. These come closest."),
        "{near}"
    );
    assert!(
        near.contains("Nothing archived says “<bdi>unicorn</bdi>”."),
        "{near}"
    );
    assert!(near.contains("without “<bdi>unicorn</bdi>”"), "{near}");
    let none = scene.page("/?q=unicorn").await;
    assert!(
        none.contains("Nothing archived answers these words."),
        "{none}"
    );
}

#[tokio::test]
async fn a_session_before_a_compaction_is_not_counted_as_compacted() {
    let scene = Scene::new(ActionMode::Allowed);
    let second = compact_twice(&scene, "runs").await;
    let records = scene.compact.session_records("runs").await.unwrap();
    let first = records[0].receipt_id.as_str();
    for (receipt, name, expected) in [
        (first, "runs~before-1", 0),
        (second.as_str(), "runs~before-2", 1),
    ] {
        act(&scene, "undo", &[("name", "runs"), ("receipt", receipt)]).await;
        let list = scene.page("/").await;
        let (_, row) = list.split_once(&format!("<bdi>{name}</bdi>")).unwrap();
        let (_, cell) = row.split_once("data-label=\"Compactions\">").unwrap();
        let shown = cell.split_once('<').unwrap().0;
        assert_eq!(shown, expected.to_string(), "{name}");
        let page = scene.page(&format!("/session?name={name}")).await;
        assert!(
            page.contains(&format!("<dt>Compactions</dt><dd>{expected}</dd>")),
            "{page}"
        );
    }
}

#[tokio::test]
async fn what_came_of_an_action_is_told_on_the_page_that_it_was_sent_from() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    let place = [("name", "runs"), ("receipt", receipt.as_str()), ("at", "3")];
    for (page, path) in [
        ("session", "/session?".to_owned()),
        (
            "compaction",
            format!("/compaction?name=runs&receipt={receipt}"),
        ),
        ("entry", format!("/entry?name=runs&receipt={receipt}&at=3")),
    ] {
        for action in ["verify", "undo", "pin", "unpin"] {
            let fields = [&place[..], &[("page", page)]].concat();
            let address = act(&scene, action, &fields).await;
            assert!(
                address.starts_with(&path) && address.ends_with("#notice"),
                "{address}"
            );
            let shown = scene.page(&address).await;
            assert_eq!(
                shown.matches("id=\"notice\"").count(),
                1,
                "{action} on {page}: {shown}"
            );
        }
    }
}

#[tokio::test]
async fn a_place_beyond_the_end_is_said_to_be_none() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let far = usize::MAX;
    for path in [
        format!("/?page={far}"),
        format!("/compaction?name=runs&receipt={receipt}&page={far}"),
        format!("/entry?name=runs&receipt={receipt}&at=3&page={far}"),
    ] {
        scene.page(&path).await;
    }
    let path = format!("/entry?name=runs&receipt={receipt}&at={far}");
    let answer = scene.send(get(&path)).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_head_is_answered_like_a_get() {
    let scene = Scene::new(ActionMode::Allowed);
    compact_session(&scene.compact, "runs", &turns(40, "")).await;
    for path in ["/", "/session?name=runs", "/money"] {
        let mut request = get(path);
        *request.method_mut() = http::Method::HEAD;
        assert_eq!(scene.send(request).await.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_question_without_a_word_finds_nothing_and_one_that_is_too_long_is_refused() {
    let scene = Scene::new(ActionMode::Allowed);
    compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let page = scene.page("/?q=%22%22").await;
    assert!(
        page.contains("Nothing archived answers these words."),
        "{page}"
    );
    let long = format!("/?q={}", "word+".repeat(300));
    let answer = scene.send(get(&long)).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_session_is_started_from_one_that_is_there_under_a_name_that_can_be_read() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    for (name, receipt, new, status) in [
        ("nobody", receipt.as_str(), "fresh", 404),
        ("runs", "none", "fresh", 404),
        ("runs", receipt.as_str(), "a\u{7}b", 400),
    ] {
        let fields = [("name", name), ("receipt", receipt), ("new", new)];
        let answer = send_form(&scene, "start", &fields).await;
        assert_eq!(answer.status(), status, "{name} {new}");
    }
    assert!(!scene.page("/").await.contains("fresh"));
}

#[tokio::test]
async fn what_failed_leads_back_to_where_it_was_asked_for() {
    let scene = Scene::new(ActionMode::Allowed);
    compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let answer = send_form(&scene, "compact", &[("name", "runs"), ("budget", "1")]).await;
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    let text = body_text(answer).await;
    assert!(
        text.contains("href=\"/session?name=runs\">Back to <bdi>runs</bdi>"),
        "{text}"
    );
}

#[tokio::test]
async fn a_part_of_a_name_finds_the_session_before_what_was_said() {
    let scene = Scene::new(ActionMode::Allowed);
    compact_session(&scene.compact, "billing-week", &turns(40, "billing")).await;
    compact_session(&scene.compact, "other", &turns(41, "billing")).await;
    let page = scene.page("/?q=billing").await;
    let places = ["id=\"sessions\"", "id=\"found\""].map(|part| page.find(part).unwrap());
    assert!(places[0] < places[1], "{page}");
    assert!(page.contains("1 session"), "{page}");
    // Where none is called so, what was said comes first.
    let page = scene.page("/?q=measure").await;
    let places = ["id=\"sessions\"", "id=\"found\""].map(|part| page.find(part).unwrap());
    assert!(places[1] < places[0], "{page}");
}

#[tokio::test]
async fn a_session_that_was_undone_into_is_removed_and_the_first_one_stays() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    act(&scene, "undo", &[("name", "runs"), ("receipt", &receipt)]).await;
    let button = "Remove this session";
    let page = scene.page("/session?name=runs~before-2").await;
    assert!(page.contains(button), "{page}");
    assert!(!scene.page("/session?name=runs").await.contains(button));
    let answer = send_form(&scene, "remove", &[("name", "runs")]).await;
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    let list = act(&scene, "remove", &[("name", "runs~before-2")]).await;
    let list = scene.page(&list).await;
    assert!(list.contains("Removed runs~before-2."), "{list}");
    assert!(!list.contains("<bdi>runs~before-2</bdi>"), "{list}");
    assert_eq!(
        scene.compact.session_records("runs").await.unwrap().len(),
        2
    );
    let found = scene.page("/?q=late+Measure+run+29").await;
    assert!(!found.contains("runs~before-2"), "{found}");
    // What was compacted in it is nowhere else.
    act(&scene, "undo", &[("name", "runs"), ("receipt", &receipt)]).await;
    let fields = [("name", "runs~before-2"), ("budget", "3000")];
    act(&scene, "compact", &fields).await;
    let page = scene.page("/session?name=runs~before-2").await;
    assert!(!page.contains(button), "{page}");
}

#[tokio::test]
async fn a_rule_that_was_taken_back_is_marked_where_it_is_shown() {
    let scene = Scene::new(ActionMode::Allowed);
    let mut messages = turns(40, "");
    messages[10]["content"] = "Never push to main. Always call me before you deploy.".into();
    messages[20]["content"] = "You don't have to call me before you deploy any more.".into();
    let receipt = compact_session(&scene.compact, "runs", &messages).await;
    let page = scene.page("/ledger?name=runs").await;
    assert!(
        page.contains("<s><bdi>Always call me before you deploy.</bdi></s></p><p class=\"source\"><strong>taken back later</strong>"),
        "{page}"
    );
    assert!(
        page.contains("<p><bdi>Never push to main.</bdi></p>"),
        "{page}"
    );
    let page = format!("/compaction?name=runs&receipt={receipt}");
    let page = scene.page(&page).await;
    assert!(
        page.contains("rule, taken back later</span> <s><bdi>Always call me before you deploy."),
        "{page}"
    );
}

#[tokio::test]
async fn an_entry_goes_by_the_number_of_its_pointer_everywhere() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    let reading = scene.compact.read_compaction(&receipt).await.unwrap();
    let at = reading.entry_count() - 3;
    let ordinal = reading.ordinal(at).unwrap();
    assert_ne!(ordinal, at as u64);
    let by_place = scene
        .page(&format!("/entry?name=runs&receipt={receipt}&at={at}"))
        .await;
    let by_pointer = scene
        .page(&format!("/entry?pointer={receipt}%23{ordinal}"))
        .await;
    let heading = format!("<h1><bdi>Entry #{ordinal}</bdi></h1>");
    assert!(by_place.contains(&heading) && by_pointer.contains(&heading));
    let text = |page: &str| page.split_once("<pre class=\"entry\"").unwrap().1[..200].to_owned();
    assert_eq!(text(&by_place), text(&by_pointer));
    let rows = scene
        .page(&format!("/compaction?name=runs&receipt={receipt}&page=1"))
        .await;
    assert!(rows.contains(&format!("#{ordinal} · ")), "{rows}");
}

#[tokio::test]
async fn what_came_out_of_a_compaction_can_be_gone_on_from() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_twice(&scene, "runs").await;
    let path = format!("/original?name=runs&receipt={receipt}&part=view");
    let view: Vec<Value> = serde_json::from_str(&scene.page(&path).await).unwrap();
    let mut messages = view.clone();
    messages.extend(turns(40, "third"));
    compact_session(&scene.compact, "runs", &messages).await;
    let records = scene.compact.session_records("runs").await.unwrap();
    assert_eq!(records[2].previous.as_ref(), Some(&receipt));
}

#[tokio::test]
async fn a_blank_message_is_told_and_not_refused() {
    let scene = Scene::with_chat();
    let token = scene.token("/chat?session=one").await;
    let fields = [
        ("token", token.as_str()),
        ("session", "one"),
        ("words", "  "),
    ];
    let answer = scene.send(post("/chat/send", &fields)).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let address = answer.headers()[LOCATION].to_str().unwrap().to_owned();
    let page = scene.page(&address).await;
    assert!(
        page.contains("Nothing was sent: type a message first."),
        "{page}"
    );
    assert!(!scene.page("/").await.contains("Open chats"));
    let fields = [
        ("token", token.as_str()),
        ("session", "one"),
        ("words", "Hello"),
    ];
    scene.send(post("/chat/send", &fields)).await;
    while !scene
        .page("/chat?session=one")
        .await
        .contains("You said: Hello")
    {
        tokio::task::yield_now().await;
    }
    let list = scene.page("/").await;
    assert!(
        list.contains("Open chats") && list.contains("/chat?session=one"),
        "{list}"
    );
}

/// Turns in which the model reads a file whose name has a secret in it, and then a large one.
fn turns_with_a_secret(secret: &str) -> Vec<Value> {
    let turn = |n: usize| {
        let path = json!({ "path": format!("/srv/in?token={secret}") }).to_string();
        let call = json!({"id": format!("c{n}"), "type": "function", "function": {"name": "Read", "arguments": path}});
        [
            json!({"role": "user", "content": format!("Step {n}.")}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": format!("let total = cart.sum({n});\n").repeat(60)}),
        ]
    };
    (0..40).flat_map(turn).collect()
}

#[tokio::test]
async fn a_secret_in_the_name_of_a_file_is_redacted_wherever_the_name_stands() {
    let scene = Scene::new(ActionMode::Allowed);
    let secret = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6";
    let messages = turns_with_a_secret(secret);
    let receipt = compact_session(&scene.compact, "runs", &messages).await;
    let session = scene.page("/session?name=runs").await;
    assert!(session.contains("<h3>By file</h3>"), "{session}");
    assert!(session.contains("/srv/in?token="), "{session}");
    for path in [
        "/session?name=runs".to_owned(),
        format!("/compaction?name=runs&receipt={receipt}"),
        format!("/entry?name=runs&receipt={receipt}&at=1"),
        format!("/entry?name=runs&receipt={receipt}&at=2"),
    ] {
        let page = scene.page(&path).await;
        assert!(!page.contains(secret), "{path}: {page}");
    }
}

/// Turns of two calls at once, whose results stand in one message: few words of the first, many of the second.
fn parallel_turns() -> String {
    let turn = |n: usize| {
        let call = |id: &str, name: &str, path: &str| json!({"type": "tool_use", "id": format!("{id}{n}"), "name": name, "input": {"path": path}});
        let answer = |id: &str, words: String| json!({"type": "tool_result", "tool_use_id": format!("{id}{n}"), "content": words});
        [
            json!({"role": "user", "content": format!("Step {n}.")}),
            json!({"role": "assistant", "content": [call("g", "Grep", "src"), call("r", "Read", "src/cart.rs")]}),
            json!({"role": "user", "content": [answer("g", format!("{n} hits")), answer("r", format!("let total = cart.sum({n});\n").repeat(40))]}),
            json!({"role": "assistant", "content": format!("Step {n} is done.")}),
        ]
    };
    let messages: Vec<Value> = (0..60).flat_map(turn).collect();
    json!({"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": messages}).to_string()
}

#[tokio::test]
async fn each_of_several_results_in_one_message_is_its_own_tools_and_files() {
    let scene = Scene::new(ActionMode::Allowed);
    let mut session = scene.compact.session("runs");
    let body = History::from(parallel_turns()).in_format(Format::Anthropic);
    let prompt = session.compact(body, None).await.unwrap();
    let receipt = prompt.receipt().unwrap().receipt_id.clone();
    let page = scene.page("/session?name=runs").await;
    for (title, large, small) in [
        ("By tool", "Read", "Grep"),
        ("By file", "src/cart.rs", "src"),
    ] {
        let (_, part) = page.split_once(&format!("<h3>{title}</h3>")).unwrap();
        let of = |name: &str| {
            let (_, row) = part.split_once(&format!("<bdi>{name}</bdi>")).unwrap();
            let (_, number) = row.split_once("<span class=\"number\">").unwrap();
            let number = number.split_once('<').unwrap().0.replace(',', "");
            number.parse::<u64>().unwrap()
        };
        assert!(of(large) > 10 * of(small), "{title}: {page}");
    }
    let entry = scene
        .page(&format!("/entry?name=runs&receipt={receipt}&at=2"))
        .await;
    let line = "<bdi>Grep</bdi> · <code><bdi>src</bdi></code> · <bdi>Read</bdi> · <code><bdi>src/cart.rs</bdi></code>";
    assert!(entry.contains(line), "{entry}");
}

#[tokio::test]
async fn a_first_compaction_that_failed_is_explained_and_not_offered_again_where_nothing_is_archived()
 {
    let scene = Scene::new(ActionMode::Allowed);
    scene.fail_attempt("fresh").await;
    let at = scene.compact.clock().timestamp();
    let attempt = Attempt {
        at: at.clone(),
        turn: String::new(),
        outcome: "failed".to_owned(),
        tokens: 9_000,
    };
    let event =
        json!({"event": FAILED_EVENT, "error": "the summarizer failed: status 500", "ts": at});
    let catalog = scene.compact.store_to_write().unwrap().catalog;
    catalog.save_attempt("fresh", &attempt).await.unwrap();
    catalog.save_event("fresh", &event).await.unwrap();
    let page = scene.page("/session?name=fresh").await;
    assert!(
        page.contains(": the summarizer failed: status 500. Nothing was changed."),
        "{page}"
    );
    assert!(
        !page.contains("/do/retry") && page.contains("its own program does so"),
        "{page}"
    );
    compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let token = scene.token("/session?name=runs").await;
    let fields = [("token", token.as_str()), ("name", "fresh")];
    let answer = scene.send(post("/do/retry", &fields)).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let list = scene.page("/").await;
    assert!(list.contains("compaction failed"), "{list}");
    // An earlier version took the failure back, and left a row of which nothing was known.
    scene.compact.retry_compaction("fresh").await.unwrap();
    let list = scene.page("/").await;
    assert!(list.contains("/session?name=fresh"), "{list}");
    scene.page("/session?name=fresh").await;
}

/// A conversation that its driver reset by itself, in a window of 4,000 tokens.
async fn reset_by_itself(folder: &Path) {
    let builder = Compact::builder().data_directory(folder).window(4_000);
    let compact = builder.build().unwrap();
    let base = vec![json!({"role": "system", "content": "You port parsers."})];
    let mut session = compact.reset_session("runs", &base).unwrap();
    let say = |text: &str| json!({"role": "user", "content": text});
    session.begin_turn(&say("Port the parser.")).await.unwrap();
    let answer = json!({"role": "assistant", "content": "Step done. ".repeat(1_200)});
    session.append(&[answer]).unwrap();
    let outcome = session.begin_turn(&say("Now the lexer.")).await.unwrap();
    assert!(
        matches!(outcome, ResetOutcome::Compacted { .. }),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_session_is_shown_in_its_own_window_and_so_is_a_copy_of_it() {
    let folder = tempfile::tempdir().unwrap();
    reset_by_itself(folder.path()).await;
    let other = Compact::builder().data_directory(folder.path());
    let scene = Scene::over(other.build().unwrap(), ActionMode::Allowed);
    let receipt = scene.compact.session_records("runs").await.unwrap();
    let receipt = receipt[0].receipt_id.as_str();
    act(&scene, "undo", &[("name", "runs"), ("receipt", receipt)]).await;
    assert!(scene.page("/").await.contains(" of 4k"));
    for name in ["runs", "runs~before-1"] {
        let page = scene.page(&format!("/session?name={name}")).await;
        assert!(page.contains(" of 4,000 tokens"), "{name}: {page}");
    }
    // What is compacted from here is compacted for that window, too.
    let fields = [("name", "runs"), ("budget", "300")];
    act(&scene, "compact", &fields).await;
    let page = scene.page("/session?name=runs").await;
    assert!(page.contains(" of 4,000 tokens"), "{page}");
}

#[tokio::test]
async fn a_reset_that_the_driver_made_by_itself_is_not_told_as_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    reset_by_itself(folder.path()).await;
    let compact = Compact::builder().data_directory(folder.path());
    let scene = Scene::over(compact.build().unwrap(), ActionMode::Allowed);
    let page = scene.page("/session?name=runs").await;
    assert!(!page.contains("asked for"), "{page}");
    assert!(
        page.contains("trigger reached") || page.contains("over the window"),
        "{page}"
    );
}

/// Notes requests of a session as a live driver does: one for each second and size of its prompt.
fn note_requests(folder: &Path, session: &str, requests: impl Iterator<Item = (Timestamp, u64)>) {
    let journal = folder.join("journal");
    std::fs::create_dir_all(&journal).unwrap();
    for (at, prompt) in requests {
        let line = json!({"ts": at.to_string(), "event": "compact.usage", "session_id": session, "model": "m", "max": 20_000, "turn_input": prompt, "turn_output": 20});
        let day = at.to_zoned(TimeZone::UTC).date().iso_week_date();
        let week = format!("{}-W{:02}.jsonl", day.year(), day.week());
        let mut file = OpenOptions::new();
        let file = file.append(true).create(true).open(journal.join(week));
        writeln!(file.unwrap(), "{line}").unwrap();
    }
}

#[tokio::test]
async fn the_chart_of_a_live_session_has_each_compaction_where_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Timestamp::now() - SignedDuration::from_hours(1);
    let second = |n: i64| begin + SignedDuration::from_secs(n);
    let clock = Arc::new(ManualClock::new(second(100)));
    let builder = Compact::builder().data_directory(folder.path());
    let builder = builder
        .window(20_000)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let scene = Scene::over(builder.build().unwrap(), ActionMode::Allowed);
    compact_session(&scene.compact, "runs", &turns(40, "")).await;
    clock.advance(SignedDuration::from_secs(100));
    let fields = [("name", "runs"), ("budget", "1500")];
    act(&scene, "compact", &fields).await;
    let seconds = (0..45).chain(110..115).chain(210..213);
    let requests = seconds.map(|n| (second(n), 5_000 + n.unsigned_abs()));
    note_requests(folder.path(), "runs", requests);
    let page = scene.page("/session?name=runs").await;
    for call in [45.0, 50.0] {
        let place = format!("cx=\"{:.1}\"", 56.0 + call / 52.0 * 892.0);
        assert!(page.contains(&place), "{place} {page}");
    }
}

#[tokio::test]
async fn the_list_and_the_page_of_a_session_agree_on_how_full_it_is() {
    let scene = Scene::new(ActionMode::Allowed);
    let mut messages = vec![json!({"role": "system", "content": "Be careful. ".repeat(900)})];
    messages.extend(turns(40, ""));
    let receipt = compact_session(&scene.compact, "runs", &messages).await;
    act(&scene, "undo", &[("name", "runs"), ("receipt", &receipt)]).await;
    let list = scene.page("/").await;
    for name in ["runs", "runs~before-1"] {
        let (_, row) = list.split_once(&format!("<bdi>{name}</bdi>")).unwrap();
        let (_, title) = row.split_once("<span class=\"pressure\" title=\"").unwrap();
        let (told, _) = title.split_once(" of ").unwrap();
        let page = scene.page(&format!("/session?name={name}")).await;
        assert!(
            page.contains(&format!("<strong>{told}</strong>")),
            "{name} {told}: {page}"
        );
    }
}

#[tokio::test]
async fn a_new_session_keeps_the_first_message_that_it_was_started_with() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let place = [("name", "runs"), ("receipt", receipt.as_str())];
    let started = act(
        &scene,
        "start",
        &[&place[..], &[("new", "runs~next")]].concat(),
    )
    .await;
    let page = scene.page(&started).await;
    let (_, link) = page.split_once("href=\"/carried?").unwrap();
    let link = link.split_once('"').unwrap().0.replace("&amp;", "&");
    let link = format!("/carried?{link}");
    let message = scene.page(&link).await;
    act(&scene, "compact", &[("name", "runs"), ("budget", "1500")]).await;
    assert_ne!(scene.page("/carried?name=runs").await, message);
    assert_eq!(scene.page(&link).await, message);
    let list = scene.page("/").await;
    let (_, row) = list.split_once("<bdi>runs~next</bdi>").unwrap();
    let (_, last) = row.split_once("data-label=\"Last\">").unwrap();
    assert!(last.starts_with("<span class=\"lines\"><time "), "{last}");
}

#[tokio::test]
async fn a_message_of_several_lines_has_them_in_one_form() {
    let scene = Scene::with_chat();
    let token = scene.token("/chat?session=one").await;
    let fields = [
        ("token", token.as_str()),
        ("session", "one"),
        ("words", "first\r\nsecond"),
    ];
    scene.send(post("/chat/send", &fields)).await;
    let mut page = String::new();
    while !page.contains("You said: first") {
        tokio::task::yield_now().await;
        page = scene.page("/chat?session=one").await;
    }
    assert!(page.contains("You said: first\nsecond"), "{page}");
    assert!(!page.contains("U+000D"), "{page}");
}
