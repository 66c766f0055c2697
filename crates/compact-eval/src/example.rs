//! The sessions in `examples/`, each with its answer key: what `cargo xtask examples` writes.

use crate::generate::{self, Planted, Session};

/// A file of `examples/`.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its name in the folder.
    pub name: &'static str,
    /// Its content.
    pub content: String,
}

/// The sessions: of an API that is changed, of a customer, of a literature review.
pub fn sessions() -> [Session; 3] {
    [
        generate::coding(11, 150_000),
        generate::support(12, 20_000),
        generate::research(13, 60_000),
    ]
}

/// Every file of the folder.
pub fn all() -> Vec<Example> {
    let [coding, support, research] = sessions();
    [
        pair("coding-session.jsonl", "coding-session.facts.json", coding),
        pair(
            "support-session.json",
            "support-session.facts.json",
            support,
        ),
        pair(
            "research-session.jsonl",
            "research-session.facts.json",
            research,
        ),
    ]
    .concat()
}

fn pair(session: &'static str, facts: &'static str, content: Session) -> [Example; 2] {
    [
        Example {
            name: facts,
            content: key(&content.planted),
        },
        Example {
            name: session,
            content: content.text,
        },
    ]
}

/// One fact per line, so that a change of the generator can be reviewed.
fn key(planted: &Planted) -> String {
    let facts: Vec<String> = planted
        .facts
        .iter()
        .filter_map(|f| serde_json::to_string(f).ok())
        .collect();
    format!(
        "{{\"entries\": {}, \"facts\": [\n{}\n]}}\n",
        planted.entries,
        facts.join(",\n")
    )
}
