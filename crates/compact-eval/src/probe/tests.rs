use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::fact_check::Scenario;
use crate::generate::{PlantedFact, PlantedKind};

/// A set whose probes ask for what was planted before a cut of a generated session.
fn write_set(folder: &Path) {
    let session = Scenario::Coding.generate(5);
    let lines = session.text.lines().count();
    let cut = lines * 3 / 4;
    let asked = |fact: &&PlantedFact| fact.entry < cut && fact.is_live();
    let probes: Vec<Value> = session
        .planted
        .facts
        .iter()
        .filter(asked)
        .map(as_probe)
        .collect();
    let record = json!([{
        "id": "s1", "file": "s1.jsonl", "tokens": session.text.len() / 4, "budget": 3000,
        "cut": {"unit": "line", "at": cut}, "host_summary": false,
    }]);
    std::fs::write(folder.join("s1.jsonl"), &session.text).unwrap();
    std::fs::write(folder.join("s1.json"), json!(probes).to_string()).unwrap();
    std::fs::write(folder.join("sessions.json"), record.to_string()).unwrap();
}

fn as_probe(fact: &PlantedFact) -> Value {
    let kind = match fact.kind {
        PlantedKind::Goal | PlantedKind::Constraint => "user",
        PlantedKind::Decision => "decisions",
        _ => "details",
    };
    let needles: Vec<[&String; 1]> = fact.needles.iter().map(|needle| [needle]).collect();
    json!({"id": fact.id, "kind": kind, "question": "?", "gold": fact.text, "needles": needles})
}

fn means(methods: &[Method], budgets: &[ProbeBudget]) -> Vec<ProbeMean> {
    let folder = tempfile::tempdir().unwrap();
    write_set(folder.path());
    let set = ProbeSet::read(folder.path(), folder.path()).unwrap();
    let engine = EvalEngine::new(Default::default()).unwrap();
    aggregate_probes(&measure_probes(&set, methods, budgets, &engine))
}

#[test]
fn the_whole_answers_everything_and_the_view_more_than_the_end() {
    let methods = [
        Method::Compact,
        Method::KeepLast,
        Method::Whole,
        Method::Real,
    ];
    let found = means(&methods, &[ProbeBudget::Recorded, ProbeBudget::Share(0.2)]);
    let score = |method, budget| {
        let mut means = found.iter();
        let same = |m: &&ProbeMean| m.method == method && m.budget == budget;
        means.find(same).map(|mean| mean.score)
    };
    for budget in [ProbeBudget::Recorded, ProbeBudget::Share(0.2)] {
        assert_eq!(score(Method::Whole, budget), Some(1.0));
        assert!(
            score(Method::Compact, budget) > score(Method::KeepLast, budget),
            "{found:?}"
        );
        assert_eq!(
            score(Method::Real, budget),
            None,
            "this host wrote no summary"
        );
    }
    let small = score(Method::KeepLast, ProbeBudget::Recorded);
    assert!(small < score(Method::KeepLast, ProbeBudget::Share(0.2)));
}

#[test]
fn each_kind_has_its_mean_and_each_session_its_score() {
    let found = means(&[Method::Whole], &[ProbeBudget::Recorded]);
    let [mean] = found.as_slice() else {
        panic!("{found:?}")
    };
    let kinds: Vec<&str> = mean.kinds.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["decisions", "details", "user"]);
    assert_eq!(mean.sessions, [("s1".to_owned(), 1.0)].into());
}

#[test]
fn an_element_is_found_by_any_of_its_needles_in_any_case_and_across_lines() {
    let probe: Probe = serde_json::from_value(json!({
        "kind": "state", "needles": [["Port 8080", "port is 8080"], ["nowhere"], []],
    }))
    .unwrap();
    assert_eq!(probe.found_share(&fold("The port\n  is 8080.")), Some(0.5));
    assert_eq!(probe.found_share(&fold("PORT 8080")), Some(0.5));
    assert_eq!(probe.found_share(""), Some(0.0));
    let empty = Probe {
        kind: "state".to_owned(),
        needles: vec![vec![]],
    };
    assert_eq!(empty.found_share("anything"), None);
}

#[test]
fn a_set_that_lacks_a_file_names_it() {
    let folder = tempfile::tempdir().unwrap();
    write_set(folder.path());
    std::fs::remove_file(folder.path().join("s1.json")).unwrap();
    let error = ProbeSet::read(folder.path(), folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("s1.json"), "{error}");
    std::fs::write(folder.path().join("s1.json"), "{}").unwrap();
    let error = ProbeSet::read(folder.path(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("s1.json is not what"), "{error}");
}
