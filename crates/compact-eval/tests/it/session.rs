use std::collections::BTreeSet;

use compact_eval::generate::{self, GeneratedSession, PlantedKind};
use serde_json::Value;

/// The texts of a session that a model would read.
fn texts(session: &GeneratedSession) -> Vec<String> {
    let mut out = Vec::new();
    let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    if session.text.starts_with("{\"model\"") {
        collect(&parse(&session.text)["messages"], &mut out);
        return out;
    }
    for line in session.text.lines().map(parse) {
        collect(&line["message"]["content"], &mut out);
        if line["type"] == "response_item" {
            collect(&line["payload"], &mut out);
        }
    }
    out
}

/// Everything said, without the ids and type names of the wire.
fn collect(value: &Value, out: &mut Vec<String>) {
    const WIRE: [&str; 8] = [
        "id",
        "type",
        "role",
        "tool_use_id",
        "tool_call_id",
        "call_id",
        "signature",
        "encrypted_content",
    ];
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        Value::Object(map) => {
            map.iter()
                .filter(|(key, _)| !WIRE.contains(&key.as_str()))
                .for_each(|(_, v)| collect(v, out));
        }
        _ => {}
    }
}

fn tokens(session: &GeneratedSession) -> usize {
    let bpe = bpe_openai::o200k_base();
    texts(session).iter().map(|text| bpe.count(text)).sum()
}

fn sessions() -> [(GeneratedSession, usize); 3] {
    [
        (generate::coding_session(11, 150_000), 150_000),
        (generate::support_session(12, 20_000), 20_000),
        (generate::research_session(13, 60_000), 60_000),
    ]
}

#[test]
fn a_session_has_the_tokens_that_were_asked_for() {
    for (session, wanted) in sessions() {
        let counted = tokens(&session);
        assert!(
            (wanted..wanted * 3 / 2).contains(&counted),
            "{counted} tokens for {wanted}"
        );
    }
}

#[test]
fn a_long_session_scales() {
    let counted = tokens(&generate::coding_session(1, 1_000_000));
    assert!((1_000_000..1_200_000).contains(&counted), "{counted}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    assert_eq!(
        generate::coding_session(5, 3_000),
        generate::coding_session(5, 3_000)
    );
    assert_ne!(
        generate::coding_session(5, 3_000).text,
        generate::coding_session(6, 3_000).text
    );
}

#[test]
fn every_rule_of_the_grammars_is_defined() {
    for (session, _) in sessions() {
        let unresolved: BTreeSet<_> = session
            .text
            .split('«')
            .skip(1)
            .filter_map(|t| t.split('»').next())
            .collect();
        assert_eq!(unresolved, BTreeSet::new());
    }
}

#[test]
fn sessions_are_as_varied_as_prose_and_code_are() {
    for (session, _) in sessions() {
        let text = texts(&session).join("\n");
        let ratio = text.len() as f64 / zstd::encode_all(text.as_bytes(), 3).unwrap().len() as f64;
        assert!(ratio < 6.0, "compresses {ratio:.1}-fold");
    }
}

/// The entry of a session by the index that a fact names.
fn entry(session: &GeneratedSession, index: usize) -> String {
    let entry: Value = if session.text.starts_with("{\"model\"") {
        serde_json::from_str::<Value>(&session.text).unwrap()["messages"][index].clone()
    } else {
        serde_json::from_str(session.text.lines().nth(index).unwrap()).unwrap()
    };
    let mut out = Vec::new();
    collect(&entry, &mut out);
    // Arguments are JSON within a string on some wires.
    out.join("\n").replace("\\\"", "\"")
}

#[test]
fn every_fact_stands_where_the_answer_key_says() {
    for (session, _) in sessions() {
        for fact in &session.planted.facts {
            let text = entry(&session, fact.entry);
            assert!(
                fact.is_in(&text),
                "{} is not in entry {}: {text}",
                fact.id,
                fact.entry
            );
        }
    }
}

#[test]
fn every_kind_is_planted_and_every_link_leads_somewhere() {
    use PlantedKind::{Constraint, Decision, Done, Error, File, Fix, Goal, Id, Open};
    for (session, _) in sessions() {
        let planted = &session.planted;
        for kind in [Goal, Constraint, Decision, Error, Fix, Done, Open, Id, File] {
            let absent = planted.facts_of(kind).next().is_none();
            assert!(!absent || kind == File, "no {kind:?}");
        }
        let ids: BTreeSet<&str> = planted.facts.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids.len(), planted.facts.len());
        assert!(
            planted.facts_of(Constraint).any(|c| !c.is_live()),
            "no constraint was superseded"
        );
        assert!(
            planted
                .facts_of(Error)
                .all(|e| e.fixed_by.as_deref().is_some_and(|id| ids.contains(id)))
        );
        assert!(planted.facts_of(Decision).all(|d| d.reason.is_some()));
        let replaced = planted
            .facts_of(Constraint)
            .filter_map(|c| c.superseded_by.as_deref());
        assert!(replaced.into_iter().all(|id| ids.contains(id)));
    }
}

#[test]
fn every_call_is_answered_once_and_right_after() {
    let session = generate::coding_session(3, 20_000);
    let mut open = BTreeSet::new();
    for line in session
        .text
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
    {
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => assert!(open.insert(block["id"].clone().to_string())),
                Some("tool_result") => assert!(open.remove(&block["tool_use_id"].to_string())),
                _ => {}
            }
        }
    }
    assert_eq!(open, BTreeSet::new());
}
